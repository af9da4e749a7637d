"""φ along a geodesic, and searches along it: the values of the objective itself, and how a search ends."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from pymanopt.manifolds import Oblique, Stiefel
from pymanopt.optimizers import ConjugateGradient, SteepestDescent

from manifold_dl import SimCO, update_problem
from manifold_dl.engines import Threads
from manifold_dl.kernels import reduced
from manifold_dl.line_search import GoldenSection, WolfeSearch, trace
from manifold_dl.manifolds import Lines, NonNegative, Spheres, ZeroMean
from manifold_dl.problem import SupportProblem
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.inner import RidgeCodes
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.signals import blocks_of
from manifold_dl.problem.support import as_support
from manifold_dl.problem.update_problem import make_objective
from manifold_dl.regularizers import Coherence

SEARCHERS = [GoldenSection(), WolfeSearch(), WolfeSearch(curvature=1e-3), GoldenSection(max_probes=5)]
each_searcher = pytest.mark.parametrize("searcher", SEARCHERS, ids=["golden", "cubic", "strict", "cut off"])
each_policy = pytest.mark.parametrize("trusted", [False, True], ids=["evaluated", "trusted"])


class Data:
    """Signals of a random dictionary with noise, supports of 0 to 4 atoms, and another dictionary."""

    def __init__(self, m=8, d=12, n=150, dtype=float, seed=0):
        rng = np.random.default_rng(seed)
        true, self.D = (Spheres(m, d).random_point(rng).astype(dtype) for _ in range(2))
        self.mask = np.zeros((d, n), bool)
        for j, size in enumerate(rng.integers(0, 5, n)):
            self.mask[rng.choice(d, size, replace=False), j] = True
        noise = 0.1 * rng.standard_normal((m, n))
        self.Y = (true @ (self.mask * rng.standard_normal((d, n))) + noise).astype(dtype)

    def problem(self, trusted=False, relative=False, **options):
        """The update as users get it; or with line searches trusted, or in units of a signal's energy."""
        problem = update_problem(self.Y, self.mask, **{"mu": 0.1, **options})
        if not (trusted or relative):
            return problem
        policy = EvaluationPolicy(trust_line_search=trusted, keep_factors=not trusted)
        objective = make_objective(problem.subset, problem.objective.inner, policy)
        return SupportProblem(objective, problem.subset, problem.whole, problem.feasible, relative=relative)


class ByEvaluations:
    """φ and φ′ along great circles from the cost and the gradient at the points, without any products."""

    def __init__(self, problem, point, direction):
        self.problem, self.point, self.direction = problem, point, direction

    def at(self, t):
        angles = np.linalg.norm(self.direction, axis=0)
        U = self.direction / np.where(angles > 0, angles, 1)
        point = self.point * np.cos(angles * t) + U * np.sin(angles * t)
        return point, angles * (U * np.cos(angles * t) - self.point * np.sin(angles * t))

    def __call__(self, t):
        return self.problem.cost(self.at(t)[0])

    def derivative(self, t):
        point, velocity = self.at(t)
        return float(np.vdot(self.problem.euclidean_gradient(point), velocity))


def search(problem, searcher, point, restrict=None):
    """One search downhill: step, point, cost there, what was probed."""
    gradient = problem.riemannian_gradient(point)
    direction = -problem.preconditioner(point, gradient)
    slope = problem.manifold.inner_product(point, gradient, direction)
    f0 = problem.cost(point)
    fresh = replace(searcher)  # without the memory of an earlier search

    def cost(x):
        return problem.cost(x)

    cost.restrict = problem.cost.restrict if restrict is None else restrict
    cost.scale, cost.gradient_norms = problem.cost.scale, problem.cost.gradient_norms
    with trace() as searches:
        step, end = fresh.search(cost, problem.manifold, point, direction, f0, slope)
    return step, end, problem.cost(end), searches[0]


