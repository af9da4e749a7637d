"""Which arrays are points of a manifold, and how an array is brought onto it.

Pymanopt has no test of membership, and its `projection` is that of a tangent vector. `FeasibleSet` adds, for
any manifold: the point at which an update starts if a dictionary is not on the manifold (the closest one
where it can be computed), and whether an array that an optimizer returned is a point. `factories.py` makes
these sets; the problems and update rules call them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pymanopt.manifolds.manifold import Manifold

from manifold_dl.components.errors import ComponentError, is_users, raise_nested
from manifold_dl.manifolds.columnwise import norms, rounding
from manifold_dl.manifolds.protocol import optional_members

# `closest` may stay a little inside of a manifold with a boundary: that of NonNegative does, by 1e-6.
INSIDE = 1e-5
_THERE = 1e-3


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """The points of one manifold among all m×k arrays.

    Attributes
    ----------
    manifold : pymanopt.manifolds.manifold.Manifold
        Its points are m×k arrays.
    example : m×k array
        A point of it, from which distances are measured.
    relations : frozenset of str
        Which of the methods "dist" and "log" the manifold has: from other arrays than points the distance is
        not finite, or the direction to them no tangent vector.
    unit_atoms : bool
        Whether all columns of all points have norm 1.
    separate_atoms : bool
        Whether every atom may move by itself, as on a product of spheres.
    missing_methods : function () → frozenset of str
        The methods that some optimizers call and the manifold does not have.

    Examples
    --------
    >>> from manifold_dl.manifolds import feasible_set
    >>> from pymanopt.manifolds import Stiefel
    >>> orthonormal = feasible_set(Stiefel, 3, 2)
    >>> start = orthonormal.nearest_point(np.array([[2.0, 1.0], [0.0, 1.0], [0.0, 0.0]]))
    >>> print(start.round(12) + 0.0)
    [[1. 0.]
     [0. 1.]
     [0. 0.]]
    >>> orthonormal.contains(start), orthonormal.contains(3 * start)
    (True, False)
    """

    manifold: Manifold
    example: np.ndarray
    relations: frozenset[str]
    unit_atoms: bool
    separate_atoms: bool
    missing_methods: Callable[[], frozenset[str]] = frozenset

    def nearest_point(self, array: np.ndarray) -> np.ndarray:
        """Return the point at which to start if `array` may not be one; `array` itself if it is.

        It is `manifold.closest(array)` if there is such a method, else the retraction of a zero step.
        """
        try:
            point = self._nearest(array)
            is_known = point is array and self._closest is not None
            if point is not None and (is_known or self.settled(point) is not None):
                return point
            self._require_moves()
        except Exception as error:
            raise_nested(error)
        raise ValueError(
            f"The start is not on the {_named(self.manifold)}, and the nearest point of it is not "
            "known: give the manifold a method closest(array) that returns that point for any m×k "
            "array, or start from a dictionary on the manifold."
        )

    @cached_property
    def _closest(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """The optional method `closest` of the manifold; Pymanopt's manifolds have none."""
        return optional_members(self.manifold).closest

    def _nearest(self, array: np.ndarray) -> np.ndarray | None:
        point: np.ndarray | None
        with np.errstate(all="ignore"):
            if self._closest is not None:
                point = self._closest(array)
            else:
                point = self._retracted(array)
                if point is not None and _agree(point, array, rounding(array)):
                    point = array
        return point if point is None or point is array else np.asarray(point, array.dtype)

    def _require_moves(self) -> None:
        """Raise a `ComponentError` if a user's manifold cannot move from a point of its own."""
        if not is_users(self.manifold):
            return
        for name in ("closest", "retraction"):
            if name == "retraction":
                point = self._retracted(self.example)
            else:
                point = self.example if self._closest is None else self._closest(self.example)
            if point is None or np.shape(point) != self.example.shape or not np.isfinite(point).all():
                fault = f"returned no finite m×k array from its method {name} at a random point of its own"
                raise ComponentError(self.manifold, "manifold", fault)

    def contains(self, array: np.ndarray) -> bool:
        """Whether `array` is a point, up to half the digits of its dtype."""
        return self.settled(array) is not None

    def settled(self, array: np.ndarray) -> np.ndarray | None:
        """Return the point that `array` is up to half the digits of its dtype, or None.

        It is `array` itself, unless that is off the manifold by more than a few roundings.
        """
        if not np.isfinite(array).all():
            return None
        with np.errstate(all="ignore"):
            near: np.ndarray | None
            if self._closest is not None:
                near = self._closest(array)
                if near is array or np.array_equal(near, array):
                    return array
                if not _agree(near, array, INSIDE):
                    return None
            near = self._retracted(array)
            half_the_digits = np.sqrt(np.finfo(array.dtype).eps)
            if near is None or not _agree(near, array, half_the_digits) or not self._is_reached(near):
                return None
        return array if _agree(near, array, rounding(array)) else np.asarray(near, array.dtype)

    def _retracted(self, array: np.ndarray) -> np.ndarray | None:
        """Return the retraction of a zero step, which is the point itself if `array` is one."""
        try:
            point = np.asarray(self.manifold.retraction(array, self.manifold.zero_vector(array)))
        except (np.linalg.LinAlgError, ArithmeticError):
            return None
        return point if point.shape == array.shape and np.isfinite(point).all() else None

    def _is_reached(self, point: np.ndarray) -> bool:
        """Check what a retraction may not notice: distances, logarithms and projections."""
        manifold, example = self.manifold, self.example
        try:
            if "dist" in self.relations and not np.isfinite(manifold.dist(example, point)):
                return False
            if "log" in self.relations and not leads(manifold, example, point):
                return False
            return projects(manifold, point, example)
        except (np.linalg.LinAlgError, ArithmeticError):
            return False


def leads(manifold: Manifold, point: np.ndarray, other: np.ndarray) -> bool:
    """Whether the logarithm, the direction from a point to another, is a tangent vector that leads there."""
    vector = manifold.log(point, other)
    if not (np.isfinite(vector).all() and _is_tangent(manifold, point, vector, vector)):
        return False
    try:
        end = np.asarray(manifold.exp(point, vector))
    except NotImplementedError:
        return True
    # Lines end at either of two unit vectors. An arccos keeps half of the digits only, of float32 a few.
    signs = np.copysign(1, np.sum(end * other, axis=0))
    return _agree(signs * end, other, _THERE)


def projects(manifold: Manifold, point: np.ndarray, vector: np.ndarray) -> bool:
    """Whether projecting a vector twice is the same as once, as it is at every point of a manifold."""
    return _is_tangent(manifold, point, manifold.projection(point, vector), vector)


def _is_tangent(manifold: Manifold, point: np.ndarray, tangent: np.ndarray, vector: np.ndarray) -> bool:
    """Whether projecting changes nothing, up to half the digits of `vector`.

    Tangent vectors may have a representation of their own; then `embedding` comes first.
    """
    tolerance = np.sqrt(np.finfo(point.dtype).eps) * np.linalg.norm(vector)
    for ambient in (tangent, manifold.embedding(point, tangent)):
        if np.linalg.norm(manifold.projection(point, ambient) - tangent) <= tolerance:
            return True
    return False


def _agree(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    """Whether no column differs by more than `tolerance` times the longest of them."""
    return bool(norms(a - b).max() <= tolerance * max(1e-300, norms(b).max()))


def _named(manifold: Any) -> str:
    name = str(manifold)
    return name if "manifold" in name.lower() else f"manifold {name}"
