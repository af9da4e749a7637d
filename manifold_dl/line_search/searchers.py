"""The two line searches as Pymanopt line searchers: their parameters, and what is returned.

A Pymanopt optimizer calls ``search(objective, manifold, x, d, f0, df0)``. The algorithms are in `golden.py`
and `wolfe.py`, the curve they search along in `curve.py`.
"""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from manifold_dl.line_search.curve import Curve
from manifold_dl.line_search.golden import GOLDEN, golden_section
from manifold_dl.line_search.minimize import LineSearchResult, minimize
from manifold_dl.line_search.protocol import members_of_cost
from manifold_dl.line_search.trace import record
from manifold_dl.line_search.wolfe import wolfe_search


class LineSearch:
    """A Pymanopt line searcher around an algorithm for functions of one variable.

    Subclasses are dataclasses with a field `max_probes` and two private ones, in which a search leaves
    numbers for the next: the accepted t (`_memory`), and −φ′(0)/‖d‖², the length of the gradient along the
    direction as a multiple of its own (`_ratio`). They name an `algorithm`, a generator of the t to be
    probed, its parameters (`_parameters`) and where it begins (`_first_t`).
    """

    algorithm: ClassVar[Callable[..., Iterator[float]]]
    #: The t that a search accepted is a good first guess for the next set of atoms, and the next iteration,
    #: too: an update rule keeps the searcher from one problem to the next. A searcher without this attribute,
    #: such as those of Pymanopt, begins anew with every problem.
    keeps_step: ClassVar[bool] = True
    uses_slopes: ClassVar[bool] = False  # whether the algorithm reads φ′ of every probe
    max_probes: int
    _memory: float | None
    _ratio: float | None

    def search(
        self,
        objective: Callable[[Any], float],
        manifold: Any,
        x: Any,
        d: Any,
        f0: float,
        df0: float,
    ) -> tuple[float, Any]:
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
        rounding, norm = _rounding_of(f0), float(manifold.norm(x, d))
        f0, df0 = float(f0), float(df0)
        # Any NaN makes a comparison false. The reciprocal is infinite for directions too short to be scaled.
        descends = abs(f0) < math.inf and -math.inf < df0 < 0 < norm < math.inf and 1 / norm < math.inf
        if not descends or self._is_flat(objective, x, f0, -df0 / norm):
            record(self, f0, df0, norm, LineSearchResult(0.0, None, [], []))
            return 0.0, x
        ratio = -df0 / norm / norm
        stretch = self._stretch(ratio, rounding)
        algorithm = partial(
            type(self).algorithm,
            first_t=stretch * self._first_t(norm, manifold),
            rounding=rounding,
            **self._parameters(),
        )
        curve = Curve(objective, manifold, x, d, f0)
        found = minimize(algorithm, curve, f0, df0, self.max_probes, self.uses_slopes)
        record(self, f0, df0, norm, found)
        # What another direction will begin with: this one as if it were of the usual length.
        self._memory, self._ratio = (found.t / stretch, ratio / stretch) if found.t else (None, None)
        return (found.t * norm, found.point) if found.t else (0.0, x)

    @property
    def memory(self) -> dict[str, float | None]:
        """The t that was accepted last, and the ratio of that search: with them the next one begins."""
        return {"t": self._memory, "ratio": self._ratio}

    def restore(self, memory: dict[str, float | None]) -> None:
        """Begin the next search as the searcher would whose `memory` this is.

        Parameters
        ----------
        memory : dict
        """
        self._memory, self._ratio = memory.get("t"), memory.get("ratio")

    def _stretch(self, ratio: float, rounding: float) -> float:
        """By what to multiply the remembered t for a direction that is far too short; 1 for all others.

        An atom of one signal moves in a plane, where Hestenes and Stiefel's conjugate direction is zero after
        every step that was a little too long. Rounding leaves about 1e-16 of it, and at the remembered t the
        change of φ could not be seen, however far the minimum is.
        """
        if not self._ratio:
            return 1.0
        stretch = ratio / self._ratio
        # Where it is not as short as that, a search finds the minimum by increasing t within `max_probes`.
        return stretch if 1 / math.sqrt(rounding) < stretch < math.inf else 1.0

    def _parameters(self) -> dict[str, float]:
        raise NotImplementedError

    def _first_t(self, norm: float, manifold: Any) -> float:
        raise NotImplementedError

    def _is_flat(self, objective: Any, x: Any, f0: float, slope: float) -> bool:
        """Whether the gradient at x counts as zero, where the cost is f0 and falls by `slope` per length."""
        return False


