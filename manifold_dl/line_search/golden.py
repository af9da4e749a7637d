"""Golden section search, the paper's Algorithm 2 (Section IV-B)."""

import math
from dataclasses import dataclass, field

from .path import LineSearch

# The paper's c. Because c² = 1 − c, an interval shrunk to c of its width has one of its old probes in place.
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass
class GoldenSection(LineSearch):
    """The paper's Algorithm 2: bracket a minimum (Part A), then shrink it by golden section (Part B).

    It asks for values of φ only, never for a slope, and is as robust as it is slow: 17 probes or so a search.

    Parameters
    ----------
    t4 : float
        Reach of the very first bracket, as a length along the geodesic: radians, on a sphere. The paper's t₄
        multiplies the gradient, which grows with the square of the data, so that no number would suit two
        datasets; t₄/‖d‖ does. Later searches begin with a bracket around the t accepted last.
    g_min : float
        A slope (per unit of length) of at most ``g_min * scale`` counts as zero. `scale` is the attribute of
        that name of the objective: ‖Y‖² for dictionaries, as in the paper. Without one it is |f0|, because
        what so small a slope can change is lost in the rounding of the cost.
    width : float
        Part B ends when the interval is `width` times the bracket of Part A. What is lost goes with the
        square of the error in t: 1e-3 leaves about a millionth of the decrease behind.
    max_probes : int
        The most values of φ that one search may ask for.

    Examples
    --------
    >>> import numpy as np
    >>> from pymanopt.manifolds import Euclidean
    >>> def parabola(x):
    ...     return (x[0] - 3) ** 2
    >>> step, x = GoldenSection().search(parabola, Euclidean(1), np.zeros(1), np.ones(1), f0=9, df0=-6)
    >>> print(f"{step:.2f}")
    3.00
    """

    t4: float = 1.0
    g_min: float = 1e-14
    width: float = 1e-3
    max_probes: int = 100
    _memory: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self):
        if not 0 < self.t4 < math.inf:
            raise ValueError(f"t4={self.t4}: the first bracket needs a positive, finite length.")
        if not 0 <= self.g_min < math.inf:
            raise ValueError(f"g_min={self.g_min}: a slope that counts as zero is finite and at least 0.")
        if not 1e-8 <= self.width < 1:
            raise ValueError(
                f"width={self.width} is outside [1e-8, 1): the interval has to shrink, but rounding hides a "
                "minimum below the square root of the machine precision."
            )
        if self.max_probes < 3:
            raise ValueError(f"max_probes={self.max_probes}: t2, t3 and t4 already make three probes.")

    def _descend(self, phi, t4):
        self._shrink(phi, *self._bracket(phi, t4))

    def _bracket(self, phi, t4):
        """Part A: find t4 such that φ(t1) > φ(t2) > φ(t3) ≤ φ(t4), where t1 = 0."""
        c = GOLDEN
        t1, t2, t3 = 0.0, (1 - c) * t4, c * t4  # steps 1 and 2
        while True:
            if phi(t1) <= phi(t2):  # step 3
                phi.end_if_invisible(-phi.df0 * t2)
                t2, t3, t4 = (1 - c) * t2, c * t2, t2
            elif phi(t2) <= phi(t3):  # step 4
                t2, t3, t4 = (1 - c) * t3, t2, t3
            elif phi(t3) > phi(t4):  # step 5
                t2, t3, t4 = t3, t4, t4 / c
            else:  # step 6
                return t1, t2, t3, t4

    def _shrink(self, phi, t1, t2, t3, t4):
        """Part B: shrink the interval while trying to keep φ(t1) > φ(t2) > φ(t3)."""
        c = GOLDEN
        small = self.width * (t4 - t1)
        # Rounding in the old probes grows as fast as the interval shrinks: at last they are out of order.
        while t4 - t1 > small and t1 < t2 < t3 < t4:
            if phi(t1) > phi(t2) > phi(t3):  # step 7
                t1, t2, t3 = t2, t3, t2 + c * (t4 - t2)
            else:  # step 8
                t2, t3, t4 = t1 + (1 - c) * (t3 - t1), t2, t3

    def _is_flat(self, slope, scale):
        return slope <= self.g_min * scale

    def _first_t(self, norm, manifold):
        # The t accepted last becomes t3: where φ has changed little, Part A ends at once.
        return self.t4 / norm if self._memory is None else self._memory / GOLDEN
