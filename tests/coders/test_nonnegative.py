"""Non-negative codes: against SciPy's non-negative least squares and scikit-learn's lasso."""

import numpy as np
import pytest
import scipy.optimize
from coding_problems import problem
from sklearn.decomposition import sparse_encode

import manifold_dl as mdl
from manifold_dl.coders import OMP, Lasso
from manifold_dl.kernels import coding
from manifold_dl.kernels.coding import NO_TOLERANCE, PursuitSettings, reference


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pursuit_without_a_limit_is_non_negative_least_squares(dtype):
    D, _, Y = problem(12, 8, 60, 3, noise=0.5)
    X = OMP(sparsity=8, nonnegative=True).encode(Y.astype(dtype), D.astype(dtype)).toarray()
    expected = np.stack([scipy.optimize.nnls(D, y)[0] for y in Y.T], axis=1)
    # Eight independent atoms: the solution is unique, to the rounding of the normal equations.
    np.testing.assert_allclose(X, expected, atol=1e-9 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("tol", [NO_TOLERANCE, 1.0])
def test_compiled_pursuit_equals_the_reference(tol):
    D, _, Y = problem(16, 50, 80, 4, noise=0.3)
    atoms, rows, settings = np.ascontiguousarray(D.T), np.ascontiguousarray(Y.T), PursuitSettings(5, tol)
    found = coding.nonnegative_omp(coding.prepare(atoms), rows, settings)
    expected = reference.nonnegative_omp(reference.prepare(atoms), rows, settings)
    np.testing.assert_array_equal(found.counts, expected.counts)
    for j, k in enumerate(found.counts):
        np.testing.assert_array_equal(found.indices[j, :k], expected.indices[j, :k])
        np.testing.assert_allclose(found.values[j, :k], expected.values[j, :k], rtol=1e-9, atol=1e-9)


def test_codes_are_positive_and_optimal_on_their_support():
    D, _, Y = problem(16, 50, 200, 4, noise=0.3)
    for coder in (OMP(sparsity=5, nonnegative=True), Lasso(0.1, sparsity=5, nonnegative=True)):
        X = coder.encode(Y, D)
        assert X.data.min() > 0 and np.diff(X.indptr).max() <= 5
        products = (D.T @ (Y - D @ X))[X.toarray() > 0]
        assert np.abs(products).max() < 1e-9  # normal equations of five atoms


def test_lasso_is_the_positive_code_of_scikit_learn():
    D, _, Y = problem(16, 40, 50, 4, noise=0.2)
    ours = Lasso(alpha=0.15, nonnegative=True, tol=1e-12).encode(Y, D).toarray()
    options = {"algorithm": "lasso_cd", "alpha": 0.15, "positive": True, "max_iter": 100_000}
    theirs = sparse_encode(Y.T, D.T, **options).T
    objective = [
        0.5 * np.sum((Y - D @ X) ** 2, axis=0) + 0.15 * np.abs(X).sum(axis=0) for X in (ours, theirs)
    ]
    assert ours.min() >= 0
    assert (objective[0] <= objective[1] * (1 + 1e-9)).all()
    np.testing.assert_allclose(objective[0], objective[1], rtol=1e-3)  # coordinate descent stops early


def test_parts_of_non_negative_data_are_found():
    # Non-negative atoms and codes: sparse non-negative factorisation.
    rng = np.random.default_rng(0)
    D = rng.random((16, 10)) * (rng.random((16, 10)) < 0.4) + 1e-3
    D /= np.linalg.norm(D, axis=0)
    X = rng.random((10, 400)) * (rng.random((10, 400)) < 0.25)
    update = mdl.SimCO(codes="fixed", manifold=mdl.manifolds.NonNegative, mu=0.0)
    coder = OMP(sparsity=4, nonnegative=True)
    result = mdl.learn_dictionary(D @ X, 10, coder=coder, update=update, max_iter=60, rng=0)
    assert result.dictionary.min() >= 0 and result.codes.data.min() > 0
    assert mdl.metrics.recovery(result.dictionary, D) >= 0.8


def test_codes_that_follow_the_dictionary_are_refused():
    Y = np.abs(np.random.default_rng(0).standard_normal((6, 20)))
    with pytest.raises(ValueError, match=r'SimCO\(codes="fixed"\)'):
        mdl.learn_dictionary(Y, 4, coder=OMP(sparsity=2, nonnegative=True), max_iter=1)
