"""What the line searches share: φ along a geodesic, when not to search, and what may be returned."""

import math
import sys
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from pymanopt.manifolds.manifold import RetrAsExpMixin

from .tracing import record

# Far out or at a singularity there may be no point or no value: a place to keep away from, not an error.
UNDEFINED = (ArithmeticError, np.linalg.LinAlgError)


class LineSearch:
    """A Pymanopt line searcher around a method for functions of one variable.

    Heirs are dataclasses with a field `max_probes` and a private one `_memory`, in which a search leaves the
    accepted t to the next. They say where to begin (`_first_t`) and how to go on (`_descend`), by asking for
    ``phi(t)``. They return nothing: φ knows its lowest probe, and ends the search when no more are allowed.
    """

    uses_slopes = False  # whether the method asks for φ′ at every probe

    @np.errstate(all="ignore")  # costs may overflow far out: an answer, +∞, and no accident
    def search(self, objective, manifold, x, d, f0, df0):
        """Minimise the objective along the geodesic that leaves `x` in the direction `d`.

        Parameters
        ----------
        objective : callable
            Point → cost. It may carry `restrict`, a cheaper φ, and `scale`, the size of a typical cost.
        manifold : pymanopt.manifolds.manifold.Manifold
            Its retraction takes over where it has no exponential map.
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
        rounding, norm = _rounding(f0), float(manifold.norm(x, d))
        f0, df0 = float(f0), float(df0)
        # Any NaN makes a comparison false. The reciprocal is infinite for directions too short to be scaled.
        descends = abs(f0) < math.inf and -math.inf < df0 < 0 < norm < math.inf and 1 / norm < math.inf
        scale = getattr(objective, "scale", None)
        if not descends or self._is_flat(-df0 / norm, abs(f0) if scale is None else scale):
            record(self, f0, df0, norm, [], 0.0)
            return 0.0, x

        phi = Phi(objective, manifold, x, d, f0, df0, self.max_probes, rounding, self.uses_slopes)
        with suppress(EndOfSearch):
            self._descend(phi, self._first_t(norm, manifold))
        t, new_x = phi.lowest()
        record(self, f0, df0, norm, list(phi.values.items())[1:], t)
        self._memory = t or None
        return t * norm, new_x

    def _is_flat(self, slope, scale):
        return False


class EndOfSearch(Exception):
    """There is no probe left, or none that could make a difference."""


class Sample(NamedTuple):
    """φ and φ′ at one t."""

    t: float
    value: float
    slope: float


class Phi:
    """φ(t), computed once for every t and for `max_probes` of them at most; +∞ where it is not finite."""

    def __init__(self, objective, manifold, x, d, f0, df0, max_probes, rounding, uses_slopes):
        self.objective, self.manifold, self.x, self.d = objective, manifold, x, d
        self.f0, self.df0 = f0, df0
        restrict = getattr(objective, "restrict", None)
        self.restriction = None if restrict is None else restrict(x, d)
        self._slope_of = getattr(self.restriction, "derivative", None)
        self.max_probes, self.rounding, self.uses_slopes = max_probes, rounding, uses_slopes
        self.values, self.slopes = {0.0: f0}, {0.0: df0}
        # The lowest probe. Its point is the very array that was evaluated: a cache knows it by its identity.
        self.t, self.point = 0.0, x

    def __call__(self, t):
        value = self.values.get(t)
        if value is None:
            if len(self.values) > self.max_probes or t < sys.float_info.min:
                raise EndOfSearch
            if self.uses_slopes:  # first, because a restriction finds both in one go
                self.slopes[t] = self._derivative(t)
            value, point = self._evaluate(t)
            if value < self.values[self.t]:
                self.t, self.point = t, point
            self.values[t] = value
        return value

    def at(self, t):
        """φ and φ′ at t; without a derivative, φ′ as it looks from the probes made so far."""
        value = self(t)
        slope = self.slopes.get(t)
        if slope is None:
            slope = self.slopes[t] = self._derivative(t) if value < math.inf else math.nan
        if not math.isfinite(slope) and value < math.inf:
            slope = self._estimated_slope(t)
        return Sample(t, value, slope)

    def neighbour(self, t, direction):
        """The nearest probe in a direction (of either sign), None if there is none."""
        if direction > 0:
            beyond = min((s for s in self.values if s > t), default=None)
        else:
            beyond = max((s for s in self.values if s < t), default=None)
        return None if beyond is None else self.at(beyond)

    def end_if_invisible(self, decrease):
        """End the search if all there is to gain is lost in the rounding of φ."""
        if decrease <= self.rounding * abs(self.values[self.t]):
            raise EndOfSearch

    def lowest(self):
        """The lowest t and its point; 0 and x if the cost itself is not below f0 there."""
        if self.t > 0 and self.restriction is not None:
            value, self.point = self._cost(self.t)
            if not value < self.f0:
                return 0.0, self.x
        return self.t, self.point

    def _evaluate(self, t):
        if self.restriction is None:
            return self._cost(t)
        try:
            return _number(self.restriction(t)), None
        except UNDEFINED:
            return math.inf, None

    def _cost(self, t):
        """The objective itself at t, and the point there. A restriction, if there is one, has then served."""
        try:
            point = _travel(self.manifold, self.x, t * self.d)
            if hasattr(self.restriction, "arrive"):  # what it knows, the objective need not find again
                self.restriction.arrive(t, point)
            self.restriction = self._slope_of = None  # the evaluation may need its memory
            return _number(self.objective(point)), point
        except UNDEFINED:
            return math.inf, None

    def _derivative(self, t):
        if self._slope_of is None:
            return math.nan
        try:
            return float(self._slope_of(t))
        except UNDEFINED:
            return math.nan

    def _estimated_slope(self, t):
        """Slope at t of the polynomial through t and its neighbours (with φ′(0), if 0 is one)."""
        others = sorted(s for s in self.values if self.values[s] < math.inf)
        i = others.index(t)  # at least 1, because 0 is a probe too
        others = others[i - 1 : i] + others[i + 1 : i + 2] if t < others[-1] else others[max(i - 2, 0) : i]
        h = max(abs(s - t) for s in others)
        powers = np.arange(1, len(others) + 1 + (0.0 in others))
        # φ(s) − φ(t) = Σ a_k u^k with u = (s − t)/h, so that a_1/h is the slope at t.
        rows = [((s - t) / h) ** powers for s in others]
        right = [self.values[s] - self.values[t] for s in others]
        if 0.0 in others:
            rows.append(powers * (-t / h) ** (powers - 1))
            right.append(self.df0 * h)
        with suppress(np.linalg.LinAlgError):  # probes too close to be told apart
            return float(np.linalg.solve(rows, right)[0]) / h
        return math.nan


def _travel(manifold, x, step):
    if not isinstance(manifold, RetrAsExpMixin):  # its exp is the retraction, with a warning
        with suppress(NotImplementedError):  # Pymanopt's way to say that there is no exponential map
            if getattr(manifold, "exp_keeps_to_manifold", False):
                return manifold.exp(x, step)
            # Rounding takes exp off the manifold a little, and where the cost falls in that direction every
            # step doubles the little. A retraction by zero changes nothing but that.
            return manifold.retraction(manifold.exp(x, step), 0.0 * step)
    return manifold.retraction(x, step)


def _number(value):
    value = float(value)
    return value if math.isfinite(value) else math.inf


def _rounding(value):
    if type(value) is float:
        return sys.float_info.epsilon
    dtype = np.asarray(value).dtype
    return float(np.finfo(dtype if dtype.kind == "f" else float).eps)
