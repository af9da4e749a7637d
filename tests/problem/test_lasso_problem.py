"""Learning with ℓ₁ codes as one Pymanopt problem: derivatives, optimizers, subsets, other penalties."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from pymanopt.manifolds import Oblique
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from sklearn.linear_model import ElasticNet

import manifold_dl as mdl
from manifold_dl import GoldenSection, WolfeSearch, lasso_problem
from manifold_dl.diagnostics import check_gradient, check_hessian
from manifold_dl.manifolds import Lines, Spheres, ZeroMean
from manifold_dl.problem import penalized_problem
from manifold_dl.regularizers import Coherence

M, D, N = 8, 12, 70


def draw(seed=0, n=N, dtype=float):
    truth, _, Y = mdl.datasets.synthetic(M, D, n, sparsity=2, snr_db=20.0, rng=seed)
    return truth, Y.astype(dtype)


def make(seed=0, **options):
    """A problem, a random point and a unit tangent vector there."""
    _, Y = draw(seed)
    problem = lasso_problem(Y, D, **{"alpha": 0.1, **options})
    rng = np.random.default_rng(seed + 100)
    point = problem.manifold.random_point(rng)
    return Y, problem, point, problem.manifold.random_tangent_vector(point, rng)


both_ridges = pytest.mark.parametrize("mu", [0.0, 0.2])


@both_ridges
def test_codes_and_value_are_those_of_scikit_learn(mu):
    Y, problem, point, _ = make(mu=mu)
    alpha = 0.1
    penalty = (alpha + mu) / M  # of scikit-learn: 1/(2m)‖y − Dx‖² + a·r‖x‖₁ + a(1 − r)/2 ‖x‖²
    model = ElasticNet(penalty, l1_ratio=alpha / (alpha + mu), fit_intercept=False, tol=1e-12, max_iter=10**5)
    X = np.stack([model.fit(point, y).coef_ for y in Y.T], axis=1)
    # Coordinate descent stops at a duality gap of 1e-12‖y‖²: codes agree to about its square root.
    np.testing.assert_allclose(problem.codes(point).toarray(), X, atol=1e-5)
    value = np.sum((Y - point @ X) ** 2) / 2 + alpha * np.abs(X).sum() + mu / 2 * np.sum(X**2)
    np.testing.assert_allclose(problem.cost(point), value, rtol=1e-8)


@pytest.mark.parametrize("seed", range(200))
def test_gradient_agrees_with_differences_where_no_sign_changes(seed):
    _, problem, point, direction = make(seed % 20, mu=0.1 * (seed % 2))
    rng = np.random.default_rng(seed)
    point = problem.manifold.random_point(rng)
    direction = problem.manifold.random_tangent_vector(point, rng)
    ends = [problem.manifold.exp(point, sign * 1e-6 * direction) for sign in (1, -1)]
    if problem.piece(ends[0]) != problem.piece(ends[1]):
        pytest.skip("a coefficient changes its sign within the difference")
    gradient = problem.riemannian_gradient(point)
    difference = (problem.cost(ends[0]) - problem.cost(ends[1])) / 2e-6
    expected = problem.manifold.inner_product(point, gradient, direction)
    assert abs(difference - expected) <= 1e-6 * problem.manifold.norm(point, gradient)


@both_ridges
@pytest.mark.parametrize("manifold", [Spheres, Lines, ZeroMean, Oblique])
def test_taylor_remainders_have_slopes_two_and_three(manifold, mu):
    _, Y = draw(3)
    problem = lasso_problem(Y, D, alpha=0.1, mu=mu, manifold=manifold, regularizers=[Coherence(0.1)])
    rng = np.random.default_rng(7)
    point = Spheres(M, D).random_point(rng) if manifold is Oblique else problem.manifold.random_point(rng=rng)
    assert check_gradient(problem, point)
    report = check_hessian(problem, point, rng=1)
    assert report.slope > 2.9
    assert "There is a kink at a step of" in str(report)  # pieces of 70 signals end long before t = 1


@both_ridges
def test_hessian_product_agrees_with_differences_of_the_gradient(mu):
    _, problem, point, direction = make(5, mu=mu)
    h = 1e-6
    ends = [point + h * direction, point - h * direction]
    assert problem.piece(ends[0]) == problem.piece(ends[1])
    difference = (problem.euclidean_gradient(ends[0]) - problem.euclidean_gradient(ends[1])) / (2 * h)
    product = problem.euclidean_hessian(point, direction)
    np.testing.assert_allclose(product, difference, atol=1e-7 * np.abs(difference).max())


def optimizers():
    for searcher in (GoldenSection(), WolfeSearch()):
        name = type(searcher).__name__
        yield pytest.param(SteepestDescent(line_searcher=searcher, max_iterations=400), id=f"SD-{name}")
        yield pytest.param(ConjugateGradient(line_searcher=searcher, max_iterations=200), id=f"CG-{name}")
    yield pytest.param(TrustRegions(max_iterations=60), id="TR")
    yield pytest.param(mdl.LBFGS(max_iterations=200), id="LBFGS")


@pytest.fixture(scope="module")
def near_minimum():
    """A start close to a minimum, found with high accuracy."""
    _, Y = draw(1, n=300)
    problem = lasso_problem(Y, D, alpha=0.1)
    point = (
        TrustRegions(max_iterations=200, verbosity=0, min_gradient_norm=1e-10)
        .run(problem, initial_point=Spheres(M, D).random_point(rng=0))
        .point
    )
    rng = np.random.default_rng(5)
    start = Spheres(M, D).exp(point, 0.02 * Spheres(M, D).random_tangent_vector(point, rng))
    return Y, problem.cost(point), start


@pytest.mark.parametrize("optimizer", list(optimizers()))
def test_optimizers_agree_on_the_minimum_and_never_rise(optimizer, near_minimum):
    Y, minimum, start = near_minimum
    problem = lasso_problem(Y, D, alpha=0.1)
    optimizer._verbosity = 0
    result = optimizer.run(problem, initial_point=start)
    assert problem.cost(result.point) <= minimum * (1 + 1e-6)
    np.testing.assert_allclose(problem.cost(result.point), minimum, rtol=1e-6)
    values = [iterate.value for iterate in problem.record]
    rounding = 1e-12 * values[0]
    assert all(after <= before + rounding for before, after in pairwise(values))


def test_line_search_ends_at_an_evaluated_point():
    _, problem, point, _ = make(2)
    ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=20, verbosity=0).run(
        problem, initial_point=point
    )
    # One pass at the start; every other pass was a probe, and its end was found in the cache.
    assert problem.counts.value == 1


def test_restriction_agrees_with_the_cost_on_the_geodesic():
    _, problem, point, direction = make(4)
    phi = problem.restrict(point, direction)
    for t in (0.0, 0.1, -0.3, 1.7):
        end = problem.manifold.exp(point, t * direction)
        assert phi(t) == problem.cost(end)
    h = 1e-6
    np.testing.assert_allclose(phi.derivative(0.1), (phi(0.1 + h) - phi(0.1 - h)) / (2 * h), rtol=1e-5)


@pytest.mark.parametrize("atoms", [[3], [7, 0, 4], list(range(D))[::-1]])
def test_a_set_of_atoms_has_the_derivatives_of_the_whole(atoms):
    Y, whole, point, direction = make(6, mu=0.1)
    part = lasso_problem(Y, D, alpha=0.1, mu=0.1, atoms=atoms, dictionary=point)
    assert part.cost(point[:, atoms]) == whole.cost(point)
    np.testing.assert_array_equal(part.dictionary(point[:, atoms]), point)
    np.testing.assert_allclose(
        part.euclidean_gradient(point[:, atoms]), whole.euclidean_gradient(point)[:, atoms], atol=1e-13
    )
    only = np.zeros_like(point)
    only[:, atoms] = direction[:, atoms]
    np.testing.assert_allclose(
        part.euclidean_hessian(point[:, atoms], direction[:, atoms]),
        whole.euclidean_hessian(point, only)[:, atoms],
        atol=1e-12,
    )
    np.testing.assert_array_equal(part.codes(point[:, atoms]).toarray(), whole.codes(point).toarray())


def test_threads_change_no_bit():
    _, Y = draw(0, n=5000)
    point = Spheres(M, D).random_point(rng=0)
    one, two = (lasso_problem(Y, D, alpha=0.1, threads=threads) for threads in (1, 2))
    assert one.cost(point) == two.cost(point)
    np.testing.assert_array_equal(one.euclidean_gradient(point), two.euclidean_gradient(point))
    assert (one.codes(point) != two.codes(point)).nnz == 0


@pytest.mark.parametrize("exponent", [-300, -3, 5, 300])
def test_signals_and_penalty_scale_together(exponent):
    _, Y = draw(2)
    point = Spheres(M, D).random_point(rng=0)
    ordinary = lasso_problem(Y, D, alpha=0.1)
    scaled = lasso_problem(np.ldexp(Y, exponent), D, alpha=float(np.ldexp(0.1, exponent)))
    np.testing.assert_array_equal(
        scaled.codes(point).toarray(), np.ldexp(ordinary.codes(point).toarray(), exponent)
    )
    unit = scaled.signal_unit**2
    np.testing.assert_allclose(scaled.cost(point), np.ldexp(ordinary.cost(point), 2 * exponent) / unit)


def test_single_precision_stays_single():
    _, Y = draw(2, dtype=np.float32)
    problem = lasso_problem(Y, D, alpha=0.1)
    point = Spheres(M, D).random_point(rng=0).astype(np.float32)
    result = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=10, verbosity=0).run(
        problem, initial_point=point
    )
    assert result.point.dtype == np.float32 and problem.codes(result.point).dtype == np.float32


def test_a_penalty_above_all_correlations_gives_zero_codes():
    _, Y = draw()
    problem = lasso_problem(Y, D, alpha=float(np.linalg.norm(Y, axis=0).max()) * 1.01)
    point = Spheres(M, D).random_point(rng=0)
    assert problem.codes(point).nnz == 0
    np.testing.assert_allclose(problem.cost(point), np.sum(Y**2) / 2)
    assert not problem.riemannian_gradient(point).any()


class Ridge:
    """A coder with a smooth penalty, whose minimum has a formula of its own."""

    def __init__(self, mu):
        self.mu = mu

    def encode(self, signals, dictionary):
        G = dictionary.T @ dictionary + self.mu * np.eye(dictionary.shape[1])
        return np.linalg.solve(G, dictionary.T @ signals)

    def penalty(self, codes):
        return self.mu / 2 * float((codes * codes).sum())


def test_any_coder_with_a_penalty_makes_a_problem():
    _, Y = draw()
    problem = penalized_problem(Y, D, Ridge(0.3))
    point = Spheres(M, D).random_point(rng=0)
    # min ½‖y − Dx‖² + (μ/2)‖x‖² = ½ yᵀ(I + DDᵀ/μ)⁻¹y
    expected = 0.5 * np.sum(Y * np.linalg.solve(np.eye(M) + point @ point.T / 0.3, Y))
    np.testing.assert_allclose(problem.cost(point), expected, rtol=1e-12)
    assert check_gradient(problem, point)
    with pytest.raises(ValueError, match="no Hessian product: choose an optimizer without one"):
        problem.riemannian_hessian(point, np.ones_like(point))


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"alpha": 0}, "alpha=0: the penalty must be finite and positive"),
        ({"alpha": np.nan}, "must be finite and positive"),
        ({"alpha": "0.1"}, "the penalty is one number"),
        ({"alpha": 0.1, "mu": -1}, "the ridge must be finite and not negative"),
        ({"alpha": 0.1, "atoms": [0, 1]}, "give the whole dictionary as well"),
        ({"alpha": 0.1, "dictionary": np.eye(M)}, "dictionary has 8 atoms, but n_atoms=12"),
        ({"alpha": 0.1, "n_atoms": 0}, "n_atoms=0: give a whole number"),
        ({"alpha": 0.1, "signals": np.full((M, N), np.nan)}, "signals holds nan"),
    ],
)
def test_what_makes_no_sense_is_refused(options, sentence):
    arguments = {"signals": draw()[1], "n_atoms": D, **options}
    with pytest.raises((ValueError, TypeError), match=sentence):
        lasso_problem(**arguments)


def test_extreme_signals_are_refused_for_a_coder_of_ones_own():
    with pytest.raises(ValueError, match=r"divide them by 2\.0\*\*"):
        penalized_problem(np.ldexp(draw()[1], 300), D, Ridge(0.1))


def test_codes_are_sparse_and_of_the_signals_dtype():
    _, problem, point, _ = make()
    codes = problem.codes(point)
    assert isinstance(codes, scipy.sparse.csc_array) and codes.shape == (D, N)
    assert codes.has_sorted_indices and np.all(codes.data != 0)
