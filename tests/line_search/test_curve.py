"""φ along a curve: the restriction that an objective offers, and the end of a search."""

import copy

import numpy as np
import pytest
from pymanopt.manifolds import Euclidean
from search_cases import (
    LINE,
    Restriction,
    every_searcher,
)

from manifold_dl.line_search import trace


class Counting:
    """f(x) = ‖x − target‖² on the plane, with a restriction that may be wrong; records its evaluations."""

    def __init__(self, restriction=True, error=0.0):
        self.target, self.points, self.error = np.array([3.0, 4.0]), [], error
        if restriction is None:
            self.restrict = lambda x, d: None
        elif restriction:
            self.restrict = lambda x, d: Restriction(
                lambda t: self.value(x + t * d) + error, lambda t: 2 * d @ (x + t * d - self.target)
            )

    def value(self, x):
        return float(((x - self.target) ** 2).sum())

    def __call__(self, x):
        self.points.append(x)
        return self.value(x)

    def search(self, searcher, x):
        d = -2 * (x - self.target)
        with trace() as searches:
            step, new = searcher.search(self, Euclidean(2), x, d, self.value(x), -d @ d)
        return step, new, searches


@every_searcher
def test_a_restriction_replaces_all_probes_but_the_last_check(searcher):
    objective = Counting()
    step, x, searches = objective.search(copy.deepcopy(searcher), np.zeros(2))
    assert step == pytest.approx(5, rel=0.05)  # the looser search stops at a twentieth of the slope
    assert len(objective.points) == 1
    assert objective.points[0] is x
    assert len(searches) == 1


@every_searcher
@pytest.mark.parametrize("restriction", [None, False], ids=["restrict returns None", "no restrict"])
def test_without_a_restriction_the_evaluated_array_is_returned(searcher, restriction):
    objective = Counting(restriction)
    step, x, (record,) = objective.search(copy.deepcopy(searcher), np.zeros(2))
    assert step == pytest.approx(5, rel=0.05)  # as above
    assert len(objective.points) == len(record.probes)
    assert any(point is x for point in objective.points)


@every_searcher
@pytest.mark.parametrize("error", [-1.0, 1.0])
def test_an_inaccurate_restriction_never_raises_the_cost(searcher, error):
    # The restriction is off by 1 where the whole cost is 1e-12: what it calls a decrease may be none.
    objective = Counting(error=error)
    x = objective.target + np.array([1e-6, 0])
    _, new, _ = objective.search(copy.deepcopy(searcher), x)
    assert objective.value(new) <= objective.value(x)


class Committing(Restriction):
    """A restriction that records where a search ends, in the list that its objective records calls in."""

    def __init__(self, value, derivative, calls):
        super().__init__(value, derivative)
        self.calls = calls

    def commit(self, t, point):
        self.calls.append(("commit", t, point))


@every_searcher
def test_a_search_commits_its_end_once_and_then_evaluates_the_objective_there(searcher):
    calls, target = [], np.array([3.0, 4.0])

    def objective(x):
        calls.append(("evaluate", None, x))
        return float(((x - target) ** 2).sum())

    objective.restrict = lambda x, d: Committing(
        lambda t: float(((x + t * d - target) ** 2).sum()), lambda t: 2 * d @ (x + t * d - target), calls
    )
    start = np.zeros(2)
    with trace() as searches:
        _, end = copy.deepcopy(searcher).search(objective, Euclidean(2), start, 2 * target, 25.0, -100.0)
    assert [name for name, *_ in calls] == ["commit", "evaluate"]
    (_, t, committed), (_, _, evaluated) = calls
    assert committed is evaluated is end
    assert t == searches[0].t


@every_searcher
def test_a_restriction_without_decrease_commits_nothing(searcher):
    calls = []

    def objective(x):
        raise AssertionError("the end of the search is its start, whose cost is known")

    objective.restrict = lambda x, d: Committing(lambda t: 1.0 + t, lambda t: 1.0, calls)
    start = np.zeros(2)
    step, end = copy.deepcopy(searcher).search(objective, Euclidean(2), start, np.ones(2), 1.0, -1.0)
    assert step == 0.0 and end is start and not calls


@every_searcher
def test_a_restriction_that_raises_counts_as_infinite(searcher):
    # A restriction may be undefined far out; the search has to find the minimum nearer to the start.
    def value(t):
        if t > 0.8:
            raise FloatingPointError
        return (t - 0.5) ** 2

    def objective(x):
        return value(x[0])

    objective.restrict = lambda x, d: Restriction(lambda t: value(x[0] + t * d[0]), lambda t: 2 * (t - 0.5))
    step, _ = copy.deepcopy(searcher).search(objective, LINE, np.zeros(1), np.ones(1), 0.25, -1.0)
    assert step == pytest.approx(0.5, abs=0.025)  # a twentieth of the slope may be left
