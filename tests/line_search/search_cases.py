"""Searches on the real line, for the tests of the line searches."""

import copy
import math

import numpy as np
import pytest
from pymanopt.manifolds import Euclidean

from manifold_dl.line_search import GoldenSection, WolfeSearch, trace

SEARCHERS = [GoldenSection(), WolfeSearch()]
LINE = Euclidean(1)
INF, NAN = math.inf, math.nan

# Name: (f, f′, an interval around the one minimum in t > 0)
SMOOTH = {
    "parabola": (lambda t: (t - 0.7) ** 2, lambda t: 2 * (t - 0.7), (0, 2)),
    "far parabola": (lambda t: (t - 40) ** 2 - 3, lambda t: 2 * (t - 40), (0, 100)),
    "quartic": (lambda t: (t - 2) ** 4 - t, lambda t: 4 * (t - 2) ** 3 - 1, (0, 5)),
    "great circle": (lambda t: math.cos(t + 0.3), lambda t: -math.sin(t + 0.3), (0, 5)),
    "exponential": (lambda t: np.exp(t) - 20 * t, lambda t: np.exp(t) - 20, (0, 10)),
    "logarithm": (lambda t: math.log1p((t - 3) ** 2), lambda t: 2 * (t - 3) / (1 + (t - 3) ** 2), (0, 9)),
    "shallow": (lambda t: -t / (t * t + 2), lambda t: (t * t - 2) / (t * t + 2) ** 2, (0, 9)),
}

every_searcher = pytest.mark.parametrize("searcher", SEARCHERS, ids=lambda s: type(s).__name__)
with_and_without_slope = pytest.mark.parametrize("slope", [True, False], ids=["slope", "no slope"])


def search_line(searcher, f, df, *, slope=False, d=1.0):
    """Search f(t) for t > 0 on the real line, with φ′ from a restriction or not; returns t and the record."""

    def objective(x):
        return f(x[0])

    if slope:
        objective.restrict = lambda x, direction: Restriction(
            lambda t: f(x[0] + t * direction[0]), lambda t: df(x[0] + t * direction[0]) * direction[0]
        )
    start = np.zeros(1)
    with trace() as searches:
        step, x = copy.deepcopy(searcher).search(objective, LINE, start, np.array([d]), f(0.0), df(0.0) * d)
    assert len(searches) == 1
    # x + t d is rounded once by exp and once here.
    assert step == pytest.approx(x[0], rel=4e-16)
    assert step == 0 or f(x[0]) < f(0.0)
    return step, searches[0]


class Restriction:
    """What `restrict` returns: φ and its derivative."""

    def __init__(self, value, derivative):
        self.value, self.derivative = value, derivative

    def __call__(self, t):
        return self.value(t)
