"""Golden section search, the paper's Algorithm 2 (Section IV-B), for a function of one variable."""

import math
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

# The paper's c. Because c² = 1 − c, an interval shrunk to c of its width has one of its old probes in place.
GOLDEN = (math.sqrt(5) - 1) / 2


def golden_section(
    ts: Sequence[float],
    values: Sequence[float],
    slopes: Sequence[float],
    first_t: float,
    rounding: float,
    width: float,
) -> Iterator[float]:
    """Bracket a minimum of φ (Part A), then shrink the bracket by golden section (Part B).

    A generator of the t to be probed. Before it is resumed, the caller appends φ of that t to `values`, +∞ if
    it is not a number; values[0] and slopes[0] are φ and φ′ at 0.

    Parameters
    ----------
    ts, values, slopes : sequences
        What is known so far. This search reads values only.
    first_t : float
        The reach of the first bracket.
    rounding : float
        The relative rounding of φ: what is smaller cannot be seen.
    width : float
        Part B ends when the interval is `width` times the bracket of Part A.

    Examples
    --------
    >>> ts, values = [0.0], [9.0]
    >>> for t in golden_section(ts, values, [-6.0], 5.0, 1e-16, 0.1):
    ...     ts.append(t)
    ...     values.append((t - 3) ** 2)
    >>> print(f"lowest at {min(zip(values, ts))[1]:.2f} of {len(ts) - 1} probes")
    lowest at 2.92 of 8 probes
    """
    bracket = yield from _bracket(values, slopes[0], first_t, rounding)
    if bracket is not None:
        yield from _shrink(values, bracket, width)


class Bracket(NamedTuple):
    """Four t in ascending order and φ there, with a minimum between the outer ones; NaN where unknown."""

    t1: float
    t2: float
    t3: float
    t4: float
    f1: float
    f2: float
    f3: float
    f4: float


def _bracket(
    values: Sequence[float], slope: float, t4: float, rounding: float
) -> Generator[float, None, Bracket | None]:
    """Part A: find t4 such that φ(t1) > φ(t2) > φ(t3) ≤ φ(t4); None if φ does not fall beyond rounding."""
    c, unknown = GOLDEN, math.nan
    t1, t2, t3 = 0.0, (1 - c) * t4, c * t4  # steps 1 and 2
    f1, f2, f3, f4 = values[0], unknown, unknown, unknown
    while True:
        if math.isnan(f2):
            yield t2
            f2 = values[-1]
        if f1 <= f2:  # step 3
            if -slope * t2 <= rounding * abs(f1):
                return None
            t2, t3, t4 = (1 - c) * t2, c * t2, t2
            f2, f3, f4 = unknown, unknown, f2
            continue
        if math.isnan(f3):
            yield t3
            f3 = values[-1]
        if f2 <= f3:  # step 4
            t2, t3, t4 = (1 - c) * t3, t2, t3
            f2, f3, f4 = unknown, f2, f3
            continue
        if math.isnan(f4):
            yield t4
            f4 = values[-1]
        if f3 <= f4:  # step 6
            return Bracket(t1, t2, t3, t4, f1, f2, f3, f4)
        t2, t3, t4 = t3, t4, t4 / c  # step 5
        f2, f3, f4 = f3, f4, unknown


def _shrink(values: Sequence[float], bracket: Bracket, width: float) -> Iterator[float]:
    """Part B: shrink the interval while trying to keep φ(t1) > φ(t2) > φ(t3)."""
    t1, t2, t3, t4, f1, f2, f3, _ = bracket
    c, unknown, small = GOLDEN, math.nan, width * (t4 - t1)
    # Rounding in the old probes grows as fast as the interval shrinks: at last they are out of order.
    while t4 - t1 > small and t1 < t2 < t3 < t4:
        if math.isnan(f2):
            yield t2
            f2 = values[-1]
        if math.isnan(f3):
            yield t3
            f3 = values[-1]
        if f1 > f2 > f3:  # step 7
            t1, t2, t3 = t2, t3, t2 + c * (t4 - t2)
            f1, f2, f3 = f2, f3, unknown
        else:  # step 8
            t2, t3, t4 = t1 + (1 - c) * (t3 - t1), t2, t3
            f2, f3 = unknown, f2
    # Output: the lowest of t1 to t4, so the t placed last is evaluated too, unless rounding made it coincide
    # with another.
    if t1 < t2 < t3 < t4:
        if math.isnan(f2):
            yield t2
        elif math.isnan(f3):
            yield t3
