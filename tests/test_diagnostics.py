"""The checks for plug-ins catch what they say they catch."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from manifold_dl.coders import OMP
from manifold_dl.diagnostics import check_coder


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
    "not a csc_array": lambda X, Y, D: X.toarray(),
    "ndarray": lambda X, Y, D: X.toarray(),
    "csr_array, not": lambda X, Y, D: csr_array(X),
    "of shape": lambda X, Y, D: csc_array(X.T),
    "float32 codes for float64": lambda X, Y, D: X.astype(np.float32),
    "not finite": lambda X, Y, D: with_data(X, X.data * np.nan),
    "not increasing": unsorted,
    "changed the signals": changes_its_input,
    "not deterministic": lambda X, Y, D: with_data(X, X.data * np.random.default_rng().uniform(0.9, 1)),
    "an atom flipped": lambda X, Y, D: csc_array(X.toarray() * (D[:1].T > 0)),
    "a signal flipped": lambda X, Y, D: csc_array(X.toarray() * (Y[:1] > 0)),
    "order of the atoms": lambda X, Y, D: csc_array(X.toarray() * np.linspace(0.5, 1, len(D.T))[:, None]),
    "order of the signals": lambda X, Y, D: csc_array(X.toarray() * np.linspace(0.5, 1, len(Y.T))),
    "worse than zero": lambda X, Y, D: with_data(X, -X.data),
    "zeros": lambda X, Y, D: csc_array(np.where(Y.any(axis=0), X.toarray(), 1.0)),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_coder_is_named_with_its_fault(fault):
    with pytest.raises(AssertionError, match=fault):
        check_coder(Wrong(WRONG[fault]))


def test_squares_that_overflow_are_found():
    with pytest.raises(AssertionError, match="on huge signals"):
        check_coder(Wrong(careless_squares))


class PromisesTooMuch(Wrong):
    optimal_on_support = True


def test_a_wrong_support_breaks_the_promise_of_optimal_codes():
    def wrong_support(X, Y, D):  # the codes of the fit with three atoms, of which one is then dropped
        return csc_array(
            np.where(np.abs(X.toarray()) > 0.3 * np.abs(X.toarray()).max(axis=0), X.toarray(), 0)
        )

    check_coder(Wrong(wrong_support))  # nothing wrong with it as long as it promises nothing
    with pytest.raises(AssertionError, match="promises optimal_on_support"):
        check_coder(PromisesTooMuch(wrong_support))


class PromisesScale(Wrong):
    scale_equivariant = True


def test_an_absolute_threshold_breaks_the_promise_of_scale():
    def threshold(X, Y, D):
        return csc_array(np.where(np.abs(X.toarray()) > 0.1, X.toarray(), 0))

    with pytest.raises(AssertionError, match="promises scale_equivariant"):
        check_coder(PromisesScale(threshold))


def test_a_good_coder_passes_in_both_precisions():
    for dtype in (np.float64, np.float32):
        assert check_coder(OMP(sparsity=3), dtype=dtype)
