"""Unit atoms with non-negative entries, through the square map.

The corner of the sphere where all entries are ≥ 0 has walls, and a geodesic of the sphere runs into them: a
gradient step would have to be cut off there, and no smooth optimizer survives that. Writing an atom as a
square takes the walls away. Three geometries were weighed:

- logarithmic coordinates d = exp(z): smooth, but zero is infinitely far, and zeros are what one is after;
- reflection d = |w|: reaches zero, but has a kink there, and where the objective wants to go below zero the
  reflected step goes up;
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

    Use it for spectra, counts and intensities, where a negative entry means nothing and atoms should be
    parts. (The codes may still have either sign: that is the coder's choice.)

    Parameters
    ----------
    m : int
        Length of an atom, at least 2.
    k : int
        Number of atoms, at least 1.

    Notes
    -----
    Points are the dictionaries themselves. Behind every atom d stands its root w, the unit vector of entries
    ≥ 0 with

        d = w² / ‖w²‖,     w² = d / ‖d‖₁   (squares entry by entry),

    and the metric is that of the sphere of the roots: the Fisher-Rao metric of the probability vector d/‖d‖₁.
    A geodesic is a great circle of roots. Where one passes through zero, the entry of d touches zero and
    comes back, smoothly, like t². Distances are at most π/2 for an atom.

    A *tangent vector* is that of the root, wᵀv = 0, because a velocity of d cannot tell v where w = 0.
    Pymanopt knows such manifolds: ``embedding(D, V)`` gives the velocity of d, J v = ‖d‖₁ (I − ddᵀ) 2(w∘v).
    Gradients become Jᵀ∇f, and the Hessian has one more term for the curvature of the square.

    The price: where an entry is exactly zero, so is its gradient, whatever the objective says, and no
    optimizer that follows gradients will move it. `closest`, from which an update begins, therefore stays a
    little inside: its entries are at least 1e-6/√m.

    Examples
    --------
    >>> manifold = NonNegative(3, 1)
    >>> manifold.closest(np.array([[-3.0], [0.0], [4.0]])).round(5)
    array([[0.],
           [0.],
           [1.]])
    >>> D = manifold.random_point(0)
    >>> far = manifold.exp(D, 5 * manifold.random_tangent_vector(D, 1))  # through walls, and back
    >>> bool(far.min() >= 0), bool(np.isclose(np.linalg.norm(far), 1))
    (True, True)
    """

    def __init__(self, m, k):
        m, k = as_shape(m, k)
        self._shape = m, k
        self._roots = Spheres(m, k)
        super().__init__(f"NonNegative({m}, {k})", (m - 1) * k)

    def __repr__(self):
        return str(self)

    @property
    def typical_dist(self):
        """Diameter of the manifold: all roots at a right angle."""
        return np.pi / 2 * np.sqrt(self._shape[1])

    # Between atoms and roots.

    def root(self, point):
        """The unit vectors w ≥ 0 with d ∝ w²."""
        return np.sqrt(point / point.sum(axis=0))

    def square(self, roots):
        """The atoms w²/‖w²‖ of any roots w ≠ 0, of either sign."""
        return unit_columns(largest_one(roots) ** 2)

    def embedding(self, point, tangent_vector):
        """The velocity of d when its root moves with velocity v: J v = ‖d‖₁ (I − ddᵀ) 2(w∘v)."""
        raised = 2 * self.root(point) * tangent_vector
        return point.sum(axis=0) * (raised - point * dots(point, raised))

    # The metric and tangent vectors: those of the roots.

    def inner_product(self, point, tangent_vector_a, tangent_vector_b):
        """Sum over all entries of the product of two tangent vectors, as a float."""
        return self._roots.inner_product(point, tangent_vector_a, tangent_vector_b)

    def norm(self, point, tangent_vector):
        """Frobenius norm of a tangent vector, as a float."""
        return self._roots.norm(point, tangent_vector)

    def dist(self, point_a, point_b):
        """Root of the sum of the squared angles between corresponding roots."""
        return self._roots.dist(self.root(point_a), self.root(point_b))

    def projection(self, point, vector):
        """Project a vector of the space of roots: v − w (wᵀv)."""
        return in_dtype_of(point, self._roots.projection(self.root(point), vector))

    to_tangent_space = projection

    def transport(self, point_a, point_b, tangent_vector_a):
        """Carry a tangent vector to `point_b` by projecting it onto the tangent space there.

        Two points do not tell whether the way between them met a wall. Where it did, the entries that should
        have changed their sign have not: a memory of directions loses a little there.
        """
        return self.projection(point_b, tangent_vector_a)

    def zero_vector(self, point):
        """Return the tangent vector that stays at `point`, in its dtype."""
        return np.zeros_like(point)

    def euclidean_to_riemannian_gradient(self, point, euclidean_gradient):
        """Jᵀg = ‖d‖₁ 2w∘(g − d (dᵀg)), which is tangent because no root gains by growing."""
        slope = euclidean_gradient - point * dots(point, euclidean_gradient)
        return in_dtype_of(point, 2 * point.sum(axis=0) * self.root(point) * slope)

    def euclidean_to_riemannian_hessian(self, point, euclidean_gradient, euclidean_hessian, tangent_vector):
        """Jᵀ H[Jv] + (dJ[v])ᵀ g, projected. The sphere of the roots adds nothing, because wᵀJᵀg = 0."""
        w, d, g, v = self.root(point), point, euclidean_gradient, tangent_vector
        size = point.sum(axis=0)  # 1/‖w²‖
        slope = g - d * dots(d, g)
        velocity = self.embedding(point, v)
        growth = size * dots(d, 2 * w * v)  # the logarithmic derivative of ‖w²‖
        turned = -velocity * dots(d, g) - d * dots(velocity, g)  # the derivative of `slope`
        bend = 2 * size * (v * slope + w * turned - w * slope * growth)
        return self.projection(point, bend + self.euclidean_to_riemannian_gradient(point, euclidean_hessian))

    # Moving, and finding the way back.

    def exp(self, point, tangent_vector):
        """Follow the great circles of the roots, and square them."""
        return in_dtype_of(point, self.square(self._roots.exp(self.root(point), tangent_vector)))

    def retraction(self, point, tangent_vector):
        """Square w + v and normalise: equal to `exp` up to third order."""
        return in_dtype_of(point, self.square(self.root(point) + tangent_vector))

    def log(self, point_a, point_b):
        """Return the tangent vector at `point_a` whose geodesic reaches `point_b` without touching a wall."""
        return in_dtype_of(point_a, self._roots.log(self.root(point_a), self.root(point_b)))

    def pair_mean(self, point_a, point_b):
        """Return the point half way along the geodesic from `point_a` to `point_b`."""
        return self.exp(point_a, self.log(point_a, point_b) / 2)

    @np.errstate(over="ignore")  # atoms so long that their squares overflow are not unit atoms
    def closest(self, point):
        """The dictionary nearest to any m×k array, but just inside the walls, and up to the signs of its
        columns.

        A column and its negative serve equally well, since codes take over the sign: the one whose positive
        part is larger is kept, negative entries are set to zero, and all are raised to at least 1e-6/√m.
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

    def random_point(self, rng=None):
        """Draw roots uniformly; `rng` as in `Spheres`."""
        return self.square(self._roots.random_point(rng))

    def random_tangent_vector(self, point, rng=None):
        """Draw a direction of unit norm at `point`; `rng` as in `Spheres`."""
        return in_dtype_of(point, self._roots.random_tangent_vector(self.root(point), rng))
