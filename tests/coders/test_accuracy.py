"""Pursuits on picture patches over an overcomplete cosine dictionary, in both precisions.

Smooth patches make forward selection choose atoms close to each other, down to 1e-4 of their length, and some
sets of cosines are exactly dependent. What a coder returns is measured in double precision, from its codes.
"""

import functools

import numpy as np
import pytest
from scipy.sparse import csc_array

from manifold_dl.coders import (
    IHT,
    OMP,
    ForwardSelection,
    GradientPursuit,
    MatchingPursuit,
    SubspacePursuit,
)
from manifold_dl.kernels import coding
from manifold_dl.kernels.coding import PursuitSettings, reference

data = pytest.importorskip("skimage.data")

SPARSITIES = (1, 2, 4, 8, 16)
TOL = 64 * 11.5**2  # the usual error goal for noise of standard deviation 10, per patch of 64 pixels
PRECISIONS = [np.float32, np.float64]

# Squared residuals, as fractions of ‖y‖², are right to this many units of rounding: the most seen is 3.
ROUNDINGS = 16


@functools.cache
def patches(n=20_000):
    """Mean-free 8×8 patches of a photograph, a signal in every column, whole numbers minus their mean."""
    windows = np.lib.stride_tricks.sliding_window_view(data.camera().astype(float), (8, 8)).reshape(-1, 64)
    chosen = windows[np.random.default_rng(0).choice(len(windows), n, replace=False)].T
    return chosen - chosen.mean(axis=0)


@functools.cache
def cosines():
    """The 64×256 dictionary of the denoising literature: 16 cosines for 8 pixels, in both directions."""
    waves = np.cos(np.outer(np.arange(8), np.arange(16)) * np.pi / 16)
    waves[:, 1:] -= waves[:, 1:].mean(axis=0)
    waves /= np.linalg.norm(waves, axis=0)
    return np.kron(waves, waves)


def problem(dtype, n=20_000):
    return patches(n).astype(dtype), cosines().astype(dtype)


def relative_residuals(Y, D, X):
    """‖y − Dx‖²/‖y‖² in double precision, zero for signals of zeros."""
    Y, D, X = Y.astype(float), D.astype(float), X.astype(float)
    energies = np.sum(Y**2, axis=0)
    return np.sum((Y - (X.T @ D.T).T) ** 2, axis=0) / np.where(energies > 0, energies, 1)


def least_residuals(Y, D, X):
    """The least ‖y − Dx‖²/‖y‖² on the supports of X, by an orthogonal factorisation in double precision."""
    Y, D = Y.astype(float), D.astype(float)
    least = np.where(Y.any(axis=0), 1.0, 0.0)
    sizes = np.diff(X.indptr)
    for size in np.unique(sizes[sizes > 0]):
        signals = np.flatnonzero(sizes == size)
        supports = X.indices[X.indptr[signals][:, None] + np.arange(size)]
        Q = np.linalg.qr(np.moveaxis(D[:, supports], 0, 1))[0]
        y = Y[:, signals].T[:, :, None]
        rest = y - Q @ (Q.transpose(0, 2, 1) @ y)
        least[signals] = np.sum(rest**2, axis=(1, 2)) / np.sum(y**2, axis=(1, 2))
    return least


def rounding(X, Y, dtype):
    """What the squared residual may be off by, as a fraction of ‖y‖², signal by signal.

    Rounding of the atoms alone changes it by eps·‖x‖/‖y‖. That shows where it is measured in the precision of
    the coder, so for float64; codes in float32 are measured with eight digits to spare.
    """
    eps = np.finfo(dtype).eps
    if dtype is np.float32:
        return ROUNDINGS * eps
    norms = np.linalg.norm(Y, axis=0)
    sizes = np.sqrt((X.astype(float).power(2)).sum(axis=0)) / np.where(norms > 0, norms, 1)
    return ROUNDINGS * eps * (1 + sizes)


# --- The residual -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("tol", [None, TOL])
@pytest.mark.parametrize("coder", [OMP, ForwardSelection, MatchingPursuit])
def test_residual_never_rises_when_an_atom_is_added(coder, tol, dtype):
    Y, D = problem(dtype)
    before = np.where(Y.any(axis=0), 1.0, 0.0)  # no atom at all
    for sparsity in SPARSITIES:
        X = coder(sparsity=sparsity, tol=tol).encode(Y, D)
        after = relative_residuals(Y, D, X)
        assert (after <= before + rounding(X, Y, dtype)).all()
        before = after


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_residual_of_gradient_pursuit_never_rises_when_an_atom_is_added(dtype):
    Y, D = problem(dtype)
    before = np.where(Y.any(axis=0), 1.0, 0.0)
    for sparsity in SPARSITIES:
        X = GradientPursuit(sparsity=sparsity).encode(Y, D)
        after = relative_residuals(Y, D, X)
        assert (after <= before + rounding(X, Y, dtype)).all()
        before = after


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_residual_of_subspace_pursuit_never_rises_from_round_to_round(dtype):
    # More atoms may leave more here: supports are not nested. Rounds are.
    Y, D = problem(dtype)
    before = np.where(Y.any(axis=0), 1.0, 0.0)
    for rounds in (1, 2, 100):
        X = SubspacePursuit(sparsity=5, max_iter=rounds).encode(Y, D)
        after = relative_residuals(Y, D, X)
        assert (after <= before + rounding(X, Y, dtype)).all()
        before = after


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
def test_residual_never_rises_atom_by_atom_on_the_hardest_patches(coder, dtype):
    Y, D = problem(dtype)
    Y = Y[:, hardest(300)]
    before = np.ones(300)
    for sparsity in range(1, 33):
        X = coder(sparsity=sparsity).encode(Y, D)
        after = relative_residuals(Y, D, X)
        assert (after <= before + rounding(X, Y, dtype)).all()
        before = after


