"""Random points and tangent vectors of one manifold, and how to compare them, for `check_manifold`.

Pymanopt has no test for "is this a point?", so a point that a map returns is recognised by the projection
there: at an array that is off the manifold, projecting twice differs from projecting once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from pymanopt.manifolds.manifold import Manifold, RiemannianSubmanifold

from manifold_dl.diagnostics.paths import has_exp, random_direction, random_point, tangent_part

# A few roundings in sums of some dozens of terms, relative to the largest entry (at least one).
ROUNDING = 1e-12
# Step sizes at which a remainder of order t³ is far above rounding and t⁴ far below it.
STEPS = np.logspace(-3, -1, 9)
# The length of a tangent vector that `log` finds again, unless a manifold is curved or folded very sharply.
SHORT = 1e-4
# Rounding errors must not accumulate over this many steps, of at least this length.
N_STEPS, _STEP = 50, 0.01


class ManifoldSample:
    """A manifold with two random points, two unit tangent vectors at the first, and random ambient arrays.

    Parameters
    ----------
    manifold : pymanopt.manifolds.manifold.Manifold
        An instance.
    rng : numpy.random.Generator
        For everything that is drawn.
    reach : float or callable, optional
        The length up to which `log` inverts `exp`, or a function that computes it from the point.
    """

    def __init__(
        self,
        manifold: Manifold,
        rng: np.random.Generator,
        reach: float | Callable[[np.ndarray], float] | None = None,
    ) -> None:
        self.manifold, self.rng = manifold, rng
        self.x, self.y = random_point(manifold, rng), random_point(manifold, rng)
        self.u, self.v = (random_direction(manifold, self.x, rng) for _ in range(2))
        self.has_exp = has_exp(manifold, self.x, self.u)
        length = reach(self.x) if callable(reach) else reach
        #: The length of steps after which `log` and `dist` are checked.
        self.reach = SHORT if length is None else float(length)

    def ambient(self) -> np.ndarray:
        """Draw a random array of the shape of a point."""
        array = self.rng.standard_normal(self.x.shape)
        if np.iscomplexobj(self.x):
            array = array + 1j * self.rng.standard_normal(self.x.shape)
        return array

    def direction(self, point: np.ndarray) -> np.ndarray:
        """Draw a tangent vector of length one at a point."""
        return random_direction(self.manifold, point, self.rng)

    def after_many_steps(self, move: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the point after `N_STEPS` random steps from x, by exp or retraction."""
        point = self.x
        for _ in range(N_STEPS):
            point = move(point, max(self.reach, _STEP) * self.direction(point))
        return point

    def project(self, vector: np.ndarray, point: np.ndarray | None = None) -> np.ndarray:
        """Project a vector onto the tangent space, at x by default."""
        return tangent_part(self.manifold, self.x if point is None else point, vector)

    def velocity(self, vector: np.ndarray) -> np.ndarray:
        """Return the velocity of the point x that a tangent vector stands for."""
        return self.manifold.embedding(self.x, vector)

    @property
    def has_ambient_tangents(self) -> bool:
        """Whether tangent vectors are velocities themselves, and not given in coordinates of their own."""
        return np.allclose(self.velocity(self.u), self.u) and np.allclose(self.velocity(self.v), self.v)

    def is_tangent(self, vector: np.ndarray, point: np.ndarray | None = None) -> bool:
        """Whether projecting a vector changes nothing but the last digits."""
        return agree(self.project(vector, point), vector)

    def is_point(self, point: np.ndarray) -> bool:
        """Whether the projection at `point` is idempotent."""
        once = self.project(self.ambient(), point)
        return bool(np.isfinite(point).all()) and self.is_tangent(once, point)

    @property
    def is_submanifold(self) -> bool:
        """Whether the metric is that of the space around, at least for the two random directions."""
        x, u, v = self.x, self.u, self.v
        pairs = ((u, u), (u, v), (v, v))
        is_embedded = isinstance(self.manifold, RiemannianSubmanifold) and self.has_ambient_tangents
        return is_embedded and np.allclose(
            [self.manifold.inner_product(x, a, b) for a, b in pairs],
            [np.real(np.vdot(a, b)) for a, b in pairs],
            atol=1e-9,
        )


def agree(actual: Any, expected: Any, tolerance: float = ROUNDING) -> bool:
    """Whether two arrays or numbers differ by no more than `tolerance`, relative to the larger of 1 and them.

    Examples
    --------
    >>> agree([1.0, 2.0], [1.0, 2.0 + 1e-13]), agree(1.0, 1.001), agree(np.nan, np.nan)
    (True, False, False)
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return False
    size = max(1.0, float(np.abs(expected).max(initial=0)))
    return bool(np.abs(actual - expected).max(initial=0) <= tolerance * size)


def slope_of(difference: Callable[[float], np.ndarray], steps: np.ndarray = STEPS) -> float:
    """Return the slope of ‖difference(t)‖ on logarithmic axes; infinite if only rounding errors are left.

    Examples
    --------
    >>> round(slope_of(lambda t: np.array([3.0 * t**2])), 6)
    2.0
    """
    sizes = np.array([np.linalg.norm(difference(t)) for t in steps])
    visible = sizes > 1e-13
    if visible.sum() < 3:
        return np.inf
    return float(np.polyfit(np.log(steps[visible]), np.log(sizes[visible]), 1)[0])
