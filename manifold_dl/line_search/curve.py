"""φ along the curve that leaves a point in some direction: what a line search evaluates, on any manifold.

An objective may offer φ itself: if it has an attribute `restrict`, ``phi = objective.restrict(x, d)`` is a
`Restriction` (or None). The cost of a dictionary problem does, at a fraction of the price of an evaluation.
For any other cost φ(t) is the cost at the point of the curve.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

# Far out or at a singularity there may be no point or no value: a t to avoid, not an error.
UNDEFINED = (ArithmeticError, np.linalg.LinAlgError)


class Restriction(Protocol):
    """An objective restricted to a geodesic, φ(t) = f(exp(x, t d))."""

    def __call__(self, t: float) -> float:
        """φ(t)."""

    def derivative(self, t: float) -> float:
        """φ′(t); optional. Without it a search estimates slopes from values."""

    def commit(self, t: float, point: Any) -> None:
        """The search has ended at `point`, the one at t; optional. What is known of it may be kept."""


class Curve:
    """φ(t) = f(R(x, t d)); +∞ where that is not a finite number.

    R is the exponential map where the objective offers a restriction, and on our spheres. Elsewhere it is the
    retraction, as in Pymanopt's own searchers: an exponential map may be missing or wrong (`ComplexCircle`),
    or may lead to where the metric all but stops a run (`Positive`: one step took an entry to 1e-10 of its
    value).

    Parameters
    ----------
    objective : callable
        Point → cost.
    manifold : pymanopt.manifolds.manifold.Manifold
        Where the curve is.
    x, d
        The point where it begins, and a tangent vector there.
    f0 : float
        The cost at x.
    """

    def __init__(self, objective: Callable[[Any], float], manifold: Any, x: Any, d: Any, f0: float) -> None:
        self._objective, self._x, self._d = objective, x, d
        restrict = getattr(objective, "restrict", None)
        self._phi: Any = None if restrict is None else restrict(x, d)
        self._derivative = getattr(self._phi, "derivative", None)
        is_geodesic = self._phi is not None or getattr(manifold, "exp_keeps_to_manifold", False)
        self._map = partial(_geodesic, manifold) if is_geodesic else manifold.retraction
        # The lowest point made so far: the very array that was evaluated, as caches may know it by its
        # identity.
        self._lowest, self._point = f0, x

    def probe(self, t: float, with_slope: bool) -> tuple[float, float]:
        """φ(t) and φ′(t), the latter NaN where it is not wanted or not known."""
        if self._phi is None:
            return self._evaluate(t), math.nan
        slope = self._slope(t) if with_slope else math.nan  # first: it computes both at once
        try:
            return _finite(self._phi(t)), slope
        except UNDEFINED:
            return math.inf, math.nan

    def end(self, t: float) -> tuple[float, Any]:
        """The cost itself at the end of a search, and the point: the one way for a search to end."""
        if self._phi is not None:
            self._evaluate(t)
        return self._lowest, self._point

    def _slope(self, t: float) -> float:
        if self._derivative is None:
            return math.nan
        try:
            return float(self._derivative(t))
        except UNDEFINED:
            return math.nan

    def _evaluate(self, t: float) -> float:
        """The objective at the point of the curve, which is kept if it is the lowest."""
        try:
            point = self._map(self._x, t * self._d)
            if self._phi is not None:
                getattr(self._phi, "commit", _ignore)(t, point)
                self._phi = self._derivative = None  # release its memory before the evaluation
            value = _finite(self._objective(point))
        except UNDEFINED:
            return math.inf
        if value < self._lowest:
            self._lowest, self._point = value, point
        return value


def _ignore(t: float, point: Any) -> None:
    """For restrictions that keep nothing."""


def _geodesic(manifold: Any, x: Any, step: Any) -> Any:
    """exp(x, step), on the manifold to rounding."""
    end = manifold.exp(x, step)
    if getattr(manifold, "exp_keeps_to_manifold", False):
        return end
    # Rounding takes exp off the manifold a little, and where the cost falls in that direction every step
    # doubles the error. A retraction by zero removes it and changes nothing else.
    return manifold.retraction(end, 0.0 * step)


def _finite(value: Any) -> float:
    value = float(value)
    return value if math.isfinite(value) else math.inf
