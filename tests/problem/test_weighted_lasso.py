"""ℓ₁ codes with weights: another solver, dense formulas, Taylor slopes, and what must not matter."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from manifold_dl import Lasso, RmsLasso, SimCO, lasso_problem
from manifold_dl.components.errors import ComponentError
from manifold_dl.diagnostics import check_gradient, check_hessian
from manifold_dl.kernels.reduced import lasso as compiled
from manifold_dl.kernels.reduced import reference_lasso as reference
from manifold_dl.manifolds import Spheres
from manifold_dl.problem import penalized_problem

M, D, N, ALPHA = 10, 14, 60, 0.1
both_ridges = pytest.mark.parametrize("mu", [0.0, 0.2])


class Data:
    """Signals of which a third of the entries is missing, and one that has none; a point, a direction."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        spheres = Spheres(M, D)
        self.point = spheres.random_point(rng)
        self.direction = spheres.random_tangent_vector(self.point, rng)
        codes = rng.standard_normal((D, N)) * (rng.random((D, N)) < 0.2)
        self.Y = spheres.random_point(rng) @ codes + 0.1 * rng.standard_normal((M, N))
        self.W = (rng.random((M, N)) > 0.3) * rng.uniform(0.2, 3.0, (M, N))
        self.W[:, 5] = 0
        self.per_signal = rng.integers(0, 4, N).astype(float)

    def codes(self, W, mu):
        """Signal by signal by scikit-learn's coordinate descent on the observed rows."""
        X = np.zeros((D, N))
        for j in range(N):
            seen = W[:, j] > 0
            if not seen.any():
                continue
            root = np.sqrt(W[seen, j])
            penalty = (ALPHA + mu) / seen.sum()
            model = ElasticNet(
                penalty, l1_ratio=ALPHA / (ALPHA + mu), fit_intercept=False, tol=1e-13, max_iter=10**6
            )
            X[:, j] = model.fit(root[:, None] * self.point[seen], root * self.Y[seen, j]).coef_
        return X


