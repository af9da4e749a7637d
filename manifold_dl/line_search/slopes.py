"""Estimates of φ′ from values of φ nearby, where an objective does not offer it."""

import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np


def estimate_slopes(
    ts: Sequence[float], values: Sequence[float], slopes: list[float], estimated: Sequence[int]
) -> None:
    """Set the slopes of the probes `estimated` from all values that are finite; the last probe is new.

    A slope is that of the polynomial through the probe and its two neighbours (with φ′(0), if 0 is one), so
    that a new probe changes those of the two next to it on each side.
    """
    order = sorted((i for i in range(len(ts)) if values[i] < math.inf), key=ts.__getitem__)
    new = order.index(len(ts) - 1)
    for place in range(max(new - 2, 1), min(new + 3, len(order))):  # 0 is the first, and its slope is known
        i = order[place]
        if i in estimated:
            if place + 1 < len(order):
                others = [order[place - 1], order[place + 1]]
            else:
                others = order[max(place - 2, 0) : place]
            slopes[i] = _slope(ts, values, slopes, i, others)


def _slope(
    ts: Sequence[float], values: Sequence[float], slopes: Sequence[float], i: int, others: Sequence[int]
) -> float:
    t, h = ts[i], max(abs(ts[j] - ts[i]) for j in others)
    from_start = 0 in others
    powers = np.arange(1, len(others) + 1 + from_start)
    # φ(s) − φ(t) = Σ a_k u^k with u = (s − t)/h, so that a_1/h is the slope at t.
    rows = [((ts[j] - t) / h) ** powers for j in others]
    right = [values[j] - values[i] for j in others]
    if from_start:
        rows.append(powers * (-t / h) ** (powers - 1))
        right.append(slopes[0] * h)
    with suppress(np.linalg.LinAlgError):  # probes too close together
        return float(np.linalg.solve(rows, right)[0]) / h
    return math.nan