def with_phi_and_by_evaluations(data, searcher, **options):
    """The same search along φ and along the objective itself."""
    problem, other = data.problem(**options), data.problem(**options)
    counted = problem.counts.probe
    found = search(problem, searcher, data.D)
    assert problem.counts.probe - counted == len(found[3].probes) <= searcher.max_probes
    expected = search(other, searcher, data.D, lambda x, d: ByEvaluations(other, x, d))
    assert other.counts.probe == 0
    return found, expected


def assert_alike(found, expected):
    (step, end, cost, one), (expected_step, expected_end, expected_cost, other) = found, expected
    # Rounding decides which way golden section goes at last, within the square root of the precision.
    assert step == one.t * one.norm == pytest.approx(expected_step, rel=1e-6)
    np.testing.assert_allclose(end, expected_end, rtol=0, atol=1e-6)
    assert cost == pytest.approx(expected_cost, rel=1e-11)
    np.testing.assert_allclose(one.probes[:5], other.probes[:5], rtol=1e-10)
    assert (one.method, one.f0) == (other.method, other.f0)
    if one.method == "WolfeSearch":
        assert len(one.probes) == len(other.probes)


# --- φ ---


@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("atoms", [None, [7, 2, 5]], ids=["sorted supports", "unsorted supports"])
def test_phi_and_its_slope_are_those_of_the_objective(mu, atoms):
    data = Data()
    problem = data.problem(mu=mu, atoms=atoms, dictionary=data.D)
    point = data.D if atoms is None else data.D[:, atoms]
    (block,) = problem.objective.engine.states(problem.objective.data)
    assert block.batches.ascending == (atoms is None)
    direction = Spheres(*point.shape).random_tangent_vector(point, 0)
    phi, expected = problem.restrict(point, direction), ByEvaluations(problem, point, direction)
    for t in (0.0, 1e-6, 0.1, 1.0, -2.0):
        assert phi(t) == pytest.approx(expected(t), rel=1e-12)
        # The slope is a difference of sums as large as the value.
        assert phi.derivative(t) == pytest.approx(expected.derivative(t), abs=1e-12 * expected(t))


@pytest.mark.parametrize("mu", [0.0, 0.1])
@each_policy
def test_several_blocks_have_the_phi_of_one_block(mu, trusted):
    data = Data(n=5000)
    policy = EvaluationPolicy(trust_line_search=trusted)
    several = data.problem(mu=mu).objective
    support, rows = as_support(data.mask, 5000), np.ascontiguousarray(data.Y.T)
    batches = reduced.make_batches(support.indptr, support.indices)
    block = reduced.Block(rows, support.indptr, support.indices, batches)
    engine = Threads(1)
    objectives = [
        Objective(blocks, (8, 12), float, RidgeCodes(mu), engine=engine, policy=policy)
        for blocks in (several.data, engine.open([block]))
    ]
    direction = Spheres(8, 12).random_tangent_vector(data.D, 0)
    one, other = (objective.along(data.D, direction) for objective in objectives)
    assert len(blocks_of(rows, support)) == 3
    for t in (0.0, 0.1, 1.0):
        # The sums of 5000 signals in another order.
        assert one(t) == pytest.approx(other(t), rel=1e-13)
        assert one.derivative(t) == pytest.approx(other.derivative(t), abs=1e-12 * other(t))
    codes = [engine.states(phi.codes(0.1)) for phi in (one, other)]
    assert [len(states) for states in codes] == [3, 1]
    np.testing.assert_allclose(np.concatenate(codes[0]), codes[1][0], rtol=0, atol=1e-12)


def test_fixed_codes_and_regularizers_have_a_phi_of_their_own():
    data = Data()
    direction = Spheres(8, 12).random_tangent_vector(data.D, 0)
    X = data.mask * np.random.default_rng(1).standard_normal(data.mask.shape)
    fixed = update_problem(data.Y, X, codes="fixed")
    penalised = data.problem(regularizers=[Coherence(0.1)])
    for problem in (fixed, penalised):
        phi, expected = problem.restrict(data.D, direction), ByEvaluations(problem, data.D, direction)
        for t in (0.0, 0.1, 1.0):
            assert phi(t) == pytest.approx(expected(t), rel=1e-12)
            assert phi.derivative(t) == pytest.approx(expected.derivative(t), abs=1e-12 * expected(t))


