"""The state of L-BFGS: iterates, steps, and the pairs (s, y) from which the inverse Hessian is built.

`LBFGS` calls `inverse_hessian_product` for its direction and `update_pairs` after every step.
"""

import functools
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pymanopt


class CountedCost:
    """A cost that counts its evaluations, and is +∞ where it is NaN: no searcher takes +∞ for a decrease."""

    def __init__(self, cost: Any) -> None:
        functools.update_wrapper(self, cost)  # copies its attributes, such as `restrict`
        self._cost = cost
        self.evaluations = 0

    def __call__(self, point: Any) -> float:
        self.evaluations += 1
        value = self._cost(point)
        return np.inf if np.isnan(value) else value


class Iterate(NamedTuple):
    """A point with its cost and its gradient."""

    point: Any
    cost: float
    gradient: Any
    gradient_norm: float

    @classmethod
    def at(cls, point: Any, cost: CountedCost, problem: pymanopt.Problem) -> "Iterate":
        """Evaluate cost and gradient at a point."""
        value, gradient = cost(point), problem.riemannian_gradient(point)
        return cls(point, value, gradient, problem.manifold.norm(point, gradient))

    @property
    def is_finite(self) -> bool:
        """Whether cost and gradient are finite."""
        return bool(np.isfinite(self.cost) and np.isfinite(self.gradient_norm))


class Step(NamedTuple):
    """A search direction, the length of the step along it, and the iterate at its end."""

    direction: Any
    length: float
    end: Iterate


class _Pair(NamedTuple):
    """A step s, the change y of the gradient, and ⟨s, y⟩."""

    s: Any
    y: Any
    sy: float


Pairs: TypeAlias = deque[_Pair]


def inverse_hessian_product(problem: pymanopt.Problem, current: Iterate, pairs: Pairs) -> Any:
    """Return H grad f by the two-loop recursion (Nocedal and Wright, Algorithm 7.4)."""
    inner = functools.partial(problem.manifold.inner_product, current.point)
    q, alphas = current.gradient, []
    for s, y, sy in reversed(pairs):
        alphas.append(float(inner(s, q) / sy))
        q = q - alphas[-1] * y
    _, y, sy = pairs[-1]
    yPy = inner(y, problem.preconditioner(current.point, y))
    r = problem.preconditioner(current.point, q)
    if yPy > 0:
        r = float(sy / yPy) * r
    for s, y, sy in pairs:
        r = r + (alphas.pop() - float(inner(y, r) / sy)) * s
    return r


def update_pairs(pairs: Pairs, manifold: Any, current: Iterate, step: Step) -> None:
    """Transport the pairs to the new point and add that of the step, if it satisfies the cautious rule."""
    transport = functools.partial(manifold.transport, current.point, step.end.point)
    inner = functools.partial(manifold.inner_product, step.end.point)

    s = transport(float(step.length / manifold.norm(current.point, step.direction)) * step.direction)
    y = step.end.gradient - transport(current.gradient)
    # The transport need not preserve inner products, so those of the old pairs are computed again.
    transported = [_pair(inner, transport(old.s), transport(old.y)) for old in pairs]
    new = _pair(inner, s, y)
    pairs.clear()
    pairs.extend(old for old in transported if old.sy > 0)
    if new.sy > 0 and new.sy >= 1e-4 * current.gradient_norm * inner(s, s):
        pairs.append(new)


def _pair(inner: Callable[[Any, Any], float], s: Any, y: Any) -> _Pair:
    return _Pair(s, y, inner(s, y))
