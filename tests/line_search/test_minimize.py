"""The algorithms as generators of t: any loop can drive them, along any function of one variable."""

import math

import numpy as np
import pytest
from search_cases import (
    LINE,
)

from manifold_dl.line_search.curve import Curve
from manifold_dl.line_search.golden import golden_section
from manifold_dl.line_search.minimize import minimize
from manifold_dl.line_search.wolfe import wolfe_search


@pytest.mark.parametrize("minimiser", [0.02, 0.7, 40.0])
@pytest.mark.parametrize("algorithm", [golden_section, wolfe_search])
def test_an_algorithm_is_a_generator_for_any_function(algorithm, minimiser):
    ts, values, slopes = [0.0], [minimiser**2], [-2 * minimiser]
    settings = (1e-4,) if algorithm is golden_section else (1e-4, 1e-3)
    for t in algorithm(ts, values, slopes, 1.0, 1e-16, *settings):
        ts.append(t)
        values.append((t - minimiser) ** 2)
        slopes.append(2 * (t - minimiser))
        assert len(ts) < 50
    assert ts[np.argmin(values)] == pytest.approx(minimiser, rel=1e-3)


@pytest.mark.parametrize("uses_slopes", [False, True])
def test_the_lowest_t_is_the_end_and_every_probe_is_recorded(uses_slopes):
    def three(ts, values, slopes):
        yield from (1.0, 3.0, 2.5)

    curve = Curve(lambda x: (x[0] - 2.6) ** 2, LINE, np.zeros(1), np.ones(1), 6.76)
    found = minimize(three, curve, 6.76, -5.2, 10, uses_slopes)
    assert (found.t, found.point[0]) == (2.5, 2.5)
    assert found.ts == [1.0, 3.0, 2.5]
    assert found.values == pytest.approx([2.56, 0.16, 0.01])


@pytest.mark.parametrize(("max_probes", "expected"), [(1, 1), (3, 3), (math.inf, 8)])
def test_an_algorithm_is_stopped_after_the_allowed_number_of_probes(max_probes, expected):
    def eight(ts, values, slopes):
        yield from range(1, 9)

    curve = Curve(lambda x: -float(x[0]), LINE, np.zeros(1), np.ones(1), 0.0)
    found = minimize(eight, curve, 0.0, -1.0, max_probes, uses_slopes=False)
    assert found.t == expected and found.ts == list(range(1, expected + 1))