# --- Searches along φ ---


@each_searcher
@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("manifold", [Spheres, Lines, Oblique])
@each_policy
def test_a_search_along_phi_finds_what_evaluations_find(searcher, mu, manifold, trusted):
    found, expected = with_phi_and_by_evaluations(Data(), searcher, trusted=trusted, mu=mu, manifold=manifold)
    assert_alike(found, expected)
    np.testing.assert_allclose(np.linalg.norm(found[1], axis=0), 1, rtol=1e-14)


@each_searcher
def test_a_search_with_supports_in_no_order_finds_what_evaluations_find(searcher):
    data = Data()
    data.mask = np.array([np.random.default_rng(j).permutation(12)[:3] for j in range(150)])
    assert_alike(*with_phi_and_by_evaluations(data, searcher))
    part = {"atoms": [7, 2, 5], "dictionary": data.D}
    objective = data.problem(**part).objective
    assert not objective.engine.states(objective.data)[0].batches.ascending
    data.D = data.D[:, part["atoms"]]
    assert_alike(*with_phi_and_by_evaluations(data, searcher, **part))


@each_searcher
@each_policy
def test_a_search_in_another_unit_finds_what_evaluations_find(searcher, trusted):
    # As `SimCO` has it: costs relative to the mean energy of a signal.
    data = Data()
    assert data.problem(relative=True).unit != 1.0
    assert_alike(*with_phi_and_by_evaluations(data, searcher, relative=True, trusted=trusted))


@each_searcher
def test_a_search_in_several_blocks_finds_what_evaluations_find(searcher):
    assert_alike(*with_phi_and_by_evaluations(Data(n=5000), searcher))


@each_searcher
def test_a_search_in_single_precision_stays_in_it(searcher):
    (step, end, cost, _), expected = with_phi_and_by_evaluations(Data(dtype=np.float32), searcher)
    assert end.dtype == np.float32
    assert step == pytest.approx(expected[0], rel=1e-2)
    assert cost == pytest.approx(expected[2], rel=1e-5)


@each_policy
@pytest.mark.parametrize(("of_signals", "of_point"), [(np.float32, float), (float, np.float32)])
def test_the_end_of_a_search_has_the_precision_of_the_start(of_signals, of_point, trusted):
    data = Data(dtype=of_signals)
    point = data.D.astype(of_point)
    assert search(data.problem(trusted), WolfeSearch(), point)[1].dtype == of_point


@each_searcher
@each_policy
def test_where_two_atoms_are_equal_a_search_uses_minimum_norm_codes(searcher, trusted):
    data = Data()
    data.D[:, 1], data.mask[1] = data.D[:, 0], data.mask[0]
    # From here the two atoms move alike, as their gradients are the same: all probes are rank-deficient.
    found, expected = with_phi_and_by_evaluations(data, searcher, mu=0.0, trusted=trusted)
    assert_alike(found, expected)
    assert found[0] > 0
    # Their minimum-norm codes are the same but for the rounding of a singular value decomposition.
    np.testing.assert_allclose(found[1][:, 0], found[1][:, 1], atol=1e-14)


@pytest.mark.parametrize("most", [math.inf, 50.0, 10**9])
def test_any_number_of_probes_may_be_allowed(most):
    data = Data()
    expected = search(data.problem(), WolfeSearch(), data.D)
    found = search(data.problem(), WolfeSearch(max_probes=most), data.D)
    np.testing.assert_allclose(found[3].probes, expected[3].probes, rtol=1e-10)


def test_a_subclass_may_have_an_algorithm_of_its_own():
    def halves(ts, values, slopes, first_t, rounding):
        for n in range(3):
            yield first_t / 2**n

    class Halving(WolfeSearch):
        algorithm = staticmethod(halves)

        def _parameters(self):
            return {}

    data = Data()
    *_, made = search(data.problem(), Halving(), data.D)
    ts = [t for t, _ in made.probes]
    assert ts == [ts[0], ts[0] / 2, ts[0] / 4]


