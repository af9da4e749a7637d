"""Safeguarded cubic search, for a function of one variable and its slope: a minimum in a few probes.

Grow t until a minimum is bracketed. Then go to the minimum of the cubic that has the values and slopes of φ
at both ends, or cut the bracket where that falls outside or makes it shrink too slowly.
"""

import math
from collections.abc import Iterator, Sequence


def wolfe_search(
    ts: Sequence[float],
    values: Sequence[float],
    slopes: Sequence[float],
    first_t: float,
    rounding: float,
    sufficient_decrease: float,
    curvature: float,
) -> Iterator[float]:
    """Search until the strong Wolfe conditions hold, or until the bracket promises no more than rounding.

    A generator of the t to be probed. Before it is resumed, the caller appends that t, φ and φ′ there to the
    lists, +∞ and NaN where they are not numbers; those of 0 come first.

    Parameters
    ----------
    ts, values, slopes : sequences
        What is known so far.
    first_t : float
        The first probe.
    rounding : float
        The relative rounding of φ: what is smaller cannot be seen.
    sufficient_decrease, curvature : float
        φ(t) ≤ φ(0) + sufficient_decrease · t φ′(0) and |φ′(t)| ≤ curvature · |φ′(0)| end the search.

    Examples
    --------
    >>> ts, values, slopes = [0.0], [9.0], [-6.0]
    >>> for t in wolfe_search(ts, values, slopes, 1.0, 1e-16, 1e-4, 0.05):
    ...     ts.append(t)
    ...     values.append((t - 3) ** 2)
    ...     slopes.append(2 * (t - 3))
    >>> ts
    [0.0, 1.0, 3.0]
    """
    n, near, t = 0, 0, first_t  # n: the last probe; near: the lowest with sufficient decrease
    width = former = earlier = math.inf  # of the last three brackets
    while t not in ts:
        yield t
        n += 1
        if values[n] < values[near] and values[n] <= values[0] + sufficient_decrease * t * slopes[0]:
            near = n
        if near > 0 and abs(slopes[near]) <= curvature * -slopes[0]:
            return
        # Downhill from the lowest probe the next one is higher, so that a minimum lies between the two.
        far = _neighbour(ts, n, ts[near], slopes[near] < 0)
        if far < 0:
            last = _neighbour(ts, n, ts[near], False)
            t = _beyond(ts[near], _cubic_minimum(ts, values, slopes, last, near))
        else:
            earlier, former, width = former, width, abs(ts[far] - ts[near])
            if width * abs(slopes[near]) <= rounding * abs(values[near]):
                return
            inside = _cubic_minimum(ts, values, slopes, near, far)
            t = _between(ts[near], ts[far], inside, width > earlier / 2)


def _neighbour(ts: Sequence[float], n: int, t: float, above: bool) -> int:
    """Which of the n probes after 0 is nearest to t on one side; −1 if there is none."""
    nearest = -1
    for i in range(n + 1):
        if above:
            if ts[i] > t and (nearest < 0 or ts[i] < ts[nearest]):
                nearest = i
        elif ts[i] < t and (nearest < 0 or ts[i] > ts[nearest]):
            nearest = i
    return nearest


def _beyond(near: float, minimum: float) -> float:
    """The next t while φ still falls: the minimum of the cubic, but within 1.1 to 4 times the last t."""
    return min(max(minimum, 1.1 * near), 4 * near) if minimum > near else 4 * near


def _between(near: float, far: float, minimum: float, stalled: bool) -> float:
    """The next t in a bracket: the minimum of the cubic, well inside; or a cut."""
    w = (minimum - near) / (far - near)
    if stalled or not 0 < w < 1:
        # As long as nothing is known but the start, the minimum may be orders of magnitude closer.
        w = 0.1 if near == 0 else 0.5
    return near + min(max(w, 0.01), 0.99) * (far - near)


def _cubic_minimum(
    ts: Sequence[float], values: Sequence[float], slopes: Sequence[float], p: int, q: int
) -> float:
    """Minimum of the cubic with the values and slopes of probes p and q; NaN if it has none."""
    h, rise = ts[q] - ts[p], values[q] - values[p]
    # In w = (t − t_p)/h: φ_p + s w + b w² + a w³, and the stable form of the root (−b + √(b² − 3as))/3a.
    s, e = slopes[p] * h, slopes[q] * h
    a, b = s + e - 2 * rise, 3 * rise - 2 * s - e
    discriminant = b * b - 3 * a * s
    denominator = b + math.sqrt(discriminant) if discriminant >= 0 else math.nan
    return ts[p] - h * s / denominator if denominator != 0 else math.nan
