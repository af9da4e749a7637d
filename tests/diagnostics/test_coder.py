"""`check_coder`: wrong coders are named with their fault, and learning refuses them with the same message."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

import manifold_dl as mdl
from manifold_dl.coders import OMP
from manifold_dl.components.errors import ComponentError
from manifold_dl.diagnostics import (
    CheckFailed,
    check_coder,
)


class Wrong:
    """A coder that spoils the codes of OMP in one way."""

    optimal_on_support = False

    def __init__(self, spoil):
        self.spoil = spoil

    def encode(self, signals, dictionary):
        return self.spoil(OMP(sparsity=3).encode(signals, dictionary), signals, dictionary)


def with_data(X, data):
    return csc_array((data, X.indices, X.indptr), shape=X.shape)


def unsorted(X, Y, D):
    flipped = csc_array((X.data.copy(), X.indices.copy(), X.indptr), shape=X.shape)
    flipped.indices[:2], flipped.data[:2] = X.indices[1::-1], X.data[1::-1]
    return flipped


def careless_squares(X, Y, D):
    energy = np.sum(Y**2, axis=0)  # overflows for huge signals, vanishes for tiny ones
    return csc_array(X.toarray() * (energy / np.maximum(np.linalg.norm(Y, axis=0) ** 2, 1e-300)))


def changes_its_input(X, Y, D):
    Y[0, 0] += 1
    return X


WRONG = {
    "of shape": lambda X, Y, D: csc_array(X.T),
    "float32 codes for float64": lambda X, Y, D: X.astype(np.float32),
    "not finite": lambda X, Y, D: with_data(X, X.data * np.nan),
    "codes that are not finite": lambda X, Y, D: X.toarray() * np.nan,
    "return the transpose": lambda X, Y, D: X.T.toarray(),
    "real numbers are expected": lambda X, Y, D: X * 1j,
    "returned None, where the codes are expected": lambda X, Y, D: None,
    "returned a tuple, where the codes are expected": lambda X, Y, D: (X.toarray(), 1),
    "returned a str, where the codes are expected": lambda X, Y, D: "codes",
    "outside its own shape": lambda X, Y, D: csc_array(
        (X.data, X.indices + 99 - X.indices[0], X.indptr), X.shape
    ),
    "changed the signals": changes_its_input,
    "not deterministic": lambda X, Y, D: with_data(X, X.data * np.random.default_rng().uniform(0.9, 1)),
    "an atom flipped": lambda X, Y, D: csc_array(X.toarray() * (D[:1].T > 0)),
    "a signal flipped": lambda X, Y, D: csc_array(X.toarray() * (Y[:1] > 0)),
    "order of the atoms": lambda X, Y, D: csc_array(X.toarray() * np.linspace(0.5, 1, len(D.T))[:, None]),
    "order of the signals": lambda X, Y, D: csc_array(X.toarray() * np.linspace(0.5, 1, len(Y.T))),
    "worse than zero": lambda X, Y, D: with_data(X, -X.data),
    "gave no atoms to any of 40 signals": lambda X, Y, D: 0 * X.toarray(),
    "zeros": lambda X, Y, D: csc_array(np.where(Y.any(axis=0), X.toarray(), 1.0)),
}


@pytest.mark.parametrize("fault", WRONG)
def test_check_coder_names_the_fault(fault):
    with pytest.raises(AssertionError, match=fault):
        check_coder(Wrong(WRONG[fault]))


ACCEPTED = {
    "a dense ndarray": lambda X, Y, D: X.toarray(),
    "csr_array": lambda X, Y, D: csr_array(X),
    "not increasing": unsorted,
}


@pytest.mark.parametrize("remark", ACCEPTED)
def test_codes_that_are_converted_pass_with_a_remark_and_give_the_same_dictionary(remark):
    coder = Wrong(ACCEPTED[remark])
    report = check_coder(coder)
    assert report
    assert any(remark in fact for fact in report.remarks)
    assert "remark: " in str(report)
    Y = mdl.datasets.synthetic(8, 12, 80, sparsity=3, rng=0).signals
    ours, theirs = (mdl.learn_dictionary(Y, 12, coder=c, rng=0, max_iter=3) for c in (OMP(sparsity=3), coder))
    np.testing.assert_array_equal(theirs.dictionary, ours.dictionary)
    np.testing.assert_array_equal(theirs.codes.toarray(), ours.codes.toarray())
    assert theirs.codes.format == "csc"


@pytest.mark.parametrize(
    "fault",
    [
        "of shape",
        "not finite",
        "return the transpose",
        "real numbers",
        "None",
        "tuple",
        "outside its own shape",
    ],
)
def test_learning_refuses_codes_with_the_message_of_check_coder(fault):
    spoil = next(spoil for name, spoil in WRONG.items() if fault in name)
    with pytest.raises(CheckFailed) as checked:
        check_coder(Wrong(spoil))
    with pytest.raises(ComponentError, match=fault) as learned:
        Y = mdl.datasets.synthetic(16, 24, 40, sparsity=3, rng=0).signals
        mdl.learn_dictionary(Y, 24, coder=Wrong(spoil), rng=0, max_iter=3)
    assert "Wrong" in str(learned.value)
    if fault != "outside its own shape":  # that sentence names an index, which depends on the signals
        assert checked.value.report.fault == learned.value.problem


def test_overflow_of_squares_in_a_coder_is_found():
    with pytest.raises(AssertionError, match="on huge signals"):
        check_coder(Wrong(careless_squares))


class PromisesTooMuch(Wrong):
    optimal_on_support = True


def test_promise_of_optimal_codes_fails_for_a_wrong_support():
    def wrong_support(X, Y, D):  # the codes of the fit with three atoms, of which one is then dropped
        return csc_array(
            np.where(np.abs(X.toarray()) > 0.3 * np.abs(X.toarray()).max(axis=0), X.toarray(), 0)
        )

    check_coder(Wrong(wrong_support))  # nothing wrong with it as long as it promises nothing
    with pytest.raises(AssertionError, match="promises optimal_on_support"):
        check_coder(PromisesTooMuch(wrong_support))


class PromisesScale(Wrong):
    scale_equivariant = True


def test_promise_of_scale_equivariance_fails_for_an_absolute_threshold():
    def threshold(X, Y, D):
        return csc_array(np.where(np.abs(X.toarray()) > 0.1, X.toarray(), 0))

    with pytest.raises(AssertionError, match="promises scale_equivariant"):
        check_coder(PromisesScale(threshold))


def test_omp_passes_in_both_precisions():
    for dtype in (np.float64, np.float32):
        assert check_coder(OMP(sparsity=3), dtype=dtype)