# --- How a search ends ---


@each_searcher
def test_the_end_of_a_search_is_an_evaluation_like_any_other(searcher):
    data = Data()
    problem = data.problem()
    _, end, cost, _ = search(problem, searcher, data.D)
    assert problem.counts.value == problem.counts.factorisation == 2
    fresh = data.problem()
    assert cost == pytest.approx(fresh.cost(end), rel=1e-14)
    np.testing.assert_allclose(problem.riemannian_gradient(end), fresh.riemannian_gradient(end), atol=1e-12)
    np.testing.assert_allclose(problem.codes(end).toarray(), fresh.codes(end).toarray(), atol=1e-13)
    tangent = fresh.riemannian_gradient(end)
    np.testing.assert_allclose(
        problem.preconditioner(end, tangent), fresh.preconditioner(end, tangent), rtol=1e-12
    )
    assert problem.counts.value == 2  # and nothing of this took another pass
    np.testing.assert_allclose(
        problem.euclidean_hessian(end, tangent), fresh.euclidean_hessian(end, tangent), atol=1e-10
    )


@each_searcher
@pytest.mark.parametrize("mu", [0.0, 0.1])
def test_the_end_of_a_trusted_search_takes_no_pass_before_its_gradient(searcher, mu):
    data = Data()
    problem, fresh = data.problem(trusted=True, mu=mu), data.problem(mu=mu)
    _, end, cost, _ = search(problem, searcher, data.D)
    assert cost == pytest.approx(fresh.cost(end), rel=1e-12)
    np.testing.assert_allclose(problem.codes(end).toarray(), fresh.codes(end).toarray(), atol=1e-12)
    assert problem.counts.value == problem.counts.factorisation == 1
    np.testing.assert_allclose(problem.riemannian_gradient(end), fresh.riemannian_gradient(end), atol=1e-11)
    assert problem.counts.value == 2
    tangent = fresh.riemannian_gradient(end)
    np.testing.assert_allclose(
        problem.euclidean_hessian(end, tangent), fresh.euclidean_hessian(end, tangent), atol=1e-10
    )


def test_a_trusted_search_is_not_trusted_where_its_digits_cancel():
    # Signals that a dictionary represents exactly: φ at the end is the difference of far larger numbers.
    data = Data()
    true = Spheres(8, 12).random_point(5)
    data.Y = true @ (data.mask * np.random.default_rng(6).standard_normal(data.mask.shape))
    problem = data.problem(trusted=True, mu=0.0)
    away = 1e-5 * Spheres(8, 12).random_tangent_vector(true, 7)
    start, velocity = ByEvaluations(problem, true, away).at(1.0)
    phi, end = problem.restrict(start, -velocity), Spheres(8, 12).exp(start, -velocity)
    phi.commit(1.0, end)
    before = problem.counts.value
    value = problem.cost(end)
    assert problem.counts.value == before + 1  # evaluated, not taken from φ
    assert 0 <= value < 1e-20 * np.sum(data.Y**2)


def test_the_end_of_a_search_belongs_to_the_caller():
    data = Data()
    problem = data.problem()
    _, end, cost, _ = search(problem, WolfeSearch(), data.D)
    kept = end.copy()
    end[:, 0] *= -1
    end[:, 1] = end[:, 2]
    direction = Spheres(8, 12).random_tangent_vector(kept, 0)
    phi = problem.restrict(kept, direction)  # from the atoms and codes that were kept of the search
    assert phi(0.1) == pytest.approx(data.problem().restrict(kept, direction)(0.1), rel=1e-12)
    assert problem.cost(kept) == cost and problem.counts.value == 2
    assert problem.cost(end) == pytest.approx(data.problem().cost(end), rel=1e-14)


