"""A line search, probe by probe: drive an algorithm (a generator of t) along a curve.

The algorithms in `golden.py` and `wolfe.py` do not use the manifold: they yield the t at which they need φ,
and find its values in lists that this loop fills.
"""

import math
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from manifold_dl.line_search.curve import Curve
from manifold_dl.line_search.slopes import estimate_slopes


class Algorithm(Protocol):
    """A generator of the t to be probed, which reads what is known so far from three lists."""

    def __call__(self, ts: list[float], values: list[float], slopes: list[float]) -> Iterator[float]:
        """values[n] and slopes[n] are φ and φ′ at ts[n]; those of 0 come first."""


class LineSearchResult(NamedTuple):
    """How a line search ended."""

    t: float  # 0 if nothing lower was found
    point: Any  # of the curve at t, or its beginning
    ts: list[float]  # every t that was probed, after 0
    values: list[float]  # φ there


@np.errstate(all="ignore")  # a cost may overflow far out: a result, +∞, and no accident
def minimize(
    algorithm: Algorithm, curve: Curve, f0: float, df0: float, max_probes: int, uses_slopes: bool
) -> LineSearchResult:
    """Probe φ at the t that the algorithm yields, and end at the lowest t.

    Parameters
    ----------
    algorithm : Algorithm
        What yields the t.
    curve : Curve
        φ.
    f0, df0 : float
        φ(0) and φ′(0).
    max_probes : int
        The most values of φ.
    uses_slopes : bool
        Whether the algorithm reads φ′ of every probe. Where φ′ is not known it is estimated from the values.

    Returns
    -------
    LineSearchResult
        With t = 0 where the cost itself is not below f0 at the lowest t.
    """
    ts, values, slopes = [0.0], [f0], [df0]
    estimated: list[int] = []
    lowest = 0
    for t in algorithm(ts, values, slopes):
        if len(ts) > max_probes or t < sys.float_info.min:
            break
        value, slope = curve.probe(t, uses_slopes)
        ts.append(t)
        values.append(value)
        slopes.append(slope)
        if value < values[lowest]:
            lowest = len(ts) - 1
        if uses_slopes and value < math.inf:
            if not math.isfinite(slope):
                estimated.append(len(ts) - 1)
            if estimated:
                estimate_slopes(ts, values, slopes, estimated)
    cost, point = curve.end(ts[lowest]) if lowest else (f0, None)
    if not cost < f0:
        return LineSearchResult(0.0, None, ts[1:], values[1:])
    return LineSearchResult(ts[lowest], point, ts[1:], values[1:])
