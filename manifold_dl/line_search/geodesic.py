"""Cubic line search with slopes: what golden section finds, in a few probes."""

import math
from dataclasses import dataclass, field

from .path import LineSearch


@dataclass
class GeodesicSearch(LineSearch):
    """Safeguarded cubic search with the slope φ′(t).

    Grow t until a minimum is bracketed. Then go to the minimum of the cubic that has the values and slopes of
    φ at both ends, or cut the bracket where that falls outside or makes it shrink too slowly. The search ends
    at the strong Wolfe conditions ::

        φ(t) ≤ φ(0) + sufficient_decrease · t φ′(0)   and   |φ′(t)| ≤ curvature · |φ′(0)|,

    or when the bracket promises no more than rounding. If the objective offers no φ′, the slope is that of a
    polynomial through the nearest probes, and no additional value is asked for. Two probes are usual, because
    a search begins at the t accepted last.

    Parameters
    ----------
    sufficient_decrease : float
        The part of the decrease promised by φ′(0) that has to come true.
    curvature : float
        The part of the slope φ′(0) that may be left. Conjugate gradients need an accurate search: at 0.05
        they take as many steps as with golden section, at 0.5 up to half as many again.
    first_step : float or None
        Length of the very first probe along the geodesic: radians, on a sphere. None for an eighth of the
        manifold's typical distance, where Pymanopt's trust region begins too: on a product of spheres it
        grows with the root of their number.
    max_probes : int
        The most values of φ that one search may ask for.

    References
    ----------
    J. Nocedal and S. J. Wright, Numerical Optimization, 2nd edition, Algorithms 3.5 and 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from pymanopt.manifolds import Euclidean
    >>> def parabola(x):
    ...     return (x[0] - 3) ** 2
    >>> step, x = GeodesicSearch().search(parabola, Euclidean(1), np.zeros(1), np.ones(1), f0=9, df0=-6)
    >>> print(f"{step:.2f}")
    3.00
    """

    uses_slopes = True

    sufficient_decrease: float = 1e-4
    curvature: float = 0.05
    first_step: float | None = 1.0
    max_probes: int = 30
    _memory: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self):
        if not 0 < self.sufficient_decrease < self.curvature < 1:
            raise ValueError(
                f"sufficient_decrease={self.sufficient_decrease}, curvature={self.curvature}: unless "
                "0 < sufficient_decrease < curvature < 1, there may be no t that meets both conditions."
            )
        if self.first_step is not None and not 0 < self.first_step < math.inf:
            raise ValueError(f"first_step={self.first_step}: the first probe needs a positive length.")
        if self.max_probes < 1:
            raise ValueError(f"max_probes={self.max_probes}: a search needs at least one probe.")

    def _descend(self, phi, t):
        widths, lowest = [math.inf, math.inf], 0.0
        while t not in phi.values:
            value = phi.at(t).value  # with its slope, now, while a restriction still knows it
            if value < phi(lowest) and value <= phi.f0 + self.sufficient_decrease * t * phi.df0:
                lowest = t
            near = phi.at(lowest)
            if near.t > 0 and abs(near.slope) <= self.curvature * -phi.df0:
                return
            # Downhill from the lowest probe the next one is higher, so that a minimum lies between the two.
            far = phi.neighbour(near.t, -near.slope)
            if far is None:
                t = _beyond(phi.neighbour(near.t, -1), near)
            else:
                widths.append(abs(far.t - near.t))
                phi.end_if_invisible(widths[-1] * abs(near.slope))
                t = _between(near, far, stalled=widths[-1] > widths[-3] / 2)

    def _first_t(self, norm, manifold):
        if self._memory is not None:
            return self._memory
        return (_eighth(manifold) if self.first_step is None else self.first_step) / norm


def _eighth(manifold):
    try:
        return float(manifold.typical_dist) / 8  # a NumPy number would turn single precision into double
    except NotImplementedError:  # Pymanopt's way to say that a manifold has no typical distance
        return math.sqrt(manifold.dim) / 8


def _beyond(last, near):
    """The next t while φ still falls: the minimum of the cubic, but within 1.1 to 4 times the last t."""
    t = _cubic_minimum(last, near)
    return min(max(t, 1.1 * near.t), 4 * near.t) if t > near.t else 4 * near.t


def _between(near, far, stalled):
    """The next t in a bracket: the minimum of the cubic, well inside; or a cut."""
    w = (_cubic_minimum(near, far) - near.t) / (far.t - near.t)
    if stalled or not 0 < w < 1:
        # As long as nothing is known but the start, the minimum may be orders of magnitude closer.
        w = 0.1 if near.t == 0 else 0.5
    return near.t + min(max(w, 0.01), 0.99) * (far.t - near.t)


def _cubic_minimum(p, q):
    """Minimum of the cubic with the values and slopes of p and q; NaN if it has none."""
    h, rise = q.t - p.t, q.value - p.value
    # In w = (t − p.t)/h: p.value + s w + b w² + a w³, and the stable form of the root (−b + √(b² − 3as))/3a.
    s, e = p.slope * h, q.slope * h
    a, b = s + e - 2 * rise, 3 * rise - 2 * s - e
    discriminant = b * b - 3 * a * s
    denominator = b + math.sqrt(discriminant) if discriminant >= 0 else math.nan
    return p.t - h * s / denominator if denominator else math.nan
