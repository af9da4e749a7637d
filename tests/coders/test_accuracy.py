"""Pursuits on picture patches over an overcomplete cosine dictionary, in both precisions.

Smooth patches make forward selection choose atoms close to each other, down to 1e-4 of their length, and some
sets of cosines are exactly dependent. What a coder returns is measured in double precision, from its codes.
"""

import functools

import numpy as np
import pytest
from pursuit_residuals import (
    cosines,
    relative_residuals,
    require_bounded_codes,
    require_residual_never_rises,
    rounding,
    windows,
    without_mean,
)
from scipy.sparse import csc_array

from manifold_dl.coders import (
    IHT,
    OMP,
    ForwardSelection,
    GradientPursuit,
    Lasso,
    MatchingPursuit,
    SubspacePursuit,
)
from manifold_dl.kernels import coding
from manifold_dl.kernels.coding import PursuitSettings, reference

data = pytest.importorskip("skimage.data")

SPARSITIES = (1, 2, 4, 8, 16)
TOL = 64 * 11.5**2  # the usual error goal for noise of standard deviation 10, per patch of 64 pixels
PRECISIONS = [np.float32, np.float64]


@functools.cache
def patches(n=20_000):
    """Mean-free 8×8 patches of a photograph, a signal in every column, whole numbers minus their mean."""
    every = windows(data.camera()).reshape(-1, 64)
    return without_mean(every[np.random.default_rng(0).choice(len(every), n, replace=False)])


def problem(dtype, n=20_000):
    return patches(n).astype(dtype), cosines().astype(dtype)


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


# --- The residual -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("tol", [None, TOL])
@pytest.mark.parametrize("coder", [OMP, ForwardSelection, MatchingPursuit])
def test_residual_never_rises_when_an_atom_is_added(coder, tol, dtype):
    require_residual_never_rises([coder(sparsity=s, tol=tol) for s in SPARSITIES], *problem(dtype))


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_residual_of_gradient_pursuit_never_rises_when_an_atom_is_added(dtype):
    require_residual_never_rises([GradientPursuit(sparsity=s) for s in SPARSITIES], *problem(dtype))


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_residual_of_subspace_pursuit_never_rises_from_round_to_round(dtype):
    # More atoms may leave more here: supports are not nested. Rounds are.
    rounds = [SubspacePursuit(sparsity=5, max_iter=n) for n in (1, 2, 100)]
    require_residual_never_rises(rounds, *problem(dtype))


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
def test_residual_never_rises_atom_by_atom_on_the_hardest_patches(coder, dtype):
    Y, D = problem(dtype)
    require_residual_never_rises([coder(sparsity=s) for s in range(1, 33)], Y[:, hardest(300)], D)


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
        require_bounded_codes(X, Y)
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


# --- The lasso --------------------------------------------------------------------------------------------

ALPHAS = (0.3, 0.1, 0.03, 0.01)


def lasso_terms(Y, D, X, alpha):
    """The objective of each signal and its duality gap, both in double precision from the codes."""
    Y, D, X = Y.astype(float), D.astype(float), X.toarray().astype(float)
    penalties = alpha * np.abs(D.T @ Y).max(axis=0)
    R = Y - D @ X
    objective = np.sum(R**2, axis=0) / 2 + penalties * np.abs(X).sum(axis=0)
    # The residual, shortened until no correlation exceeds the penalty, is feasible for the dual problem.
    correlations = np.abs(D.T @ R).max(axis=0)
    dual = R * np.minimum(1, penalties / np.where(correlations > 0, correlations, 1))
    return objective, objective - (np.sum(Y**2, axis=0) - np.sum((Y - dual) ** 2, axis=0)) / 2


def lasso_tolerance(alpha, dtype):
    """The relative duality gap allowed: `tol`, and correlations rounded to 16·eps·max |Dᵀy|, twice.

    The worst of 20,000 patches left half of it in single precision. Where codes of single precision fail, the
    gap is 0.9 of the objective: without a check, for one patch in 1,000 at alpha = 0.03.
    """
    return 1e-6 + 32 * np.finfo(dtype).eps / alpha


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_duality_gap_of_the_lasso_is_within_its_tolerance(alpha, dtype):
    Y, D = problem(dtype)
    Y = Y[:, :5000]
    objective, gap = lasso_terms(Y, D, Lasso(alpha, relative=True).encode(Y, D), alpha)
    assert (gap <= lasso_tolerance(alpha, dtype) * objective).all()


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_lasso_reaches_the_minimum_of_scikit_learn_on_hard_patches(alpha, dtype):
    linear_model = pytest.importorskip("sklearn.linear_model")
    Y, D = problem(dtype)
    Y = Y[:, hardest(40)]
    found, _ = lasso_terms(Y, D, Lasso(alpha, relative=True).encode(Y, D), alpha)
    penalties = alpha * np.abs(D.astype(float).T @ Y).max(axis=0)
    for y, penalty, value in zip(Y.T.astype(float), penalties, found, strict=True):
        # Coordinate descent needs many passes on atoms as close as these: its own gap says how far it came.
        theirs = linear_model.Lasso(penalty / 64, fit_intercept=False, tol=1e-5, max_iter=20_000)
        theirs.fit(D.astype(float), y)
        least = np.sum((y - D.astype(float) @ theirs.coef_) ** 2) / 2 + penalty * np.abs(theirs.coef_).sum()
        assert value <= least * (1 + lasso_tolerance(alpha, dtype))
        assert value >= least - 64 * theirs.dual_gap_ - 1e-12 * least


@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_lasso_from_codes_of_other_signals_reaches_the_same_minimum_in_single_precision(alpha):
    Y, D = problem(np.float32)
    Y, coder = Y[:, :1000], Lasso(alpha, relative=True)
    codes = coder.encode(Y[:, ::-1], D)
    objective, gap = lasso_terms(Y, D, coder.encode(Y, D, codes=codes), alpha)
    assert (gap <= lasso_tolerance(alpha, np.float32) * objective).all()
