"""Weights of entries and of signals: dense formulas with masks, Taylor slopes, and what must not matter."""

import numpy as np
import pytest
import scipy.linalg

from manifold_dl import update_problem
from manifold_dl.manifolds import Spheres
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.update_problem import make_objective
from manifold_dl.regularizers import Coherence


class Data:
    """Random signals of which a third of the entries is missing, supports of 0 to 4 atoms, a dictionary."""

    def __init__(self, m=10, d=12, n=70, seed=0, binary=False):
        rng = np.random.default_rng(seed)
        self.spheres = Spheres(m, d)
        self.D = self.spheres.random_point(rng)
        self.U = self.spheres.random_tangent_vector(self.D, rng)
        self.mask = np.zeros((d, n), bool)
        for j, size in enumerate(rng.integers(0, 5, n)):
            self.mask[rng.choice(d, size, replace=False), j] = True
        self.X = self.mask * rng.standard_normal((d, n))
        self.Y = rng.standard_normal((m, n))
        self.W = (rng.random((m, n)) > 0.3) * (1.0 if binary else rng.uniform(0.2, 3.0, (m, n)))
        self.W[:6] = np.maximum(self.W[:6], 0.5)  # no signal has fewer entries than atoms
        self.rng = rng

    def move(self, t):
        return self.spheres.exp(self.D, t * self.U)

    def dense_codes(self, D, mu, W):
        """min_x ‖√w∘(y − Dx)‖² + μ‖x‖² on the support, signal by signal, by NumPy's least squares."""
        X = np.zeros_like(self.X)
        for j in range(self.Y.shape[1]):
            I, root = np.flatnonzero(self.mask[:, j]), np.sqrt(W[:, j])
            A = np.vstack([root[:, None] * D[:, I], np.sqrt(mu) * np.eye(len(I))])
            X[I, j] = np.linalg.lstsq(A, np.append(root * self.Y[:, j], np.zeros(len(I))), rcond=None)[0]
        return X

    def dense_value(self, D, mu, W):
        X = self.dense_codes(D, mu, W)
        return np.sum(W * (self.Y - D @ X) ** 2) + mu * np.sum(X**2)


ridges = pytest.mark.parametrize("mu", [0.0, 0.1])
modes = pytest.mark.parametrize("codes", ["follow", "fixed"])


