"""Searches that are one call of compiled code: the same as probe by probe, and where they are not for."""

import math
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from pymanopt.manifolds import Oblique
from pymanopt.optimizers import ConjugateGradient

from manifold_dl import update_problem
from manifold_dl.engines.threads import BLOCK_SIZE
from manifold_dl.line_search import GoldenSection, WolfeSearch, trace
from manifold_dl.line_search.golden import golden_section
from manifold_dl.line_search.wolfe import wolfe_search
from manifold_dl.manifolds import Lines, Spheres, ZeroMean
from manifold_dl.problem.update_problem import DictionaryProblem
from manifold_dl.regularizers import Coherence

SEARCHERS = [GoldenSection(), WolfeSearch(), WolfeSearch(curvature=1e-3), GoldenSection(max_probes=5)]
each_searcher = pytest.mark.parametrize("searcher", SEARCHERS, ids=["golden", "cubic", "strict", "cut off"])


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

    def problem(self, walks=True, **options):
        problem = update_problem(self.Y, self.mask, **{"mu": 0.1, **options})
        problem.objective.walks &= walks
        return problem


def search(problem, searcher, point):
    """One search downhill: step, point, cost there, what was probed."""
    gradient = problem.riemannian_gradient(point)
    direction = -problem.preconditioner(point, gradient)
    slope = problem.manifold.inner_product(point, gradient, direction)
    f0 = problem.cost(point)
    fresh = replace(searcher)  # without the memory of an earlier search
    with trace() as searches:
        step, end = fresh.search(problem.cost, problem.manifold, point, direction, f0, slope)
    return step, end, problem.cost(end), searches[0]


def in_both_ways(data, searcher, believed=False, **options):
    """The same search by one call and probe by probe, and that it was so."""
    found = []
    for walks in (True, False):
        problem = data.problem(walks, **options)
        if believed:
            problem.objective.expect_searches()
        found.append(search(problem, searcher, data.D))
        probes = found[-1][3].probes
        assert problem.objective.walks == walks
        assert problem.counts.probe == len(probes) <= searcher.max_probes
    return found


def assert_alike(found):
    (step, end, cost, one), (expected_step, expected_end, expected_cost, many) = found
    # Rounding decides which way golden section goes at last, within the square root of the precision.
    assert step == one.t * one.norm == pytest.approx(expected_step, rel=1e-6)
    np.testing.assert_allclose(end, expected_end, rtol=0, atol=1e-6)
    assert cost == pytest.approx(expected_cost, rel=1e-11)
    np.testing.assert_allclose(one.probes[:5], many.probes[:5], rtol=1e-10)
    assert (one.method, one.f0) == (many.method, many.f0)
    if one.method == "WolfeSearch":
        assert len(one.probes) == len(many.probes)


@each_searcher
@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("manifold", [Spheres, Lines, Oblique])
@pytest.mark.parametrize("believed", [False, True])
def test_one_call_finds_what_many_find(searcher, mu, manifold, believed):
    found = in_both_ways(Data(), searcher, believed, mu=mu, manifold=manifold)
    assert_alike(found)
    np.testing.assert_allclose(np.linalg.norm(found[0][1], axis=0), 1, rtol=1e-14)


@each_searcher
def test_supports_in_no_order(searcher):
    data = Data()
    data.mask = np.array([np.random.default_rng(j).permutation(12)[:3] for j in range(150)])
    assert_alike(in_both_ways(data, searcher))
    part = {"atoms": [7, 2, 5], "dictionary": data.D}
    problem = data.problem(**part)
    assert not problem.objective.blocks[0].packs.ascending
    data.D = data.D[:, part["atoms"]]
    assert_alike(in_both_ways(data, searcher, **part))


@each_searcher
def test_single_precision_stays_so(searcher):
    data = Data(dtype=np.float32)
    (step, end, cost, _), expected = in_both_ways(data, searcher)
    assert end.dtype == np.float32
    assert step == pytest.approx(expected[0], rel=1e-2)
    assert cost == pytest.approx(expected[2], rel=1e-5)


@pytest.mark.parametrize(("of_signals", "of_point"), [(np.float32, float), (float, np.float32)])
def test_the_end_has_the_precision_of_the_start(of_signals, of_point):
    data = Data(dtype=of_signals)
    point = data.D.astype(of_point)
    assert search(data.problem(), WolfeSearch(), point)[1].dtype == of_point


@each_searcher
def test_in_another_unit(searcher):
    # As `SimCO` has it: costs relative to the mean energy of a signal.
    data, found = Data(), []
    for walks in (True, False):
        plain = data.problem(walks)
        problem = DictionaryProblem(
            plain.objective, plain.manifold, plain._omega, plain.part, scale=plain.scale, relative=True
        )
        assert problem.unit != 1.0
        found.append(search(problem, searcher, data.D))
        assert problem.objective.walks == walks
        assert problem.counts.probe == len(found[-1][3].probes)
    assert_alike(found)


@each_searcher
def test_the_end_is_an_evaluation_like_any_other(searcher):
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


def test_the_point_belongs_to_the_caller():
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


