"""φ along a curve, for a search: from a restriction if the objective offers one, else from itself."""

import math
import sys
from contextlib import suppress
from functools import partial

import numpy as np

from .slopes import estimate_slopes

# Far out or at a singularity there may be no point or no value: a place to keep away from, not an error.
UNDEFINED = (ArithmeticError, np.linalg.LinAlgError)


def follow(searcher, objective, manifold, x, d, f0, df0, t, rounding):
    """Probe φ(t) = f(R(x, t d)) where the searcher's method wants, beginning at t.

    Returns the lowest t and its point, 0 and x if the cost itself is not below f0 there; and the probes:
    every t and every φ(t), 0 first, and how many there are after it.
    """
    restrict = getattr(objective, "restrict", None)
    phi = None if restrict is None else restrict(x, d)
    path = Path(objective, manifold, x, d, f0, df0, phi)
    phi = None  # the path lets go of it before the last evaluation, which may need its memory
    t, point, value, probes = path.follow(searcher, t, rounding)
    return (t, point, probes) if value < f0 else (0.0, x, probes)


class Path:
    """φ, probe by probe; +∞ where that is not a finite number."""

    def __init__(self, objective, manifold, x, d, f0, df0, restriction):
        self.objective, self.x, self.d = objective, x, d
        self.f0, self.df0, self.restriction = f0, df0, restriction
        # The lowest point made so far: the very array that was evaluated, as caches know it by its identity.
        self._value, self._point = f0, x
        # A restriction is one to a geodesic. Without it the search follows the retraction, as Pymanopt's own
        # searchers do: an exponential map may be missing or wrong (`ComplexCircle`), or may lead to where the
        # metric all but stops a run (`Positive`: one step took an entry to 1e-10 of its value).
        geodesic = restriction is not None or getattr(manifold, "exp_keeps_to_manifold", False)
        self._curve = partial(_geodesic, manifold) if geodesic else manifold.retraction

    @np.errstate(all="ignore")  # costs may overflow far out: an answer, +∞, and no accident
    def follow(self, searcher, first, rounding):
        """The lowest t, its point, the cost there, and the probes."""
        ts, values, slopes = [0.0], [self.f0], [self.df0]
        guessed, lowest = [], 0
        for t in searcher.method(ts, values, slopes, first, rounding, *searcher._settings()):
            if len(ts) > searcher.max_probes or t < sys.float_info.min:
                break
            value, slope = self._probe(t, searcher.uses_slopes)
            ts.append(t), values.append(value), slopes.append(slope)
            if value < values[lowest]:
                lowest = len(ts) - 1
            if searcher.uses_slopes and value < math.inf:
                if not math.isfinite(slope):
                    guessed.append(len(ts) - 1)
                if guessed:
                    estimate_slopes(ts, values, slopes, guessed)
        if lowest and self.restriction is not None:
            self._evaluate(ts[lowest])
        return ts[lowest], self._point, self._value, ((ts, values), len(ts) - 1)

    def _probe(self, t, with_slope):
        """φ at t, and φ′: NaN where it was not asked for, or nobody knows it."""
        if self.restriction is None:
            return self._evaluate(t), math.nan
        slope, derivative = math.nan, getattr(self.restriction, "derivative", None)
        if with_slope and derivative is not None:  # first: it finds both in one go
            with suppress(*UNDEFINED):
                slope = float(derivative(t))
        try:
            return _number(self.restriction(t)), slope
        except UNDEFINED:
            return math.inf, math.nan

    def _evaluate(self, t):
        """The objective itself at t. A restriction, if there is one, has then served."""
        try:
            point = self._curve(self.x, t * self.d)
            if hasattr(self.restriction, "arrive"):  # what it knows, the objective need not find again
                self.restriction.arrive(t, point)
            self.restriction = None
            value = _number(self.objective(point))
        except UNDEFINED:
            return math.inf
        if value < self._value:
            self._value, self._point = value, point
        return value


def rounding_of(value):
    """The relative rounding of a cost, by its type."""
    if type(value) is float:
        return sys.float_info.epsilon
    dtype = np.asarray(value).dtype
    return float(np.finfo(dtype if dtype.kind == "f" else float).eps)


def _geodesic(manifold, x, step):
    """exp(x, step), on the manifold to rounding."""
    end = manifold.exp(x, step)
    if getattr(manifold, "exp_keeps_to_manifold", False):
        return end
    # Rounding takes exp off the manifold a little, and where the cost falls in that direction every step
    # doubles the error. A retraction by zero removes it and changes nothing else.
    return manifold.retraction(end, 0.0 * step)


def _number(value):
    value = float(value)
    return value if math.isfinite(value) else math.inf
