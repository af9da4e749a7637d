"""φ along the curve that leaves a point in some direction: what a line search evaluates, on any manifold.

An objective may offer φ itself (`SearchedCost.restrict` in `protocol.py`). The cost of a dictionary problem
does, at a fraction of the price of an evaluation. For any other cost φ(t) is the cost at the point of the
curve.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from manifold_dl.line_search.protocol import members_of_cost, members_of_restriction
from manifold_dl.manifolds.protocol import optional_members

# Far out or at a singularity there may be no point or no value: a t to avoid, not an error.
UNDEFINED = (ArithmeticError, np.linalg.LinAlgError)


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
        restrict = members_of_cost(objective).restrict
        self._phi: Any = None if restrict is None else restrict(x, d)
        self._derivative: Callable[[float], float] | None
        self._commit: Callable[[float, Any], None] | None
        self._derivative, self._commit = members_of_restriction(self._phi)
        keeps_to_manifold = optional_members(manifold).exp_keeps_to_manifold
        self._map = manifold.retraction
        if keeps_to_manifold:
            self._map = manifold.exp
        elif self._phi is not None:
            self._map = partial(_exp_on_manifold, manifold)
        # The lowest point made so far: the very array that was evaluated, because a cache may compare
        # identities.
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
            if self._phi is not None and self._commit is not None:
                self._commit(t, point)
                self._phi = self._derivative = self._commit = None  # release memory before the evaluation
            value = _finite(self._objective(point))
        except UNDEFINED:
            return math.inf
        if value < self._lowest:
            self._lowest, self._point = value, point
        return value


def _exp_on_manifold(manifold: Any, x: Any, step: Any) -> Any:
    """exp(x, step), on the manifold to rounding."""
    # Rounding takes exp off the manifold a little, and where the cost falls in that direction every step
    # doubles the error. A retraction by zero removes it and changes nothing else.
    return manifold.retraction(manifold.exp(x, step), 0.0 * step)


def _finite(value: Any) -> float:
    value = float(value)
    return value if math.isfinite(value) else math.inf