def close(found, expected, tolerance=1e-10):
    """Equal to ten digits of the largest entry: sums of a thousand products, and small normal equations."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


# Weights of entries against dense formulas


@ridges
def test_value_codes_and_gradient_are_the_dense_formulas(mu):
    data = Data()
    problem = update_problem(data.Y, data.mask, mu=mu, weights=data.W)
    X = data.dense_codes(data.D, mu, data.W)
    residual = data.Y - data.D @ X
    assert problem.cost(data.D) == pytest.approx(data.dense_value(data.D, mu, data.W), rel=1e-10)
    close(problem.codes(data.D).toarray(), X)
    close(problem.euclidean_gradient(data.D), -2 * (data.W * residual) @ X.T)
    assert problem.scale == pytest.approx(np.sum(data.W * data.Y**2), rel=1e-12)


@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_regularizers_are_added_to_the_weighted_sum(codes):
    data, c = Data(), 0.7
    options = {"codes": codes, "mu": 0.1, "weights": data.W}
    problem = update_problem(data.Y, data.X, regularizers=[Coherence(c, power=2)], **options)
    X = data.X if codes == "fixed" else data.dense_codes(data.D, 0.1, data.W)
    residual, gram = data.Y - data.D @ X, data.D.T @ data.D
    np.fill_diagonal(gram, 0)
    ridge = 0.1 * np.sum(X**2) if codes == "follow" else 0.0  # a constant of fixed codes, which is left out
    penalty = Coherence(c, power=2).value(data.D)
    assert penalty == pytest.approx(c * np.sum(gram**2), rel=1e-12)
    assert problem.cost(data.D) == pytest.approx(np.sum(data.W * residual**2) + ridge + penalty, rel=1e-10)
    close(problem.euclidean_gradient(data.D), -2 * (data.W * residual) @ X.T + 4 * c * data.D @ gram)


@ridges
def test_hessian_product_is_the_dense_formula(mu):
    data = Data()
    problem = update_problem(data.Y, data.mask, mu=mu, weights=data.W)
    X, H = data.dense_codes(data.D, mu, data.W), np.zeros_like(data.D)
    for j in range(data.Y.shape[1]):
        I = np.flatnonzero(data.mask[:, j])
        A, E, W, x = data.D[:, I], data.U[:, I], np.diag(data.W[:, j]), X[I, j]
        r = data.Y[:, j] - A @ x
        dx = np.linalg.solve(A.T @ W @ A + mu * np.eye(len(I)), E.T @ W @ r - A.T @ W @ E @ x)
        H[:, I] -= 2 * W @ (np.outer(-E @ x - A @ dx, x) + np.outer(r, dx))
    close(problem.euclidean_hessian(data.D, data.U), H)


@ridges
def test_phi_is_the_objective_along_the_geodesic(mu):
    data = Data()
    phi = update_problem(data.Y, data.mask, mu=mu, weights=data.W).restrict(data.D, data.U)
    for t in (-0.7, 0.0, 1e-4, 0.3, 2.0):
        assert phi(t) == pytest.approx(data.dense_value(data.move(t), mu, data.W), rel=1e-10)
        h = 1e-4  # a difference of fourth order: h⁴ times derivatives of some hundred
        steps = [data.dense_value(data.move(t + k * h), mu, data.W) for k in (-2, -1, 1, 2)]
        slope = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
        assert phi.derivative(t) == pytest.approx(slope, rel=1e-8, abs=1e-8 * phi(0))


def test_phi_of_large_supports_is_evaluated_without_products():
    data = Data(m=10, d=12, n=40)
    data.mask[:, :20] = np.arange(12)[:, None] < 9  # 171 products per signal of 10 entries
    data.W[:] = np.maximum(data.W, 0.1)
    problem = update_problem(data.Y, data.mask, mu=0.1, weights=data.W)
    assert not problem.objective.inner.has_closed_form
    phi = problem.restrict(data.D, data.U)
    for t in (-0.7, 0.0, 0.3):
        assert phi(t) == pytest.approx(data.dense_value(data.move(t), 0.1, data.W), rel=1e-10)
    h = 1e-5
    slope = (phi(0.3 + h) - phi(0.3 - h)) / (2 * h)
    assert phi.derivative(0.3) == pytest.approx(slope, rel=1e-6)  # h² and roundings over h


def test_the_end_of_a_trusted_search_has_the_codes_there():
    data = Data()
    problem = update_problem(data.Y, data.mask, mu=0.1, weights=data.W)
    policy = EvaluationPolicy(trust_line_search=True, keep_factors=False)
    objective = make_objective(problem.subset, problem.objective.inner, policy)
    point = data.move(0.3)
    objective.along(data.D, data.U).commit(0.3, point)
    assert objective.evaluate(point).gradient is None  # it comes from the search
    assert objective.value(point) == pytest.approx(problem.cost(point), rel=1e-12)
    close(objective.codes(point), problem.objective.codes(point))


@modes
@ridges
def test_taylor_remainders_have_slopes_two_and_three(mu, codes):
    data = Data()
    problem = update_problem(data.Y, data.X, mu=mu, codes=codes, weights=data.W)
    f0, gradient = problem.cost(data.D), problem.riemannian_gradient(data.D)
    first = np.vdot(gradient, data.U)
    second = np.vdot(problem.riemannian_hessian(data.D, data.U), data.U) / 2
    steps = np.logspace(-3, -2, 7)
    values = np.array([problem.cost(data.move(t)) for t in steps])
    for order, remainder in [
        (2, values - f0 - steps * first),
        (3, values - f0 - steps * (first + steps * second)),
    ]:
        slope = np.polyfit(np.log(steps), np.log(np.abs(remainder)), 1)[0]
        assert slope == pytest.approx(order, abs=0.05)  # the next order is a hundredth at these steps


def test_fixed_codes_are_the_dense_formula():
    data = Data()
    problem = update_problem(data.Y, data.X, codes="fixed", weights=data.W)
    residual = data.Y - data.D @ data.X
    assert problem.cost(data.D) == pytest.approx(np.sum(data.W * residual**2), rel=1e-12)
    close(problem.euclidean_gradient(data.D), -2 * (data.W * residual) @ data.X.T)
    close(problem.euclidean_hessian(data.D, data.U), 2 * (data.W * (data.U @ data.X)) @ data.X.T)
    np.testing.assert_array_equal(problem.codes(data.D).toarray(), data.X)
    phi = problem.restrict(data.D, data.U)
    for t in (-0.5, 0.0, 1.0):
        expected = np.sum(data.W * (data.Y - data.move(t) @ data.X) ** 2)
        assert phi(t) == pytest.approx(expected, rel=1e-12)


@modes
@ridges
@pytest.mark.parametrize("atoms", [[3], [5, 0, 9]])
def test_some_atoms_move_and_the_others_contribute(mu, codes, atoms):
    data = Data()
    options = {"atoms": atoms, "dictionary": data.D, "mu": mu, "codes": codes, "weights": data.W}
    problem = update_problem(data.Y, data.X, **options)
    point = data.move(0.3)[:, atoms]
    D, X = problem.dictionary(point), problem.codes(point).toarray()
    ridge = mu * np.sum(X[atoms] ** 2) if codes == "follow" else 0.0
    residual = data.Y - D @ X
    assert problem.cost(point) == pytest.approx(np.sum(data.W * residual**2) + ridge, rel=1e-10)
    if codes == "follow":  # optimal codes are stationary
        stationary = (D.T @ (data.W * residual) - mu * X)[atoms][data.mask[atoms]]
        assert np.abs(stationary).max() < 1e-12 * np.abs(data.Y).sum(axis=0).max()


def test_codes_outside_are_optimal_where_none_were_given():
    data = Data()
    problem = update_problem(data.Y, data.mask, atoms=[3], dictionary=data.D, mu=0.1, weights=data.W)
    close(problem.codes(data.D[:, [3]]).toarray(), data.dense_codes(data.D, 0.1, data.W))


# Weights of signals


@modes
@ridges
def test_weights_of_signals_multiply_the_whole_term(mu, codes):
    data = Data()
    w = data.rng.uniform(0.1, 4.0, data.Y.shape[1])
    problem = update_problem(data.Y, data.X, mu=mu, codes=codes, weights=w)
    ones = np.ones_like(data.W)
    X = data.X if codes == "fixed" else data.dense_codes(data.D, mu, ones)
    ridge = mu * np.sum(X**2, axis=0) if codes == "follow" else 0.0
    residual = data.Y - data.D @ X
    expected = np.sum(w * (np.sum(residual**2, axis=0) + ridge))
    assert problem.cost(data.D) == pytest.approx(expected, rel=1e-12)
    close(problem.codes(data.D).toarray(), X)
    close(problem.euclidean_gradient(data.D), -2 * (w * residual) @ X.T)


@ridges
def test_integer_weights_of_signals_are_repetitions(mu):
    data = Data()
    times = data.rng.integers(0, 4, data.Y.shape[1])
    repeated = np.repeat(np.arange(len(times)), times)
    weighted = update_problem(data.Y, data.mask, mu=mu, weights=times)
    copies = update_problem(data.Y[:, repeated], data.mask[:, repeated], mu=mu)
    assert weighted.cost(data.D) == pytest.approx(copies.cost(data.D), rel=1e-10)
    close(weighted.euclidean_gradient(data.D), copies.euclidean_gradient(data.D))
    close(weighted.euclidean_hessian(data.D, data.U), copies.euclidean_hessian(data.D, data.U))
    phis = [problem.restrict(data.D, data.U) for problem in (weighted, copies)]
    assert phis[0](0.3) == pytest.approx(phis[1](0.3), rel=1e-10)
    close(weighted.codes(data.D).toarray()[:, repeated], copies.codes(data.D).toarray())
    assert not weighted.codes(data.D).toarray()[:, times == 0].any()


# Laws


def everything(problem, data):
    """All that a problem computes, as one array."""
    phi = problem.restrict(data.D, data.U)
    parts = [problem.cost(data.D), phi(0.3), phi.derivative(0.2), problem.scale]
    arrays = [
        problem.euclidean_gradient(data.D),
        problem.euclidean_hessian(data.D, data.U),
        problem.preconditioner(data.D, data.U),
        problem.codes(data.D).data,
    ]
    return np.concatenate([parts, *(array.ravel() for array in arrays)])


@modes
@pytest.mark.parametrize("shape", ["signals", "entries"])
def test_weights_of_one_change_no_bit(codes, shape):
    data = Data()
    ones = np.ones(data.Y.shape if shape == "entries" else data.Y.shape[1])
    without = update_problem(data.Y, data.X, mu=0.1, codes=codes)
    with_ones = update_problem(data.Y, data.X, mu=0.1, codes=codes, weights=ones)
    np.testing.assert_array_equal(everything(with_ones, data), everything(without, data))


@pytest.mark.parametrize("kind", ["signals", "entries"])
def test_a_common_factor_of_the_weights_scales_the_objective(kind):
    # A weight per signal multiplies μ; weights of entries do not, so the law needs μ = 0 there.
    data = Data()
    weights, mu = (data.W, 0.0) if kind == "entries" else (data.W[0] + 0.1, 0.1)
    one, scaled = (update_problem(data.Y, data.mask, mu=mu, weights=c * weights) for c in (1.0, 7.0))
    assert scaled.cost(data.D) == pytest.approx(7 * one.cost(data.D), rel=1e-12)
    close(scaled.euclidean_gradient(data.D), 7 * one.euclidean_gradient(data.D))
    close(scaled.codes(data.D).toarray(), one.codes(data.D).toarray())


def test_constant_columns_are_weights_of_entries_and_leave_the_ridge():
    data, c = Data(), 7.0
    full = np.full(data.Y.shape, c)
    scaled = update_problem(data.Y, data.mask, mu=0.7, weights=full)
    assert scaled.cost(data.D) == pytest.approx(data.dense_value(data.D, 0.7, full), rel=1e-12)
    without = update_problem(data.Y, data.mask, mu=0.1)
    assert scaled.cost(data.D) == pytest.approx(c * without.cost(data.D), rel=1e-12)


@modes
@pytest.mark.parametrize("value", [np.nan, 1e300, -np.inf])
def test_the_value_of_a_missing_entry_never_matters(value, codes):
    data = Data()
    given = np.where(data.W > 0, data.Y, value)
    for atoms in (None, [1, 4, 7]):
        options = {"mu": 0.1, "codes": codes, "weights": data.W, "atoms": atoms, "dictionary": data.D}
        problems = [update_problem(Y, data.X, **options) for Y in (data.Y, given)]
        point = data.D if atoms is None else data.D[:, atoms]
        direction = data.U if atoms is None else data.U[:, atoms]
        for name, arguments in [
            ("cost", [point]),
            ("euclidean_gradient", [point]),
            ("euclidean_hessian", [point, direction]),
        ]:
            one, other = (getattr(problem, name)(*arguments) for problem in problems)
            np.testing.assert_array_equal(one, other)
        assert problems[0].restrict(point, direction)(0.3) == problems[1].restrict(point, direction)(0.3)
        np.testing.assert_array_equal(*(problem.codes(point).data for problem in problems))


def test_a_finite_value_needs_a_weight_and_others_are_refused():
    data = Data()
    data.W[2, 3], data.Y[2, 3] = 1e-3, np.nan
    with pytest.raises(ValueError, match="signals holds nan at row 2, column 3"):
        update_problem(data.Y, data.mask, weights=data.W)


@modes
def test_the_number_of_threads_changes_no_bit(codes):
    data = Data(n=5000)  # three blocks
    problems = [
        update_problem(data.Y, data.X, mu=0.1, codes=codes, weights=data.W, threads=k) for k in (1, 2, 3)
    ]
    expected = everything(problems[0], data)
    for problem in problems[1:]:
        np.testing.assert_array_equal(everything(problem, data), expected)


@modes
def test_single_precision(codes):
    data = Data()
    single = update_problem(
        data.Y.astype(np.float32), data.X.astype(np.float32), mu=0.1, codes=codes, weights=data.W
    )
    double = update_problem(data.Y, data.X, mu=0.1, codes=codes, weights=data.W)
    D = data.D.astype(np.float32)
    assert single.euclidean_gradient(D).dtype == single.codes(D).dtype == np.float32
    assert single.cost(D) == pytest.approx(double.cost(data.D), rel=1e-5)
    close(single.euclidean_gradient(D), double.euclidean_gradient(data.D), 1e-5)
    close(single.euclidean_hessian(D, data.U), double.euclidean_hessian(data.D, data.U), 1e-4)
    phi, expected = single.restrict(D, data.U.astype(np.float32)), double.restrict(data.D, data.U)
    assert phi(0.3) == pytest.approx(expected(0.3), rel=1e-4)


# Few observed entries


def test_few_observed_entries_get_minimum_norm_codes_and_a_warning():
    data = Data()
    data.mask[:, :3] = False
    data.mask[[0, 4, 7], :3] = True
    data.W[:, :3] = 0
    data.W[[1, 5], 0] = 2.0  # two entries for three atoms; the other two signals are missing completely
    with pytest.warns(UserWarning, match="1 of 70 signals have fewer observed entries than atoms"):
        problem = update_problem(data.Y, data.mask, weights=data.W)
    X = problem.codes(data.D).toarray()
    close(X, data.dense_codes(data.D, 0.0, data.W))  # lstsq returns the minimum-norm solution
    assert problem.counts.rank_deficient == 1
    assert not X[:, 1:3].any()
    A, root = data.D[[1, 5]][:, [0, 4, 7]], np.sqrt(2)
    expected = scipy.linalg.pinv(root * A) @ (root * data.Y[[1, 5], 0])
    close(X[[0, 4, 7], 0], expected)
    phi = problem.restrict(data.D, data.U)
    for t in (0.0, 0.4):
        assert phi(t) == pytest.approx(data.dense_value(data.move(t), 0.0, data.W), rel=1e-10)
    problem.euclidean_hessian(data.D, data.U)


@modes
def test_signals_without_any_observed_entry_do_not_matter(codes):
    data = Data()
    data.W[:, ::5] = 0
    seen = data.W.any(axis=0)
    options = {"mu": 0.0, "codes": codes}
    whole = update_problem(data.Y, data.X, weights=data.W, **options)
    part = update_problem(data.Y[:, seen], data.X[:, seen], weights=data.W[:, seen], **options)
    assert whole.cost(data.D) == pytest.approx(part.cost(data.D), rel=1e-13)
    close(whole.euclidean_gradient(data.D), part.euclidean_gradient(data.D))
    close(whole.preconditioner(data.D, data.U), part.preconditioner(data.D, data.U))
    assert whole.counts.rank_deficient == 0
    assert whole.restrict(data.D, data.U)(0.3) == pytest.approx(part.restrict(data.D, data.U)(0.3), rel=1e-12)


def test_digits_near_an_exact_fit():
    data = Data()
    data.mask[0] = True
    Y = data.D @ (data.mask * data.rng.standard_normal(data.mask.shape))
    problem = update_problem(Y, data.mask, weights=data.W)
    start = data.spheres.exp(data.D, 1e-6 * data.U)
    phi = problem.restrict(start, data.spheres.log(start, data.D))  # t = 1 is the exact fit
    f0, norm = problem.cost(start), np.sqrt(problem.scale)
    # Residuals of norm √f carry roundings of some eps‖Y‖ each.
    tolerance = 50 * np.finfo(float).eps * norm * np.sqrt(f0)
    assert phi(0.0) == pytest.approx(f0, abs=tolerance)
    assert phi(1.0) == pytest.approx(0.0, abs=tolerance)
    assert phi(0.5) == pytest.approx(f0 / 4, rel=1e-4)  # a parabola, but for the next order