@functools.cache
def hardest(n):
    """The patches to which forward selection gives the largest coefficients for their norm."""
    Y, D = problem(np.float64)
    X = ForwardSelection(sparsity=16).encode(Y, D)
    norms = np.linalg.norm(Y, axis=0)
    return np.argsort(-abs(X).max(axis=0).toarray().ravel() / np.where(norms > 0, norms, np.inf))[:n]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(
    "coder",
    [OMP(16), ForwardSelection(16), ForwardSelection(16, TOL), SubspacePursuit(5), IHT(5, max_iter=20)],
    ids=repr,
)
def test_codes_are_the_least_squares_fit_on_their_support(coder, dtype):
    Y, D = problem(dtype)
    X = coder.encode(Y, D)
    some = np.concatenate([hardest(300), np.arange(2000)])
    X, Y = csc_array(X[:, some]), Y[:, some]
    found, least = relative_residuals(Y, D, X), least_residuals(Y, D, X)
    assert (found <= least + rounding(X, Y, dtype)).all()
    assert (found >= least - rounding(X, Y, dtype)).all()


# --- The tolerance ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
def test_pursuit_stops_at_the_first_residual_within_the_tolerance(coder, dtype):
    Y, D = problem(dtype)
    energies = np.sum(Y.astype(float) ** 2, axis=0)
    X = coder(sparsity=8, tol=TOL).encode(Y, D)
    sizes = np.diff(X.indptr)
    after = relative_residuals(Y, D, X) * energies
    allowed = rounding(X, Y, dtype) * energies
    assert (after <= TOL + allowed)[sizes < 8].all()
    for size in range(1, 9):
        stopped = sizes == size
        fewer = coder(sparsity=size - 1).encode(Y[:, stopped], D) if size > 1 else 0 * X[:, stopped]
        before = relative_residuals(Y[:, stopped], D, fewer) * energies[stopped]
        assert (before > TOL - np.broadcast_to(allowed, sizes.shape)[stopped]).all()


# --- Single precision against double ----------------------------------------------------------------------


@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
@pytest.mark.parametrize("tol", [None, TOL])
def test_single_precision_fits_as_well_as_double(coder, tol):
    sums, sizes = [], []
    for dtype in PRECISIONS:
        Y, D = problem(dtype)
        X = coder(sparsity=16, tol=tol).encode(Y, D)
        sums.append(np.sum(relative_residuals(Y, D, X) * np.sum(Y.astype(float) ** 2, axis=0)))
        sizes.append(X.nnz)
        largest = abs(X).max(axis=0).toarray().ravel()
        # An atom joins only if ‖L⁻¹‖² grows by no more than 1/(64·eps), and ‖x‖ ≤ ‖L⁻¹‖·‖y‖.
        bound = np.sqrt(16 / (64 * np.finfo(dtype).eps))
        assert (largest <= bound * np.linalg.norm(Y.astype(float), axis=0)).all()
    # Single precision takes no atom closer than 3e-3 to the span of the others: seen 1e-4 of the error.
    assert sums[0] == pytest.approx(sums[1], rel=1e-3)
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-3)


# --- Dependent atoms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("distance", [0, 1e-12, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize(
    "coder",
    [OMP(8), ForwardSelection(8), SubspacePursuit(4), GradientPursuit(8), MatchingPursuit(8), IHT(4)],
    ids=lambda coder: type(coder).__name__,
)
def test_atoms_that_nearly_coincide_give_codes_that_fit(coder, distance, dtype):
    rng = np.random.default_rng(0)
    D = rng.standard_normal((8, 10))
    D = np.hstack([D, D + distance * rng.standard_normal((8, 10)), D @ rng.standard_normal((10, 4))])
    D = (D / np.linalg.norm(D, axis=0)).astype(dtype)
    Y = rng.standard_normal((8, 200)).astype(dtype)
    X = coder.encode(Y, D)
    found = relative_residuals(Y, D, X)
    allowed = rounding(X, Y, dtype)
    assert np.isfinite(X.data).all()
    assert (found <= 1 + allowed).all()
    if coder.optimal_on_support:
        assert (found <= least_residuals(Y, D, X) + allowed).all()


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        ("omp", PursuitSettings(8)),
        ("forward_selection", PursuitSettings(8)),
        ("forward_selection", PursuitSettings(8, TOL)),
        ("subspace_pursuit", PursuitSettings(5, max_iter=20)),
    ],
)
def test_compiled_pursuits_fit_hard_patches_as_the_reference_does(kernel, settings, dtype):
    Y, D = problem(dtype)
    Y = Y[:, hardest(60)]
    atoms, rows = np.ascontiguousarray(D.T), np.ascontiguousarray(Y.T)
    residuals, supports = [], []
    for kernels in (coding, reference):
        counts, indices, values = getattr(kernels, kernel)(kernels.prepare(atoms), rows, settings)
        used = np.arange(indices.shape[1]) < counts[:, None]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        X = csc_array((values[used], indices[used], indptr), shape=(256, 60))
        residuals.append(relative_residuals(Y, D, X))
        supports.append([tuple(row[:k]) for row, k in zip(indices, counts, strict=True)])
    same = np.array([a == b for a, b in zip(*supports, strict=True)])
    # Some atoms tie to rounding on patches as symmetric as these, and the two need not break a tie alike.
    assert same.mean() > 0.8
    np.testing.assert_allclose(residuals[0][same], residuals[1][same], rtol=0, atol=1e3 * np.finfo(dtype).eps)
    assert residuals[0].sum() == pytest.approx(residuals[1].sum(), rel=0.05)