@each_searcher
def test_two_atoms_that_are_one_are_left_to_the_reference(searcher):
    data = Data()
    data.D[:, 1], data.mask[1] = data.D[:, 0], data.mask[0]
    problem, other = data.problem(mu=0.0), data.problem(walks=False, mu=0.0)
    # From here the two atoms move alike, as their gradients are the same: all probes are rank-deficient.
    found, expected = (search(p, searcher, data.D) for p in (problem, other))
    assert not problem.objective.walks  # nor is it tried again
    assert found[0] == expected[0] > 0
    np.testing.assert_array_equal(found[1], expected[1])
    assert found[3].probes == expected[3].probes
    assert problem.counts.probe == other.counts.probe + 1  # the one that told


@pytest.mark.parametrize("searcher", [GoldenSection(max_probes=7), WolfeSearch()])
def test_nothing_is_left_behind(searcher, monkeypatch):
    # Numba's generators keep what they are given for ever; they are given what nobody counts.
    kept, whole = [], type(searcher).whole

    def counting(*arguments):
        kept.extend(argument for argument in arguments if isinstance(argument, np.ndarray))
        before = [sys.getrefcount(array) for array in kept]
        result = whole(*arguments)
        assert [sys.getrefcount(array) for array in kept] == before
        return result

    monkeypatch.setattr(type(searcher), "whole", staticmethod(counting))
    data = Data()
    search(data.problem(), searcher, data.D)
    assert len(kept) >= 2


def test_an_exp_of_its_own_is_where_a_step_ends():
    class Above(Spheres):
        def exp(self, point, tangent_vector):
            return self.closest(np.maximum(super().exp(point, tangent_vector), 0.01))

    for manifold in (Above, ZeroMean):
        data = Data()
        data.Y += 1e3
        start = manifold(8, 12).exp(data.D, 0 * data.D)
        problem = data.problem(manifold=manifold)
        _, end, _, _ = search(problem, WolfeSearch(), start)
        assert not problem.objective.walks
        if manifold is ZeroMean:
            assert abs(end.mean(axis=0)).max() < 1e-16
        else:
            assert end.min() > 0


def test_an_heir_with_a_method_of_its_own():
    def halves(ts, values, slopes, t, rounding):
        for _ in range(3):
            yield t
            t /= 2

    class Halving(WolfeSearch):
        method = staticmethod(halves)

        def _settings(self):
            return ()

    data = Data()
    *_, made = search(data.problem(), Halving(), data.D)
    ts = [t for t, _ in made.probes]
    assert ts == [ts[0], ts[0] / 2, ts[0] / 4]


@pytest.mark.parametrize("most", [math.inf, 50.0, 10**9])
def test_any_number_of_probes_may_be_allowed(most):
    data = Data()
    expected = search(data.problem(), WolfeSearch(), data.D)
    found = search(data.problem(), WolfeSearch(max_probes=most), data.D)
    np.testing.assert_allclose(found[3].probes, expected[3].probes, rtol=1e-10)


def test_searches_between_hessian_products_factor_no_point_twice():
    data = Data()
    problem, point = data.problem(), data.D
    for _ in range(3):
        gradient = problem.riemannian_gradient(point)
        problem.riemannian_hessian(point, gradient)
        point = search(problem, WolfeSearch(), point)[1]
    assert problem.counts.factorisation == problem.counts.value == 4
    assert problem.counts.gradient == 3


def test_where_a_search_has_to_come_for_every_probe():
    data = Data()
    direction = Spheres(8, 12).random_tangent_vector(data.D, 0)
    fixed = update_problem(data.Y, data.mask * 1.0, codes="fixed")
    assert fixed.restrict(data.D, direction).walk(WolfeSearch(), 1.0, -1.0, 0.1, 1e-16) is None
    penalised = data.problem(regularizers=[Coherence(0.1)])
    assert not hasattr(penalised.restrict(data.D, direction), "walk")
    large = Data(n=2 * BLOCK_SIZE).problem()
    assert len(large.objective.blocks) == 2 and not large.objective.walks


@each_searcher
def test_nothing_to_gain_returns_the_same_object(searcher):
    data = Data()
    problem = data.problem()
    point = (
        ConjugateGradient(
            line_searcher=WolfeSearch(), max_iterations=200, min_gradient_norm=1e-9, verbosity=0
        )
        .run(problem, initial_point=data.D)
        .point
    )
    direction = Spheres(8, 12).random_tangent_vector(point, 0)
    # A slope that is not there: uphill on both sides, whatever the optimizer believes.
    f0 = problem.cost(point)
    step, end = searcher.search(problem.cost, problem.manifold, point, direction, f0, -1e-3 * f0)
    assert step == 0.0 and end is point


def test_runs_of_both_kinds_end_alike():
    data, ends = Data(), []
    for walks in (True, False):
        problem = data.problem(walks)
        optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=60, verbosity=0)
        ends.append(optimizer.run(problem, initial_point=data.D).cost)
        values = [iterate.value for iterate in problem.record]
        assert all(after < before for before, after in pairwise(values))
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


@pytest.mark.parametrize("minimiser", [0.02, 0.7, 40.0])
@pytest.mark.parametrize("method", [golden_section, wolfe_search])
def test_a_search_is_a_generator_for_any_function(method, minimiser):
    ts, values, slopes = [0.0], [minimiser**2], [-2 * minimiser]
    settings = (1e-4,) if method is golden_section else (1e-4, 1e-3)
    for t in method(ts, values, slopes, 1.0, 1e-16, *settings):
        ts.append(t)
        values.append((t - minimiser) ** 2)
        slopes.append(2 * (t - minimiser))
        assert len(ts) < 50
    assert ts[np.argmin(values)] == pytest.approx(minimiser, rel=1e-3)
