"""Is a function smooth along a path? Fourth differences find its kinks and jumps, without any derivative.

Where a function φ of one variable has a continuous slope, its differences divided by the width of the grid,
|Δ⁴φ| / h, go to zero with h. At a kink they stay as large as the slope jumps, at a jump or a cusp they grow.
(Second differences would do the same, but a small kink would be hidden by a strong curvature elsewhere.)
`find_kink` looks for the largest quotient on a grid and follows it to smaller and smaller h: one that does
not fall belongs to no smooth function. `check_regularizer` calls it.
"""

import math
from collections.abc import Callable

import numpy as np

_GRID = 200  # intervals of the first grid
_ZOOM = 8  # each finer grid has intervals of this fraction, around the largest quotient of the last one
_LEVELS = 5  # down to h ≈ 1e-6 of the path, where rounding leaves nine digits of a quotient


def find_kink(function: Callable[[float], float], low: float, high: float) -> float | None:
    """The t between `low` and `high` where the slope of `function` jumps most; None if it is smooth.

    A bend that is sharper than about 1e-6 of the path counts as a kink. NaN if the function is not finite
    somewhere on the path, so that nothing can be said.

    Examples
    --------
    >>> round(find_kink(lambda t: abs(t - 0.3), -1, 1), 4)
    0.3
    >>> find_kink(lambda t: (t - 0.3) ** 2, -1, 1) is None
    True
    """
    h = (high - low) / _GRID
    t = np.linspace(low, high, _GRID + 1)
    found = []  # the largest quotient on every grid
    for _ in range(_LEVELS):
        values = np.array([float(function(s)) for s in t])
        if not np.isfinite(values).all():
            return math.nan
        quotients = np.abs(np.diff(values, 4)) / h
        i = int(np.argmax(quotients))
        largest, centre = quotients[i], t[2 + i]
        # Values are rounded sums: below this a quotient means nothing.
        if largest <= 1000 * np.finfo(float).eps * np.abs(values).max() / h:
            return None
        found.append(largest)
        # Whatever made the difference lies among the five points that it was formed of.
        t = np.linspace(centre - 2 * h, centre + 2 * h, 4 * _ZOOM + 1)
        h /= _ZOOM
    # Over the last three grids: 8⁻⁹ for a smooth function, 8⁻³ where the curvature jumps, 8⁻¹·⁵ = 0.04 for
    # |t|^1.5, 1 for a kink, 8³ for a jump; times at most 4 either way, by where between two points it lies.
    return float(centre) if found[-1] > 0.2 * found[-4] else None
