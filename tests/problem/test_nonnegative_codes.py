"""Non-negative codes that follow the dictionary: against scipy's nnls, and the derivatives."""

import numpy as np
import pytest
import scipy.optimize

from manifold_dl import Lasso, SimCO, learn_dictionary
from manifold_dl.diagnostics import check_gradient, check_hessian
from manifold_dl.manifolds import NonNegative, Spheres
from manifold_dl.problem import lasso_problem, penalized_problem

M, D_, N = 8, 12, 50
RNG = np.random.default_rng(0)
TRUTH = np.abs(Spheres(M, D_).random_point(RNG))
Y = TRUTH @ (RNG.random((D_, N)) * (RNG.random((D_, N)) < 0.2)) + 0.05 * RNG.standard_normal((M, N))
W = RNG.uniform(0.3, 2.0, (M, N)) * (RNG.random((M, N)) < 0.8)
POINT = np.abs(Spheres(M, D_).random_point(RNG))
CODER = Lasso(alpha=0.1, nonnegative=True)


def by_nnls(D, W, alpha, mu):
    """min over x ≥ 0 of ½ Σ w (y − Dx)² + αΣx + (μ/2)‖x‖², completed to a square: codes and value."""
    X = np.zeros((D_, N))
    for j in range(N):
        root = np.sqrt(W[:, j])
        A = np.vstack([root[:, None] * D, np.sqrt(mu) * np.eye(D_)])
        X[:, j], _ = scipy.optimize.nnls(A, np.append(root * Y[:, j], np.full(D_, -alpha / np.sqrt(mu))))
    residual = Y - D @ X
    value = np.sum(W * residual**2) / 2 + alpha * X.sum() + mu / 2 * np.sum(X**2)
    return X, value, -(W * residual) @ X.T


@pytest.mark.parametrize("weights", [None, W], ids=["none", "entries"])
def test_codes_value_and_gradient_are_those_of_nnls(weights):
    mu = 0.2
    problem = lasso_problem(Y, D_, alpha=0.1, mu=mu, nonnegative=True, weights=weights)
    X, value, gradient = by_nnls(POINT, np.ones((M, N)) if weights is None else weights, 0.1, mu)
    assert (X > 0).any() and (X == 0).any()
    # The kernel stops at correlations within 1e-9 of the penalty.
    np.testing.assert_allclose(problem.codes(POINT).toarray(), X, atol=1e-7)
    assert problem.cost(POINT) == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(problem.euclidean_gradient(POINT), gradient, atol=1e-6)


@pytest.mark.parametrize("manifold", [Spheres, NonNegative])
@pytest.mark.parametrize("weights", [None, W], ids=["none", "entries"])
def test_gradient_and_hessian_pass_their_checks(manifold, weights):
    options = {"alpha": 0.1, "mu": 0.2, "nonnegative": True}
    problem = lasso_problem(Y, D_, **options, weights=weights, manifold=manifold)
    point = problem.manifold.random_point(np.random.default_rng(3))
    assert check_gradient(problem, point)
    assert check_hessian(problem, point, rng=1)


def test_without_a_ridge_the_optimality_conditions_hold():
    problem = penalized_problem(Y, D_, CODER)
    X = problem.codes(POINT).toarray()
    correlations = POINT.T @ (Y - POINT @ X)
    assert (X >= 0).all() and correlations.max() <= 0.1 * (1 + 1e-8)
    np.testing.assert_allclose(correlations[X > 0], 0.1, rtol=1e-8)


def test_sparse_nonnegative_factorisation_lowers_its_objective():
    steps = []
    update = SimCO(manifold=NonNegative, codes=CODER)
    result = learn_dictionary(
        Y, D_, update=update, init=POINT, max_iter=8, tol=0, replace=None, callbacks=[steps.append], rng=0
    )
    objective = [step.objective for step in steps]
    assert (result.codes.data >= 0).all() and (result.dictionary >= 0).all()
    assert (np.diff(objective) <= 1e-9 * objective[0]).all() and objective[-1] < objective[0]
    # What was lowered is the objective of nnls, up to its rounding and the tolerance of the codes.
    problem = penalized_problem(Y, D_, CODER)
    assert objective[-1] == pytest.approx(problem.cost(result.dictionary), rel=1e-6)
