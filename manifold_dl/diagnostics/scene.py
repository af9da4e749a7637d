"""Random points and directions of a manifold, and the nature of its vectors, for `check_manifold`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from pymanopt.manifolds.manifold import RiemannianSubmanifold

from manifold_dl.diagnostics.travel import has_exp, random_direction, random_point, tangent_part

# Rounding of sums of some hundred products, with room for the condition of a random point.
ROUNDING = 1e-9
# Steps at which a remainder of order t³ is far above rounding, and t⁴ far below it.
_STEPS = np.logspace(-3, -1, 9)


class Scene:
    """A manifold with two random points, two tangent directions at the first, and arrays around it."""

    def __init__(self, manifold: Any, rng: np.random.Generator) -> None:
        self.manifold, self.rng = manifold, rng
        self.x, self.y = random_point(manifold, rng), random_point(manifold, rng)
        self.u, self.v = (random_direction(manifold, self.x, rng) for _ in range(2))
        self.has_exp = has_exp(manifold, self.x, self.u)

    def ambient(self) -> np.ndarray:
        """A random array of the size of a point."""
        array = self.rng.standard_normal(self.x.shape)
        if np.iscomplexobj(self.x):
            array = array + 1j * self.rng.standard_normal(self.x.shape)
        return array

    def project(self, vector: np.ndarray, point: np.ndarray | None = None) -> np.ndarray:
        return tangent_part(self.manifold, self.x if point is None else point, vector)

    def velocity(self, vector: np.ndarray) -> np.ndarray:
        """The velocity of the point that a tangent vector stands for."""
        return self.manifold.embedding(self.x, vector)

    @property
    def speaks_ambient(self) -> bool:
        """Whether tangent vectors are themselves velocities, and not written in coordinates of their own."""
        return np.allclose(self.velocity(self.u), self.u) and np.allclose(self.velocity(self.v), self.v)

    def is_tangent(self, vector: np.ndarray, point: np.ndarray | None = None) -> bool:
        off = np.linalg.norm(self.project(vector, point) - vector)
        return off <= ROUNDING * (np.linalg.norm(vector) or 1)

    def is_point(self, point: np.ndarray) -> bool:
        """Whether the projection at `point` projects."""
        once = self.project(self.ambient(), point)
        return bool(np.isfinite(point).all()) and self.is_tangent(once, point)

    @property
    def is_submanifold(self) -> bool:
        """Whether the metric is that of the space around, at least as far as the two directions show."""
        x, u, v = self.x, self.u, self.v
        pairs = ((u, u), (u, v), (v, v))
        is_embedded = isinstance(self.manifold, RiemannianSubmanifold) and self.speaks_ambient
        return is_embedded and np.allclose(
            [self.manifold.inner_product(x, a, b) for a, b in pairs],
            [np.real(np.vdot(a, b)) for a, b in pairs],
            atol=ROUNDING,
        )


def slope_of(difference: Callable[[float], np.ndarray]) -> float:
    """The slope of ‖difference(t)‖ on logarithmic axes; infinite where nothing but rounding is left."""
    sizes = np.array([np.linalg.norm(difference(t)) for t in _STEPS])
    visible = sizes > 1e-13
    if visible.sum() < 3:
        return np.inf
    return np.polyfit(np.log(_STEPS[visible]), np.log(sizes[visible]), 1)[0]
