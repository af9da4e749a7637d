"""`NonNegative`: unit atoms with non-negative entries, through the square map.

The part of the sphere where all entries are ≥ 0 has a boundary, and a geodesic of the sphere leaves it: a
gradient step would have to be truncated there, which smooth optimizers do not allow. Writing an atom as a
square removes the boundary. Three parametrisations were considered:

- logarithmic coordinates d = exp(z): smooth, but zero is at infinite distance, and zeros are desired;
- reflection d = |w|: reaches zero, but has a kink there, and where the objective decreases towards negative
  entries a reflected step increases it;
- squares d = w²: reaches zero, smoothly, with slope zero. This is the one chosen.
"""

import numpy as np
from pymanopt.manifolds.manifold import Manifold

from manifold_dl.manifolds.columnwise import (
    as_shape,
    dots,
    in_dtype_of,
    largest_one,
    norms,
    rounding,
    unit_columns,
)
from manifold_dl.manifolds.spheres import Spheres

# Below it an entry counts as zero: relative to 1/√m, the size of an entry of a flat atom.
FLOOR = 1e-6


class NonNegative(Manifold):
    """Dictionaries whose k atoms are unit vectors with entries ≥ 0.

    Use it for spectra, counts and intensities, where a negative entry has no meaning and atoms should be
    additive components. (The codes may still have either sign: that depends on the coder.)

    Parameters
    ----------
    m : int
        Length of an atom, at least 2.
    k : int
        Number of atoms, at least 1.

    Notes
    -----
    Points are the dictionaries themselves. Every atom d has a root w, the unit vector of entries ≥ 0 with

        d = w² / ‖w²‖,     w² = d / ‖d‖₁   (squares entry by entry),

    and the metric is that of the sphere of the roots: the Fisher-Rao metric of the probability vector d/‖d‖₁.
    A geodesic is a great circle of roots. Where a root passes through zero, the entry of d touches zero and
    grows again, smoothly, like t². Distances are at most π/2 for an atom.

    A *tangent vector* is that of the root, wᵀv = 0, because a velocity of d does not determine v where w = 0.
    Pymanopt supports such manifolds: ``embedding(D, V)`` is the velocity of d, Jv = ‖d‖₁ (I − ddᵀ) 2(w∘v).
    Gradients become Jᵀ∇f, and the Hessian has one more term for the curvature of the square.

    The disadvantage: where an entry is exactly zero, so is its gradient for every objective, and no
    gradient-based optimizer moves it. `closest`, at which an update starts, therefore stays a little inside:
    its entries are at least 1e-6/√m.

    Examples
    --------
    >>> manifold = NonNegative(3, 1)
    >>> manifold.closest(np.array([[-3.0], [0.0], [4.0]])).round(5)
    array([[0.],
           [0.],
           [1.]])
    >>> D = manifold.random_point(0)
    >>> far = manifold.exp(D, 5 * manifold.random_tangent_vector(D, 1))  # past zero entries
    >>> bool(far.min() >= 0), bool(np.isclose(np.linalg.norm(far), 1))
    (True, True)
    """

    def __init__(self, m: int, k: int) -> None:
        m, k = as_shape(m, k)
        self.m, self.k = m, k
        self._roots = Spheres(m, k)
        super().__init__(f"NonNegative({m}, {k})", (m - 1) * k)

    def __repr__(self) -> str:
        return str(self)

    @property
    def typical_dist(self) -> float:
        """Diameter of the manifold: all roots at a right angle."""
        return float(np.pi / 2 * np.sqrt(self.k))

    # Between atoms and roots.

    def root(self, point: np.ndarray) -> np.ndarray:
        """Return the unit vectors w ≥ 0 with d ∝ w².

        Parameters
        ----------
        point : m×k array
            Non-negative unit atoms d.

        Returns
        -------
        m×k array
        """
        return np.sqrt(point / point.sum(axis=0))

    def square(self, roots: np.ndarray) -> np.ndarray:
        """Return the atoms w²/‖w²‖ of any roots w ≠ 0, of either sign.

        Parameters
        ----------
        roots : m×k array

        Returns
        -------
        m×k array
        """
        return unit_columns(largest_one(roots) ** 2)

    def embedding(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Return the velocity of d if its root has velocity v: J v = ‖d‖₁ (I − ddᵀ) 2(w∘v)."""
        raised = 2 * self.root(point) * tangent_vector
        return point.sum(axis=0) * (raised - point * dots(point, raised))

    # The metric and tangent vectors: those of the roots.

    def inner_product(
        self, point: np.ndarray, tangent_vector_a: np.ndarray, tangent_vector_b: np.ndarray
    ) -> float:
        """Sum over all entries of the product of two tangent vectors, as a float."""
        return self._roots.inner_product(point, tangent_vector_a, tangent_vector_b)

    def norm(self, point: np.ndarray, tangent_vector: np.ndarray) -> float:
        """Frobenius norm of a tangent vector, as a float."""
        return self._roots.norm(point, tangent_vector)

    def dist(self, point_a: np.ndarray, point_b: np.ndarray) -> float:
        """Root of the sum of the squared angles between corresponding roots."""
        return self._roots.dist(self.root(point_a), self.root(point_b))

    def projection(self, point: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Project a vector of the space of roots: v − w (wᵀv)."""
        return in_dtype_of(point, self._roots.projection(self.root(point), vector))

    to_tangent_space = projection

    def transport(self, point_a: np.ndarray, point_b: np.ndarray, tangent_vector_a: np.ndarray) -> np.ndarray:
        """Carry a tangent vector to `point_b` by projecting it onto the tangent space there.

        Two points do not determine whether the path between them touched zero. Where it did, the entries that
        should have changed their sign have not: conjugate directions lose some accuracy there.
        """
        return self.projection(point_b, tangent_vector_a)

    def zero_vector(self, point: np.ndarray) -> np.ndarray:
        """Return the tangent vector that stays at `point`, in its dtype."""
        return np.zeros_like(point)

    def euclidean_to_riemannian_gradient(
        self, point: np.ndarray, euclidean_gradient: np.ndarray
    ) -> np.ndarray:
        """Jᵀg = ‖d‖₁ 2w∘(g − d (dᵀg)), which is tangent because scaling a root does not change f."""
        slope = euclidean_gradient - point * dots(point, euclidean_gradient)
        return in_dtype_of(point, 2 * point.sum(axis=0) * self.root(point) * slope)

    def euclidean_to_riemannian_hessian(
        self,
        point: np.ndarray,
        euclidean_gradient: np.ndarray,
        euclidean_hessian: np.ndarray,
        tangent_vector: np.ndarray,
    ) -> np.ndarray:
        """Jᵀ H[Jv] + (dJ[v])ᵀ g, projected. The sphere of the roots adds nothing, because wᵀJᵀg = 0."""
        w, d, g, v = self.root(point), point, euclidean_gradient, tangent_vector
        size = point.sum(axis=0)  # 1/‖w²‖
        slope = g - d * dots(d, g)
        velocity = self.embedding(point, v)
        growth = size * dots(d, 2 * w * v)  # the logarithmic derivative of ‖w²‖
        turned = -velocity * dots(d, g) - d * dots(velocity, g)  # the derivative of `slope`
        bend = 2 * size * (v * slope + w * turned - w * slope * growth)
        return self.projection(point, bend + self.euclidean_to_riemannian_gradient(point, euclidean_hessian))

    # Maps between points.

    def exp(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Follow the great circles of the roots, and square them."""
        return in_dtype_of(point, self.square(self._roots.exp(self.root(point), tangent_vector)))

    def retraction(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Square w + v and normalise: equal to `exp` up to third order."""
        return in_dtype_of(point, self.square(self.root(point) + tangent_vector))

    def log(self, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        """Return the tangent vector at `point_a` whose geodesic reaches `point_b` without a zero entry."""
        return in_dtype_of(point_a, self._roots.log(self.root(point_a), self.root(point_b)))

    def pair_mean(self, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        """Return the point half way along the geodesic from `point_a` to `point_b`."""
        return self.exp(point_a, self.log(point_a, point_b) / 2)

    @np.errstate(over="ignore")  # atoms so long that their squares overflow are not unit atoms
    def closest(self, point: np.ndarray) -> np.ndarray:
        """Return the dictionary nearest to an m×k array, up to the signs of its columns, and without zeros.

        A column and its negative are equivalent, since codes absorb the sign: the one whose positive part is
        larger is kept, negative entries are set to zero, and all are raised to at least 1e-6/√m.
        """
        scaled = largest_one(point)
        positive, negative = np.maximum(scaled, 0), np.maximum(-scaled, 0)
        kept = np.where(norms(positive) >= norms(negative), positive, negative)
        flat = np.full_like(kept, 1 / np.sqrt(len(point)))
        lengths = norms(kept)
        nearest = np.where(lengths > 0, kept / np.where(lengths > 0, lengths, 1), flat)
        nearest = unit_columns(np.maximum(nearest, FLOOR * flat))
        settled = norms(point - nearest) <= rounding(point)
        return in_dtype_of(point, np.where(settled, point, nearest))

    # Randomness.

    def random_point(self, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """Draw roots uniformly; `rng` as in `Spheres`."""
        return self.square(self._roots.random_point(rng))

    def random_tangent_vector(
        self, point: np.ndarray, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Draw a direction of unit norm at `point`; `rng` as in `Spheres`."""
        return in_dtype_of(point, self._roots.random_tangent_vector(self.root(point), rng))