@each_policy
def test_a_manifold_with_an_exp_of_its_own_is_where_a_step_ends(trusted):
    class Above(Spheres):
        def exp(self, point, tangent_vector):
            return self.closest(np.maximum(super().exp(point, tangent_vector), 0.01))

    for manifold in (Above, ZeroMean):
        data = Data()
        data.Y += 1e3
        start = manifold(8, 12).exp(data.D, 0 * data.D)
        problem = data.problem(trusted=trusted, manifold=manifold)
        _, end, cost, _ = search(problem, WolfeSearch(), start)
        if manifold is ZeroMean:
            assert abs(end.mean(axis=0)).max() < 1e-16
        else:
            assert end.min() > 0
        assert cost == pytest.approx(data.problem(manifold=manifold).cost(end), rel=1e-12)


def test_searches_between_hessian_products_factor_no_point_twice():
    data = Data()
    problem, point = data.problem(), data.D
    for _ in range(3):
        gradient = problem.riemannian_gradient(point)
        problem.riemannian_hessian(point, gradient)
        point = search(problem, WolfeSearch(), point)[1]
    assert problem.counts.factorisation == problem.counts.value == 4
    assert problem.counts.gradient == 3


@each_searcher
@each_policy
def test_nothing_to_gain_returns_the_same_object(searcher, trusted):
    data = Data()
    problem = data.problem(trusted)
    optimizer = ConjugateGradient(
        line_searcher=WolfeSearch(), max_iterations=200, min_gradient_norm=1e-9, verbosity=0
    )
    point = optimizer.run(problem, initial_point=data.D).point
    direction = Spheres(8, 12).random_tangent_vector(point, 0)
    # A slope that is not there: uphill on both sides, whatever the optimizer was told.
    f0 = problem.cost(point)
    step, end = searcher.search(problem.cost, problem.manifold, point, direction, f0, -1e-3 * f0)
    assert step == 0.0 and end is point


def test_runs_of_both_policies_descend_to_the_same_cost():
    data, ends = Data(), []
    for trusted in (True, False):
        problem = data.problem(trusted)
        optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=60, verbosity=0)
        ends.append(optimizer.run(problem, initial_point=data.D).cost)
        values = [iterate.value for iterate in problem.record]
        assert all(after < before for before, after in pairwise(values))
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


@pytest.mark.parametrize("searcher", [GoldenSection(), WolfeSearch()])
def test_a_search_is_not_trusted_where_it_ends_off_the_great_circle(searcher):
    class Farther(Spheres):
        def exp(self, point, tangent_vector):
            return self.retraction(point, 1.5 * tangent_vector)

    data = Data()
    X = scipy.sparse.csc_array(data.mask * np.ones(data.mask.shape))
    optimizer = SteepestDescent(line_searcher=searcher, max_iterations=1)
    D, X_new = SimCO(optimizer=optimizer, manifold=Farther, mu=0.1)(data.Y, data.D, X)
    expected = update_problem(data.Y, data.mask, mu=0.1).codes(D).toarray()
    np.testing.assert_allclose(X_new.toarray(), expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("later", [0.1, 1.5])
def test_codes_of_a_committed_point_do_not_change_with_later_probes(later):
    data = Data()
    problem = data.problem(trusted=True)
    direction = Spheres(8, 12).random_tangent_vector(data.D, 0)
    phi = problem.objective.along(data.D, direction)
    point = Spheres(8, 12).exp(data.D, 0.2 * direction)
    phi(0.2)
    phi.commit(0.2, point)
    phi(later)
    expected = update_problem(data.Y, data.mask, mu=0.1).codes(point)
    np.testing.assert_allclose(problem.codes(point).toarray(), expected.toarray(), atol=1e-10)


@pytest.mark.parametrize("manifold", [Stiefel, NonNegative])
def test_a_restriction_is_refused_where_geodesics_are_no_great_circles(manifold):
    data = Data(d=6)
    problem = update_problem(data.Y, data.mask, mu=0.1, manifold=manifold)
    point = problem.feasible.example
    with pytest.raises(ValueError, match="no great circles"):
        problem.restrict(point, 0 * point)
