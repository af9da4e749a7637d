"""`check_update`: wrong update rules are named with their fault."""

import numpy as np
import pytest
from scipy.sparse import csc_array

import manifold_dl as mdl
from manifold_dl.diagnostics import (
    CheckFailed,
    check_update,
)


class WrongUpdate:
    """An update that spoils the result of K-SVD in one way."""

    def __init__(self, spoil):
        self.spoil = spoil

    def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
        D, X = mdl.KSVD()(signals, dictionary, codes)
        return self.spoil(D, X, signals, dictionary, codes)


def overwrites(D, X, Y, D_old, X_old):
    D_old[:] = D
    return D_old, X


WRONG_UPDATES = {
    "raised the objective from": lambda D, X, *_: (np.roll(D, 1, axis=1), X),
    "an atom of norm 2": lambda D, X, *_: (2 * D, X),
    "a code outside of the support": lambda D, X, *_: (D, csc_array(X.toarray() + 1e-9)),
    "changed an argument": overwrites,
    "not deterministic": lambda D, X, *_: (
        D * np.random.default_rng().choice([-1.0, 1.0], D.shape[1]),
        csc_array((0 * X.data, X.indices, X.indptr), shape=X.shape),
    ),
    "dictionary of shape": lambda D, X, *_: (D.T, X),
    "codes of shape": lambda D, X, *_: (D, csc_array(X.T)),
    "codes that are not finite": lambda D, X, *_: (D, X * np.nan),
    "float32 atoms": lambda D, X, *_: (D.astype(np.float32), X),
    "not finite": lambda D, X, *_: (D * np.nan, X),
    "where a pair": lambda D, X, *_: [D, X, None],
}


@pytest.mark.parametrize("fault", WRONG_UPDATES)
def test_check_update_names_the_fault(fault):
    objective = (lambda Y, D, X: 0.0) if fault == "not deterministic" else None
    with pytest.raises(CheckFailed, match=f"^WrongUpdate .*{fault}"):
        check_update(WrongUpdate(WRONG_UPDATES[fault]), objective=objective)


def test_update_may_return_dense_codes_and_omit_iteration_and_rng():
    assert any(
        "ndarray" in fact for fact in check_update(WrongUpdate(lambda D, X, *_: (D, X.toarray()))).remarks
    )

    def ksvd(signals, dictionary, codes):
        return mdl.KSVD()(signals, dictionary, codes)

    report = check_update(ksvd)
    assert report.subject == "ksvd" and not report.remarks


def test_check_update_allows_atoms_of_any_norm_without_unit_atoms():
    def stretch(D, X, *_):
        return 2 * D, csc_array((X.data / 2, X.indices, X.indptr), shape=X.shape)

    assert check_update(WrongUpdate(stretch), unit_atoms=False)


class WrongWeights:
    """An update that takes weights, and uses them in a wrong way."""

    def __init__(self, use):
        self.use = use

    def __call__(self, signals, dictionary, codes, *, weights=None):
        if weights is None:
            return mdl.SimCO(mu=0.0)(signals, dictionary, codes)
        return self.use(signals, dictionary, codes, weights)


def exchanges(Y, D, X, W):
    return (D, X) if W.ndim == 1 else (np.roll(D, 1, axis=1), X)


def looks(Y, D, X, W):
    D_new, X_new = mdl.SimCO(mu=0.0)(Y, D, X, weights=W)
    return (D_new, X_new) if np.isfinite(Y).all() else (D, X)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (exchanges, "raised the objective with a weight per entry"),
        (looks, "another result when entries of weight zero were NaN"),
    ],
)
def test_wrong_weights_are_named(use, words):
    with pytest.raises(CheckFailed, match=words):
        check_update(WrongWeights(use), rng=3)


def test_weights_of_the_rules_of_the_package():
    facts = "\n".join(check_update(mdl.SimCO(mu=0.1)).passed)
    assert "with a weight per entry the objective does not rise" in facts
    report = check_update(mdl.KSVD())
    assert any("a weight per entry (refused: KSVD" in fact for fact in report.skipped)
    plain = check_update(lambda signals, dictionary, codes: mdl.KSVD()(signals, dictionary, codes))
    assert any("no keyword `weights`" in fact for fact in plain.skipped)
