"""Weights of signals and entries in every coder: against the unweighted problem of √w∘y over √w∘D."""

import numpy as np
import pytest
from coding_problems import problem

from manifold_dl.coders import (
    FOCUSS,
    IHT,
    OMP,
    BasisPursuit,
    BestOf,
    FixedSupport,
    ForwardSelection,
    GradientPursuit,
    Lasso,
    MatchingPursuit,
    RmsLasso,
    SubspacePursuit,
)
from manifold_dl.coders.calling import run_coder
from manifold_dl.components.errors import ComponentError
from manifold_dl.kernels import coding
from manifold_dl.kernels.coding import NO_TOLERANCE, LassoSettings, PursuitSettings, reference

SUPPORT = np.argsort(np.random.default_rng(0).random((30, 24)), axis=1)[:, :3]
CODERS = [
    OMP(sparsity=4),
    OMP(sparsity=8, tol=0.3),
    OMP(sparsity=4, nonnegative=True),
    ForwardSelection(sparsity=4),
    Lasso(alpha=0.1),
    Lasso(alpha=0.2, relative=True, sparsity=3),
    Lasso(alpha=0.1, nonnegative=True),
    BasisPursuit(),
    SubspacePursuit(sparsity=3),
    MatchingPursuit(sparsity=3),
    GradientPursuit(sparsity=3),
    IHT(sparsity=3),
    FOCUSS(sparsity=4),
    FixedSupport(SUPPORT),
    RmsLasso(alpha=0.1),
    RmsLasso(alpha=0.2, sparsity=3),
    BestOf([OMP(sparsity=3), RmsLasso(alpha=0.2, sparsity=3)]),
]


