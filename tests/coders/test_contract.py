"""Every coder: its contract, with compiled and with reference kernels, and the arguments it refuses."""

import numpy as np
import pytest

from manifold_dl.coders import (
    FOCUSS,
    IHT,
    OMP,
    BasisPursuit,
    FixedSupport,
    ForwardSelection,
    GradientPursuit,
    Lasso,
    MatchingPursuit,
    SubspacePursuit,
)
from manifold_dl.diagnostics import check_coder
from manifold_dl.kernels import coding
from manifold_dl.kernels.coding import reference

# The fixed support belongs to the 24 atoms and 40 signals check_coder uses.
SUPPORT = np.argsort(np.random.default_rng(0).random((40, 24)), axis=1)[:, :3]

CODERS = [
    OMP(sparsity=3),
    OMP(tol=0.2),
    OMP(sparsity=3, tol=0.2),
    OMP(sparsity=3, nonnegative=True),
    OMP(tol=0.5, nonnegative=True),
    ForwardSelection(sparsity=3),
    ForwardSelection(tol=0.2),
    Lasso(alpha=0.1),
    Lasso(alpha=0.1, relative=True),
    Lasso(alpha=0.1, relative=True, sparsity=3),
    Lasso(alpha=0.1, nonnegative=True),
    Lasso(alpha=0.1, relative=True, sparsity=3, nonnegative=True),
    BasisPursuit(),
    SubspacePursuit(sparsity=3),
    MatchingPursuit(sparsity=3),
    MatchingPursuit(tol=0.2),
    GradientPursuit(sparsity=3),
    IHT(sparsity=3),
    FOCUSS(),
    FOCUSS(p=0.8, sparsity=3),
    FixedSupport(SUPPORT),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("coder", CODERS, ids=lambda coder: f"{type(coder).__name__}")
def test_every_coder_satisfies_the_contract(coder, dtype):
    check_coder(coder, dtype=dtype)


@pytest.mark.parametrize("coder", CODERS, ids=lambda coder: f"{type(coder).__name__}")
def test_every_coder_satisfies_the_contract_with_the_reference_kernels(coder, monkeypatch):
    for name in coding.KERNELS:
        monkeypatch.setattr(coding, name, getattr(reference, name))
    check_coder(coder)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: OMP(), "needs a reason to stop"),
        (lambda: OMP(sparsity=0), "needs at least one atom"),
        (lambda: OMP(tol=-1.0), "must be finite and not negative"),
        (lambda: ForwardSelection(tol=np.nan), "must be finite and not negative"),
        (lambda: Lasso(alpha=0.0), "its limit 0 is BasisPursuit"),
        (lambda: Lasso(alpha=1.0, tol=0.0), "a fraction between 0 and 1"),
        (lambda: OMP(sparsity=9).encode(np.ones((8, 2)), np.eye(8)), "exceeds the signal dimension m=8"),
        (
            lambda: OMP(sparsity=4).encode(np.ones((8, 2)), np.eye(8)[:, :3]),
            "exceeds the number of atoms d=3",
        ),
        (lambda: OMP(sparsity=1).encode(np.ones((8, 2)), np.eye(7)), "atoms of length 7"),
        (lambda: OMP(sparsity=1).encode(np.full((8, 2), np.nan), np.eye(8)), "clean the data first"),
        (lambda: OMP(sparsity=1).encode(np.ones(8), np.eye(8)), "matrix with two axes"),
        (lambda: OMP(sparsity=1).encode(np.ones((8, 2)), np.zeros((8, 3))), "column 0 is zero"),
    ],
)
def test_invalid_arguments_are_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_sparsity_that_is_not_a_whole_number_is_refused():
    with pytest.raises(TypeError, match="whole number"):
        OMP(sparsity=2.5)
