"""Kinks and jumps of a function along a path, found by fourth differences, without any derivative.

Where a function φ of one variable has a continuous slope, its differences divided by the width of the grid,
|Δ⁴φ| / h, go to zero with h. At a kink they stay as large as the slope jumps, at a jump or a cusp they grow.
(Second differences would do the same, but a small kink would be hidden by a strong curvature elsewhere.)
`find_kink` finds the largest quotient on a grid and computes it again with smaller and smaller h: if it does
not decrease, the function is not smooth. `check_smooth` calls it for a regularizer, as part of
`check_regularizer`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from manifold_dl.diagnostics.report import Inspection

_GRID = 200  # intervals of the first grid
_ZOOM = 8  # each finer grid has intervals of this fraction, around the largest quotient of the last one
_LEVELS = 5  # down to h ≈ 1e-6 of the path, where rounding leaves nine digits of a quotient


def check_smooth(inspection: Inspection, penalty: Any, D: np.ndarray, rng: np.random.Generator) -> None:
    """Check that a penalty on the dictionary is smooth, where kinks are likely too.

    Parameters
    ----------
    inspection : Inspection
        Where facts and faults are recorded.
    penalty : Regularizer
        With `value` and `gradient`.
    D : m×d array
        The dictionary; paths pass through it, through zero entries and through orthogonal atoms.
    rng : numpy.random.Generator
        For the directions of the paths.
    """
    norms = np.linalg.norm(D, axis=0)
    aside = rng.standard_normal(D.shape)
    aside *= norms / np.linalg.norm(aside, axis=0)
    zeros = np.where(rng.random(D.shape) < 0.1, 0.0, D)
    zeros[rng.integers(len(D))] = 0
    orthogonal = D.copy()
    k = min(D.shape)
    orthogonal[:, :k] = np.linalg.qr(D[:, :k])[0] * norms[:k]
    places = {"where entries are zero": zeros, "where atoms are orthogonal": orthogonal}
    paths = [("", _turn(D, aside)), *((name, _line(start, 0.3 * aside)) for name, start in places.items())]
    fact = "smooth: no kink was found"
    with np.errstate(all="ignore"):
        for name, path in paths:
            t = find_kink(_along(penalty, path), -np.pi / 2, np.pi / 2)
            if t is not None and math.isnan(t):
                inspection.skip(f"{fact} {name or 'along a path'} (the penalty is not finite everywhere)")
            elif t is not None:
                _fail_at_kink(inspection, path(t))
        inspection.require(True, fact, "")
        for name, start in places.items():
            if not math.isfinite(penalty.value(start)):
                continue
            finite = np.isfinite(penalty.gradient(start)).all()
            fault = f"is not smooth: its gradient is not finite {name}"
            inspection.require(finite, f"the gradient is finite {name}", fault)


def _fail_at_kink(inspection: Inspection, D: np.ndarray) -> None:
    # A kink is located to about 1e-6 of a path; elsewhere a dictionary has no entries as small as that.
    where = "where an entry of the dictionary is zero" if np.abs(D).min() < 1e-5 else "along a path"
    remedy = "Take a smooth function in its place, such as √(x² + ε) for |x|"
    inspection.fail(f"is not smooth: its slope jumps {where}. {remedy}")


def _turn(D: np.ndarray, other: np.ndarray) -> Callable[[float], np.ndarray]:
    return lambda t: D * np.cos(t) + other * np.sin(t)


def _line(D: np.ndarray, direction: np.ndarray) -> Callable[[float], np.ndarray]:
    return lambda t: D + t * direction


def _along(penalty: Any, path: Callable[[float], np.ndarray]) -> Callable[[float], float]:
    return lambda t: penalty.value(path(t))


def find_kink(function: Callable[[float], float], low: float, high: float) -> float | None:
    """Return the t between `low` and `high` where the slope of `function` jumps most; None if it is smooth.

    A bend that is sharper than about 1e-6 of the path counts as a kink. The result is NaN if the function is
    not finite somewhere on the path.

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
        # The cause of the largest difference lies among the five points that it was computed from.
        t = np.linspace(centre - 2 * h, centre + 2 * h, 4 * _ZOOM + 1)
        h /= _ZOOM
    # Over the last three grids: 8⁻⁹ for a smooth function, 8⁻³ where the curvature jumps, 8⁻¹·⁵ = 0.04 for
    # |t|^1.5, 1 for a kink, 8³ for a jump; times at most 4 either way, by where between two points it lies.
    return float(centre) if found[-1] > 0.2 * found[-4] else None