def incomplete(m=16, d=24, n=30, seed=0):
    """A dictionary, signals, and weights between 0.5 and 1.5 of which 40 % are zero."""
    D, _, Y = problem(m, d, n, 3, noise=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    return D, Y, (0.5 + rng.random((m, n))) * (rng.random((m, n)) < 0.6)


def for_one_signal(coder, Y, weights, j):
    """A coder that gives signal j alone the codes that it has among all signals."""
    if isinstance(coder, FixedSupport):
        return FixedSupport(SUPPORT[[j]])
    if isinstance(coder, RmsLasso):
        mean_weights = weights if weights.ndim == 1 else weights.mean(axis=0)
        rms = np.sqrt(np.sum(weights * Y**2) / np.sum(mean_weights))
        return Lasso(alpha=coder.alpha * rms, sparsity=coder.sparsity)
    if isinstance(coder, BestOf):
        return BestOf([for_one_signal(part, Y, weights, j) for part in coder.coders])
    return coder


def padded(kernel, d, *arguments):
    """The codes of a kernel as a dense n×d array."""
    counts, indices, values = kernel(*arguments)
    X = np.zeros((len(counts), d))
    for j, k in enumerate(counts):
        X[j, indices[j, :k]] = values[j, :k]
    return X


@pytest.mark.parametrize("coder", CODERS, ids=lambda coder: type(coder).__name__)
def test_weights_of_entries_give_the_codes_of_the_weighted_problem(coder):
    D, Y, W = incomplete()
    X = coder.encode(Y, D, weights=W).toarray()
    unit = not isinstance(coder, Lasso | RmsLasso | BestOf | BasisPursuit | FixedSupport)
    for j in range(Y.shape[1]):
        roots = np.sqrt(W[:, j])
        own = roots[:, None] * D
        norms = np.linalg.norm(own, axis=0) if unit else np.ones(D.shape[1])  # greedy choices go by the angle
        one = for_one_signal(coder, Y, W, j)
        expected = one.encode((roots * Y[:, j])[:, None], own / norms).toarray()[:, 0] / norms
        # Two factorisations of at most ten random atoms, some nearly dependent on the observed entries.
        np.testing.assert_allclose(X[:, j], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", ["omp", "forward_selection", "nonnegative_omp"])
@pytest.mark.parametrize("tol", [NO_TOLERANCE, 0.5])
@pytest.mark.parametrize(("m", "d"), [(12, 40), (20, 9), (7, 300)])
def test_compiled_weighted_pursuits_equal_the_reference(kernel, tol, m, d):
    D, Y, W = incomplete(m, d)
    W[:4] = 1  # with a single observed entry every atom fits as well as any other
    atoms, roots = np.ascontiguousarray(D.T), np.ascontiguousarray(np.sqrt(W).T)
    rest = roots * Y.T, roots, PursuitSettings(3, tol)
    found = padded(getattr(coding, f"weighted_{kernel}"), d, coding.prepare(atoms), *rest)
    expected = padded(getattr(reference, f"weighted_{kernel}"), d, reference.prepare(atoms), *rest)
    np.testing.assert_array_equal(found != 0, expected != 0)
    # An orthogonal factorisation against lstsq: the condition of three random atoms.
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", ["omp", "forward_selection"])
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.4, 0.9, 1.0])
# In single precision atoms that differ by 1e-6 of their squared norm alone count as dependent.
@pytest.mark.parametrize(("dtype", "light"), [(np.float32, 0.2), (np.float64, 0.2), (np.float64, 1e-6)])
def test_pursuits_of_two_weights_equal_the_reference(kernel, dtype, fraction, light):
    # Products by the Gram matrix where most weights are equal; over the entries where some are far smaller.
    m, d, n = 24, 60, 40
    D, Y, _ = incomplete(m, d, n)
    D[:, 1] = D[:, 0] + 1e-2 * D[:, 1]  # nearly dependent: large coefficients
    D[:, 1] /= np.linalg.norm(D[:, 1])
    W = np.where(np.random.default_rng(2).random((n, m)) < fraction, light, 1.0)
    roots = np.sqrt(3 * W)
    rows = roots * Y.T
    atoms = np.ascontiguousarray(D.T)
    expected = padded(
        getattr(reference, f"weighted_{kernel}"), d, reference.prepare(atoms), rows, roots, PursuitSettings(6)
    )
    prepared = coding.prepare(atoms.astype(dtype))
    settings = PursuitSettings(6)
    found = padded(
        getattr(coding, f"weighted_{kernel}"), d, prepared, rows.astype(dtype), roots.astype(dtype), settings
    )
    # Single precision may choose otherwise where two atoms serve equally well: the residual is as small.
    residuals = [np.sum((rows - roots * (X @ atoms)) ** 2, axis=1) for X in (found, expected)]
    np.testing.assert_allclose(*residuals, rtol=1e-9 if dtype == np.float64 else 0.05, atol=1e-6)
    if dtype == np.float64:
        np.testing.assert_array_equal(found != 0, expected != 0)
        # The condition of a nearly dependent pair among weights as far apart as a million.
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("refit", [0, 3])
@pytest.mark.parametrize("relative", [False, True])
def test_compiled_weighted_lasso_equals_the_reference(nonnegative, refit, relative):
    D, Y, W = incomplete(12, 40)
    atoms, roots = np.ascontiguousarray(D.T), np.ascontiguousarray(np.sqrt(W).T)
    settings = LassoSettings(np.array([0.2]), relative, 1e-12, refit, nonnegative)
    rest = roots * Y.T, roots, settings
    found = padded(coding.weighted_lasso, 40, coding.prepare(atoms), *rest)
    expected = padded(reference.weighted_lasso, 40, reference.prepare(atoms), *rest)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("coder", CODERS, ids=lambda coder: type(coder).__name__)