@dataclass
class GoldenSection(LineSearch):
    """The paper's Algorithm 2: bracket a minimum (Part A), then shrink it by golden section (Part B).

    It uses values of φ only, never a slope, and is as robust as it is slow: about 18 probes per search.

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
        Part B ends when the interval is `width` times the bracket of Part A. What is lost grows with the
        square of the error in t: 1e-3 leaves about a millionth of the decrease behind.
    max_probes : int
        The most values of φ in one search.

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

    algorithm = staticmethod(golden_section)

    t4: float = 1.0
    g_min: float = 1e-14
    width: float = 1e-3
    max_probes: int = 100
    _memory: float | None = field(default=None, init=False, repr=False, compare=False)
    _ratio: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.t4 < math.inf:
            raise ValueError(f"t4={self.t4}: the first bracket needs a positive, finite length.")
        if not 0 <= self.g_min < math.inf:
            raise ValueError(f"g_min={self.g_min}: a slope that counts as zero is finite and at least 0.")
        if not 1e-8 <= self.width < 1:
            raise ValueError(
                f"width={self.width} is outside [1e-8, 1): the interval has to shrink, but rounding hides a "
                "minimum below the square root of the machine precision."
            )
        if self.max_probes < 3:  # a limit, which may be infinite
            raise ValueError(f"max_probes={self.max_probes}: t2, t3 and t4 already make three probes.")

    def _parameters(self) -> dict[str, float]:
        return {"width": self.width}

    def _is_flat(self, objective: Any, x: Any, f0: float, slope: float) -> bool:
        _, scale, gradient_norms = members_of_cost(objective)
        threshold = self.g_min * (abs(f0) if scale is None else scale)
        if gradient_norms is None:
            return slope <= threshold
        # slope ≤ ‖ḡ‖ ≤ √k max ‖ḡ_i‖ for k atoms: above √k thresholds the atoms need not be checked.
        return slope <= math.sqrt(x.shape[1]) * threshold and gradient_norms(x).max() <= threshold

    def _first_t(self, norm: float, manifold: Any) -> float:
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
    polynomial through the nearest probes, and no additional value is needed. Two probes are usual, because
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
        The most values of φ in one search.

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

    algorithm = staticmethod(wolfe_search)
    uses_slopes = True

    sufficient_decrease: float = 1e-4
    curvature: float = 0.05
    first_step: float | None = 1.0
    max_probes: int = 30
    _memory: float | None = field(default=None, init=False, repr=False, compare=False)
    _ratio: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.sufficient_decrease < self.curvature < 1:
            raise ValueError(
                f"sufficient_decrease={self.sufficient_decrease}, curvature={self.curvature}: unless "
                "0 < sufficient_decrease < curvature < 1, there may be no t that meets both conditions."
            )
        if self.first_step is not None and not 0 < self.first_step < math.inf:
            raise ValueError(f"first_step={self.first_step}: the first probe needs a positive length.")
        if self.max_probes < 1:  # a limit, which may be infinite
            raise ValueError(f"max_probes={self.max_probes}: a search needs at least one probe.")

    def _parameters(self) -> dict[str, float]:
        return {"sufficient_decrease": self.sufficient_decrease, "curvature": self.curvature}

    def _first_t(self, norm: float, manifold: Any) -> float:
        if self._memory is not None:
            return self._memory
        return (_eighth(manifold) if self.first_step is None else self.first_step) / norm


def _eighth(manifold: Any) -> float:
    try:
        return float(manifold.typical_dist) / 8  # a NumPy number would turn single precision into double
    except NotImplementedError:  # Pymanopt's way to say that a manifold has no typical distance
        return math.sqrt(manifold.dim) / 8


def _rounding_of(value: Any) -> float:
    """The relative rounding of a cost, by its type."""
    if type(value) is float:
        return sys.float_info.epsilon
    dtype = np.asarray(value).dtype
    return float(np.finfo(dtype if dtype.kind == "f" else float).eps)