def close(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def exact_codes(Y, D, W, mu, X):
    """The solution for the signs of X, by a dense solve."""
    exact = np.zeros_like(X)
    for j in range(X.shape[1]):
        I = np.flatnonzero(X[:, j])
        A, w = D[:, I], W[:, j]
        M_ = A.T @ (w[:, None] * A) + mu * np.eye(len(I))
        exact[I, j] = np.linalg.solve(M_, A.T @ (w * Y[:, j]) - ALPHA * np.sign(X[I, j]))
    return exact


@both_ridges
def test_codes_are_those_of_scikit_learn_on_the_observed_rows(mu):
    data = Data()
    X = lasso_problem(data.Y, D, alpha=ALPHA, mu=mu, weights=data.W).codes(data.point).toarray()
    # Coordinate descent stops at a duality gap of 1e-13‖y‖²: codes agree to about its square root.
    np.testing.assert_allclose(X, data.codes(data.W, mu), atol=1e-5)
    assert not X[:, 5].any()  # nothing of this signal is observed


@both_ridges
def test_value_gradient_and_hessian_product_are_the_dense_formulas(mu):
    data = Data()
    problem = lasso_problem(data.Y, D, alpha=ALPHA, mu=mu, weights=data.W)
    found = problem.codes(data.point).toarray()
    X = exact_codes(data.Y, data.point, data.W, mu, found)
    R = data.Y - data.point @ X
    value = np.sum(data.W * R**2) / 2 + ALPHA * np.abs(X).sum() + mu / 2 * np.sum(X**2)
    close(found, X)
    assert problem.cost(data.point) == pytest.approx(value, rel=1e-10)
    close(problem.euclidean_gradient(data.point), -(data.W * R) @ X.T)
    H = np.zeros_like(data.point)
    for j in range(N):
        I = np.flatnonzero(X[:, j])
        A, E, w, x, r = data.point[:, I], data.direction[:, I], data.W[:, j], X[I, j], R[:, j]
        system = A.T @ (w[:, None] * A) + mu * np.eye(len(I))
        dx = np.linalg.solve(system, E.T @ (w * r) - A.T @ (w * (E @ x)))
        dr = -E @ x - A @ dx
        H[:, I] -= np.outer(w * dr, x) + np.outer(w * r, dx)
    close(problem.euclidean_hessian(data.point, data.direction), H)


@both_ridges
@pytest.mark.parametrize("kind", ["entries", "signals"])
def test_taylor_remainders_have_slopes_two_and_three(kind, mu):
    data = Data(3)
    weights = data.W if kind == "entries" else data.per_signal
    problem = lasso_problem(data.Y, D, alpha=ALPHA, mu=mu, weights=weights)
    assert check_gradient(problem, data.point)
    assert check_hessian(problem, data.point, rng=1).slope > 2.9


@pytest.mark.parametrize("weights", [np.ones(N), np.ones((M, N))], ids=["signals", "entries"])
def test_weights_of_one_change_no_bit(weights):
    data = Data(1)
    plain, other = (lasso_problem(data.Y, D, alpha=ALPHA, weights=w) for w in (None, weights))
    assert plain.cost(data.point) == other.cost(data.point)
    np.testing.assert_array_equal(plain.codes(data.point).toarray(), other.codes(data.point).toarray())
    gradients = [problem.euclidean_gradient(data.point) for problem in (plain, other)]
    np.testing.assert_array_equal(*gradients)


@pytest.mark.parametrize("value", [np.nan, 1e300, np.inf])
def test_the_value_of_a_missing_entry_does_not_matter(value):
    data = Data(2)
    other = np.where(data.W == 0, value, data.Y)
    first, second = (lasso_problem(Y, D, alpha=ALPHA, weights=data.W) for Y in (data.Y, other))
    assert first.cost(data.point) == second.cost(data.point)
    np.testing.assert_array_equal(*(p.euclidean_gradient(data.point) for p in (first, second)))
    np.testing.assert_array_equal(*(p.euclidean_hessian(data.point, data.direction) for p in (first, second)))
    np.testing.assert_array_equal(*(p.codes(data.point).toarray() for p in (first, second)))


@both_ridges
def test_integer_weights_of_signals_are_repetition(mu):
    data = Data(4)
    times = data.per_signal.astype(int)
    weighted = lasso_problem(data.Y, D, alpha=ALPHA, mu=mu, weights=data.per_signal)
    repeated = lasso_problem(np.repeat(data.Y, times, axis=1), D, alpha=ALPHA, mu=mu)
    assert weighted.cost(data.point) == pytest.approx(repeated.cost(data.point), rel=1e-10)
    close(weighted.euclidean_gradient(data.point), repeated.euclidean_gradient(data.point))
    close(*(p.euclidean_hessian(data.point, data.direction) for p in (weighted, repeated)))
    X = weighted.codes(data.point).toarray()
    close(np.repeat(X, times, axis=1), repeated.codes(data.point).toarray())
    assert not X[:, times == 0].any()


def test_scaling_the_weights_of_signals_scales_the_objective():
    data = Data(5)
    first, second = (lasso_problem(data.Y, D, alpha=ALPHA, weights=c * data.per_signal) for c in (1, 7.0))
    assert 7 * first.cost(data.point) == pytest.approx(second.cost(data.point), rel=1e-12)
    close(first.codes(data.point).toarray(), second.codes(data.point).toarray())


def test_constant_columns_of_entry_weights_do_not_multiply_the_penalty():
    data = Data(6)
    W = np.full((M, N), 4.0)
    found = lasso_problem(data.Y, D, alpha=ALPHA, weights=W).cost(data.point)
    # 4·(½‖y − Dx‖² + (α/4)‖x‖₁)
    assert found == pytest.approx(4 * lasso_problem(data.Y, D, alpha=ALPHA / 4).cost(data.point), rel=1e-10)


@both_ridges
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("of_signals", [False, True], ids=["entries", "both"])
def test_compiled_pass_agrees_with_the_reference(mu, dtype, of_signals):
    data = Data(7)
    Y, W, atoms = (np.ascontiguousarray(a.T.astype(dtype)) for a in (data.Y, data.W, data.point))
    roots = np.sqrt(data.per_signal).astype(dtype) if of_signals else None
    Y = Y if roots is None else roots[:, None] * Y
    found, expected = (
        module.fit_weighted_lasso(Y, W, module.prepare_lasso(atoms, mu), ALPHA, mu, roots=roots)
        for module in (compiled, reference)
    )
    tolerance = 1e-11 if dtype == np.float64 else 1e-4
    assert found.value == pytest.approx(expected.value, rel=tolerance)
    np.testing.assert_array_equal(found.codes.indices, expected.codes.indices)
    close(found.gradient, expected.gradient, tolerance)
    close(found.energies, expected.energies, tolerance)


def test_codes_do_not_depend_on_the_start():
    data = Data(8)
    Y, W, atoms = (np.ascontiguousarray(a.T) for a in (data.Y, data.W, data.point))
    near = atoms + 0.1 * np.random.default_rng(0).standard_normal(atoms.shape)
    start = compiled.fit_weighted_lasso(Y, W, compiled.prepare_lasso(near, 0.0), 0.05, 0.0).codes
    prepared = compiled.prepare_lasso(atoms, 0.0)
    warm, cold = (compiled.fit_weighted_lasso(Y, W, prepared, ALPHA, 0.0, s) for s in (start, None))
    assert warm.value == cold.value
    np.testing.assert_array_equal(warm.gradient, cold.gradient)


class Ridge:
    """p(x) = ½‖x‖², in closed form."""

    def encode(self, signals, dictionary, weights=None):
        W = np.ones_like(signals) if weights is None else weights
        codes = np.empty((dictionary.shape[1], signals.shape[1]))
        for j, w in enumerate(W.T):
            system = dictionary.T @ (w[:, None] * dictionary) + np.eye(dictionary.shape[1])
            codes[:, j] = np.linalg.solve(system, dictionary.T @ (w * signals[:, j]))
        return codes

    def penalty(self, codes):
        return 0.5 * float((codes * codes).sum())


@pytest.mark.parametrize("kind", ["entries", "signals"])
def test_a_penalty_of_the_user_takes_weights(kind):
    data = Data(9)
    weights = data.W if kind == "entries" else data.per_signal
    problem = penalized_problem(data.Y, D, Ridge(), weights=weights)
    X = problem.codes(data.point).toarray()
    W, w = (data.W, np.ones(N)) if kind == "entries" else (np.tile(data.per_signal, (M, 1)), data.per_signal)
    R = data.Y - data.point @ X
    value = np.sum(W * R**2) / 2 + np.sum(w * X**2) / 2
    assert problem.cost(data.point) == pytest.approx(value, rel=1e-10)
    close(problem.euclidean_gradient(data.point), -(W * R) @ X.T)
    assert check_gradient(problem, data.point)


def test_a_coder_without_weights_is_refused_where_entries_have_them():
    class Plain(Ridge):
        def encode(self, signals, dictionary):
            return Ridge().encode(signals, dictionary)

    data = Data()
    with pytest.raises(ComponentError, match="has no parameter `weights`"):
        penalized_problem(data.Y, D, Plain(), weights=data.W)
    penalized_problem(data.Y, D, Plain(), weights=data.per_signal)


@pytest.mark.parametrize("kind", ["entries", "signals"])
def test_simco_with_l1_codes_lowers_the_weighted_objective(kind):
    data = Data(10)
    weights = data.W if kind == "entries" else data.per_signal
    problem = lasso_problem(data.Y, D, alpha=ALPHA, weights=weights)
    new, codes = SimCO(codes=Lasso(alpha=ALPHA))(data.Y, data.point, np.zeros((D, N)), weights=weights)
    assert problem.cost(new) < problem.cost(data.point)
    close(codes.toarray(), problem.codes(new).toarray())


def test_the_penalty_of_rms_lasso_is_the_same_in_coder_and_update():
    data = Data(11)
    new, codes = SimCO(codes=RmsLasso(alpha=0.05))(data.Y, data.point, np.zeros((D, N)), weights=data.W)
    close(codes.toarray(), RmsLasso(alpha=0.05).encode(data.Y, new, weights=data.W).toarray(), 1e-6)