def test_weight_per_signal_changes_no_code_and_without_weight_there_is_none(coder):
    D, Y, _ = incomplete()
    w = np.random.default_rng(1).random(Y.shape[1])
    w[3] = 0
    hidden = Y.copy()
    hidden[:, 3] = np.nan
    X = coder.encode(hidden, D, weights=w).toarray()
    expected = coder.encode(Y, D).toarray()
    if isinstance(
        coder, RmsLasso | BestOf
    ):  # their penalty is that of all signals, as the weights count them
        ones = (for_one_signal(coder, Y, w, j).encode(Y[:, [j]], D).toarray() for j in range(Y.shape[1]))
        expected = np.hstack(list(ones))
    expected[:, 3] = 0
    # The same bits, but for the penalty: another sum of squares.
    rounding = 1e-9 if isinstance(coder, RmsLasso | BestOf) else 0
    np.testing.assert_allclose(X, expected, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("coder", CODERS, ids=lambda coder: type(coder).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_value_of_a_missing_entry_never_matters(coder, dtype):
    D, Y, W = incomplete()
    W[:, 7] = 0
    D, Y = D.astype(dtype), Y.astype(dtype)
    expected = coder.encode(Y, D, weights=W)
    assert expected.dtype == dtype and np.isfinite(expected.data).all()
    assert not expected[:, [7]].data.any()
    for value in (np.nan, np.finfo(dtype).max / 10, -np.inf):
        found = coder.encode(np.where(W > 0, Y, dtype(value)), D, weights=W)
        np.testing.assert_array_equal(found.toarray(), expected.toarray())


def test_equal_columns_of_weights_are_weights_of_entries():
    # Multiplying all weights of a signal leaves the choice of OMP as it is; an absolute penalty counts less.
    D, Y, _ = incomplete()
    W = np.full(Y.shape, 4.0)
    np.testing.assert_allclose(
        OMP(sparsity=3).encode(Y, D, weights=W).toarray(), OMP(sparsity=3).encode(Y, D).toarray(), atol=1e-12
    )
    # ½·4‖y − Dx‖² + α‖x‖₁ has the minimum of α/4.
    weighted, divided = Lasso(alpha=0.4).encode(Y, D, weights=W), Lasso(alpha=0.1).encode(Y, D)
    np.testing.assert_allclose(weighted.toarray(), divided.toarray(), atol=1e-9)


@pytest.mark.parametrize(
    "coder", [OMP(sparsity=6), ForwardSelection(sparsity=6), OMP(sparsity=6, nonnegative=True)]
)
def test_no_support_is_larger_than_the_number_of_observed_entries(coder):
    D, Y, _ = incomplete()
    W = np.zeros(Y.shape)
    for j in range(Y.shape[1]):
        W[: j % 8, j] = 1
    sizes = np.diff(coder.encode(Y, D, weights=W).indptr)
    observed = np.arange(Y.shape[1]) % 8
    assert (sizes <= np.minimum(observed, 6)).all() and (sizes[observed == 0] == 0).all()
    assert sizes[observed == 4].min() >= 1


def test_tolerance_bounds_the_weighted_squared_residual():
    D, Y, W = incomplete()
    X = OMP(tol=0.3).encode(Y, D, weights=W)
    left = np.sum(W * (Y - D @ X) ** 2, axis=0)
    assert (left <= 0.3 * (1 + 1e-12)).all() and left.max() > 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_are_the_same_for_any_number_of_threads(dtype):
    D, _, Y = problem(12, 30, 3000, 3, noise=0.2)
    D, Y = D.astype(dtype), Y.astype(dtype)
    W = (np.random.default_rng(0).random(Y.shape) < 0.5).astype(dtype)
    one, three = (OMP(sparsity=3).encode(Y, D, weights=W, threads=threads) for threads in (1, 3))
    assert one.dtype == dtype
    np.testing.assert_array_equal(one.toarray(), three.toarray())


def test_coder_without_the_parameter_is_refused_with_a_sentence():
    class Correlations:
        def encode(self, signals, dictionary):
            return dictionary.T @ signals

    with pytest.raises(ComponentError, match="has no parameter `weights`"):
        run_coder(Correlations(), np.eye(2), np.eye(2), weights=np.ones((2, 2)))


def test_best_of_hands_weights_of_signals_on():
    D, Y, _ = incomplete()
    times = np.arange(Y.shape[1]) % 3
    repeated = np.repeat(np.arange(len(times)), times)
    # Its penalty is relative to the rms norm of all signals, each counted as often as its weight says.
    coder = BestOf([RmsLasso(alpha=0.2)])
    found = coder.encode(Y, D, weights=times).toarray()[:, repeated]
    np.testing.assert_allclose(found, coder.encode(Y[:, repeated], D).toarray(), atol=1e-12)
