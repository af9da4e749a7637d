"""The two searches as Pymanopt line searchers: their fields, and what may be returned."""

import math
from dataclasses import dataclass, field

from .golden import GOLDEN, golden_section
from .path import follow, rounding_of
from .trace import record
from .wolfe import wolfe_search

NO_PROBES = ((), ()), 0


class LineSearch:
    """A Pymanopt line searcher around a search for functions of one variable.

    Heirs are dataclasses with a field `max_probes` and a private one `_memory`, in which a search leaves the
    accepted t to the next. They name a `method`, a generator of the t to be probed, what settings it takes
    (`_settings`) and where it begins (`_first_t`).
    """

    method = None
    #: The t that a search remembers is a good first guess for the next set of atoms, or the next iteration,
    #: too: an update rule takes the searcher along. One without this attribute, such as those of Pymanopt,
    #: begins anew with every problem.
    keeps_step = True
    uses_slopes = False  # whether the method looks at φ′ of every probe

    def search(self, objective, manifold, x, d, f0, df0):
        """Minimise the objective along the curve that leaves `x` in the direction `d`.

        Parameters
        ----------
        objective : callable
            Point → cost. It may carry `restrict`, a cheaper φ, and `scale`, the size of a typical cost.
        manifold : pymanopt.manifolds.manifold.Manifold
            Where the objective offers no `restrict`, its retraction is followed; `Spheres` and its subclasses
            follow their geodesics.
        x, d
            A point and a tangent vector there.
        f0, df0 : float
            The cost at `x` and its directional derivative along `d`, which should be negative.

        Returns
        -------
        step_size : float
            Length of the vector followed; 0 if there was nothing to gain.
        new_x
            Its end point; the object `x` if there was nothing to gain.
        """
        rounding, norm = rounding_of(f0), float(manifold.norm(x, d))
        f0, df0 = float(f0), float(df0)
        # Any NaN makes a comparison false. The reciprocal is infinite for directions too short to be scaled.
        descends = abs(f0) < math.inf and -math.inf < df0 < 0 < norm < math.inf and 1 / norm < math.inf
        if not descends or self._is_flat(objective, x, f0, -df0 / norm):
            record(self, f0, df0, norm, NO_PROBES, 0.0)
            return 0.0, x
        begin = self._first_t(norm, manifold)
        t, new_x, probes = follow(self, objective, manifold, x, d, f0, df0, begin, rounding)
        record(self, f0, df0, norm, probes, t)
        self._memory = t or None
        return t * norm, new_x

    def _is_flat(self, objective, x, f0, slope):
        """Whether the gradient at x counts as zero, where the cost is f0 and falls by `slope` per length."""
        return False


@dataclass
class GoldenSection(LineSearch):
    """The paper's Algorithm 2: bracket a minimum (Part A), then shrink it by golden section (Part B).

    It asks for values of φ only, never for a slope, and is as robust as it is slow: 18 probes or so a search.

    It evaluates φ at the same t as the paper, in the same order, but for three things. The paper takes the
    lowest of the last t₁ to t₄; here it is the lowest of all that were evaluated, which is another one only
    if φ has several minima in the bracket. Part A ends where the decrease that φ′(0) promises is less than
    rounding. No search takes more than `max_probes` values.

    Parameters
    ----------
    t4 : float
        Reach of the very first bracket, as a length along the geodesic: radians, on a sphere. The paper's t₄
        multiplies the gradient, which grows with the square of the data, so that no number would suit two
        datasets; t₄/‖d‖ does. Later searches begin with a bracket around the t accepted last.
    g_min : float
        The search is over before it begins if no atom's gradient is longer than ``g_min * scale``: step 1 of
        the paper, ‖ḡᵢ‖ ≤ g_min ‖Y‖² for all i. The objective of a dictionary has the attributes that this
        takes, `gradient_norms` (a point → ‖ḡᵢ‖ for each atom) and `scale` (‖Y‖²). Of any other cost only the
        slope along the direction is known, per unit of length: it is compared with ``g_min * scale``, or
        ``g_min * abs(f0)`` without a `scale`, as what so small a slope can change is lost in rounding.
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

    method = staticmethod(golden_section)

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

    def _settings(self):
        return (self.width,)

    def _is_flat(self, objective, x, f0, slope):
        threshold = self.g_min * getattr(objective, "scale", abs(f0))
        gradient_norms = getattr(objective, "gradient_norms", None)
        if gradient_norms is None:
            return slope <= threshold
        # slope ≤ ‖ḡ‖ ≤ √k max ‖ḡ_i‖ for k atoms: above √k thresholds no atom needs to be looked at.
        return slope <= math.sqrt(x.shape[1]) * threshold and gradient_norms(x).max() <= threshold

    def _first_t(self, norm, manifold):
        # The t accepted last becomes t3: where φ has changed little, Part A ends at once.
        return self.t4 / norm if self._memory is None else self._memory / GOLDEN


@dataclass
class WolfeSearch(LineSearch):
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
    >>> step, x = WolfeSearch().search(parabola, Euclidean(1), np.zeros(1), np.ones(1), f0=9, df0=-6)
    >>> print(f"{step:.2f}")
    3.00
    """

    method = staticmethod(wolfe_search)
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

    def _settings(self):
        return self.sufficient_decrease, self.curvature

    def _first_t(self, norm, manifold):
        if self._memory is not None:
            return self._memory
        return (_eighth(manifold) if self.first_step is None else self.first_step) / norm


def _eighth(manifold):
    try:
        return float(manifold.typical_dist) / 8  # a NumPy number would turn single precision into double
    except NotImplementedError:  # Pymanopt's way to say that a manifold has no typical distance
        return math.sqrt(manifold.dim) / 8
