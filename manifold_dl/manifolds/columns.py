"""`Columns`: a product of any manifold of single atoms, column by column.

It is slow, and right by construction: the tests compare the vectorised manifolds with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pymanopt.manifolds.manifold import Manifold, RetrAsExpMixin

from manifold_dl.manifolds.columnwise import as_shape, in_dtype_of
from manifold_dl.manifolds.protocol import optional_members
from manifold_dl.manifolds.randomness import global_generator


@dataclass(frozen=True)
class Columns:
    """One and the same manifold for every atom: a factory, for ``manifold=Columns(factory)``.

    Use it to try a geometry that Pymanopt has for one vector, or as a reference for a faster implementation.
    It loops over the atoms and takes 25 to 100 times as long as `Spheres`.

    Parameters
    ----------
    factory : callable
        m → Pymanopt manifold whose points are arrays of shape (m,) or (m, 1).

    Notes
    -----
    A point of the product M × ... × M is an m×k array with a point of M in every column, a
    tangent vector likewise. The metric is the sum over the columns, so dist² = Σ dist_i² and typical_dist =
    √k that of one atom; all else is done column by column.

    Pymanopt's ``Product`` is the same manifold, but its points are lists and not dictionaries.

    Examples
    --------
    >>> from pymanopt.manifolds import Sphere
    >>> from manifold_dl.manifolds import Spheres
    >>> slow, fast = Columns(Sphere)(3, 5), Spheres(3, 5)
    >>> slow
    Columns(Sphere)(3, 5)
    >>> x, y = fast.random_point(0), fast.random_point(1)
    >>> bool(np.isclose(slow.dist(x, y), fast.dist(x, y)))
    True
    """

    factory: Callable[[int], Manifold]

    def __post_init__(self) -> None:
        if not callable(self.factory):
            raise TypeError(
                f"factory={self.factory!r}: Columns takes a factory m → manifold, such as pymanopt's Sphere."
            )

    def __call__(self, m: int, k: int) -> "ProductOfColumns":
        """Return the manifold of m×k dictionaries."""
        return ProductOfColumns(self.factory, m, k)


class ProductOfColumns(Manifold):
    """The product of k manifolds `factory(m)`, with one of its points in every column of an m×k array.

    `Columns(factory)(m, k)` returns one.

    Parameters
    ----------
    factory : callable
        m → Pymanopt manifold whose points are arrays of shape (m,) or (m, 1).
    m : int
        Length of an atom, at least 2.
    k : int
        Number of atoms, at least 1.
    """

    def __init__(self, factory: Callable[[int], Manifold], m: int, k: int) -> None:
        m, k = as_shape(m, k)
        self.atom = factory(m)
        self.m, self.k = m, k
        label = getattr(factory, "__name__", None) or repr(factory)
        super().__init__(f"Columns({label})({m}, {k})", int(self.atom.dim) * k)
        with global_generator(0):
            example = np.asarray(self.atom.random_point())
        if example.shape not in ((m,), (m, 1)):
            raise ValueError(
                f"{self.atom} has points of shape {example.shape}: Columns needs a manifold of single atoms, "
                f"with points of shape ({m},) or ({m}, 1)."
            )
        self._layout = example.shape
        closest = optional_members(self.atom).closest
        if closest is not None:
            self.closest = partial(self._each, closest)

    def __repr__(self) -> str:
        return str(self)

    @property
    def typical_dist(self) -> float:
        """√k times that of one atom."""
        return float(self.atom.typical_dist * np.sqrt(self.k))

    def inner_product(
        self, point: np.ndarray, tangent_vector_a: np.ndarray, tangent_vector_b: np.ndarray
    ) -> float:
        """Sum of the inner products of the atoms."""
        columns = self._columns(point, tangent_vector_a, tangent_vector_b)
        return float(sum(self.atom.inner_product(*column) for column in columns))

    def norm(self, point: np.ndarray, tangent_vector: np.ndarray) -> float:
        """Root of the sum of the squared norms of the atoms."""
        return float(
            np.linalg.norm([self.atom.norm(*column) for column in self._columns(point, tangent_vector)])
        )

    def dist(self, point_a: np.ndarray, point_b: np.ndarray) -> float:
        """Root of the sum of the squared distances of the atoms."""
        return float(np.linalg.norm([self.atom.dist(*column) for column in self._columns(point_a, point_b)]))

    def projection(self, point: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Project every column on the tangent space of its atom."""
        return self._each(self.atom.projection, point, vector)

    def to_tangent_space(self, point: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Make every column a tangent vector of its atom."""
        return self._each(self.atom.to_tangent_space, point, vector)

    def embedding(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Every tangent column as a velocity of its atom."""
        return self._each(self.atom.embedding, point, tangent_vector)

    def euclidean_to_riemannian_gradient(
        self, point: np.ndarray, euclidean_gradient: np.ndarray
    ) -> np.ndarray:
        """Convert every column of the gradient."""
        return self._each(self.atom.euclidean_to_riemannian_gradient, point, euclidean_gradient)

    def euclidean_to_riemannian_hessian(
        self,
        point: np.ndarray,
        euclidean_gradient: np.ndarray,
        euclidean_hessian: np.ndarray,
        tangent_vector: np.ndarray,
    ) -> np.ndarray:
        """Convert every column of the Hessian product."""
        convert = self.atom.euclidean_to_riemannian_hessian
        return self._each(convert, point, euclidean_gradient, euclidean_hessian, tangent_vector)

    def retraction(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Retract every column."""
        return self._each(self.atom.retraction, point, tangent_vector)

    def exp(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Follow the geodesic of every atom, where there is one in closed form."""
        if isinstance(self.atom, RetrAsExpMixin):
            # As Pymanopt's manifolds do, so that line searches and checks use the retraction.
            raise NotImplementedError(f"{self.atom} has no exponential map: use the retraction.")
        return self._each(self.atom.exp, point, tangent_vector)

    def log(self, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        """Return the logarithm of every atom."""
        return self._each(self.atom.log, point_a, point_b)

    def transport(self, point_a: np.ndarray, point_b: np.ndarray, tangent_vector_a: np.ndarray) -> np.ndarray:
        """Carry every column of a tangent vector to the new atom."""
        return self._each(self.atom.transport, point_a, point_b, tangent_vector_a)

    def pair_mean(self, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        """Return the point half way, atom by atom."""
        return self._each(self.atom.pair_mean, point_a, point_b)

    def zero_vector(self, point: np.ndarray) -> np.ndarray:
        """Return the tangent vector that stays at `point`, in its dtype."""
        return np.zeros_like(point)

    def random_point(self, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """Draw every atom by itself; `rng` as in `Spheres`."""
        with global_generator(rng):
            return self._stack([self.atom.random_point() for _ in range(self.k)])

    def random_tangent_vector(
        self, point: np.ndarray, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Draw a direction of unit norm at `point`; `rng` as in `Spheres`."""
        with global_generator(rng):
            # Directions of single atoms are unit vectors: random lengths make that of all atoms random.
            lengths = np.abs(np.random.standard_normal(self.k))  # noqa: NPY002  (what Pymanopt draws from)
            vector = self._each(self.atom.random_tangent_vector, point) * lengths
        return in_dtype_of(point, vector / self.norm(point, vector))

    def _each(self, function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
        return in_dtype_of(arrays[0], self._stack([function(*column) for column in self._columns(*arrays)]))

    def _columns(self, *arrays: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        return [tuple(array[:, i].reshape(self._layout) for array in arrays) for i in range(self.k)]

    def _stack(self, columns: list[Any]) -> np.ndarray:
        return np.stack([np.asarray(column).reshape(self.m) for column in columns], axis=1)
