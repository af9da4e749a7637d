"""Geometries for a dictionary: where its m×k matrix of atoms is allowed to move.

The paper keeps every atom on the unit sphere, which makes a dictionary a point on a product of spheres
(:class:`Spheres`). Since an atom and its negative span the same line, and the codes absorb the sign, one may
as well move on a product of lines, the Grassmannians G(m, 1) of the paper's Section III (:class:`Lines`).

Wherever this package asks for a ``manifold=``, it takes a *factory*: anything that can be called with (m, k)
and returns a Pymanopt manifold whose points are m×k arrays. The classes below are such factories, and so are
``pymanopt.manifolds.Oblique`` and ``pymanopt.manifolds.Stiefel`` as they are.
"""

import math
from numbers import Integral

import numpy as np
from pymanopt.manifolds import Oblique

__all__ = ["Lines", "Spheres"]


class Spheres(Oblique):
    """Dictionaries whose k atoms are unit vectors: a product of k unit spheres in R^m.

    The same manifold as Pymanopt's `Oblique`, made safe for long runs: moving along a geodesic does not drift
    off the spheres, distances and logarithms keep their digits for equal, nearly equal and opposite atoms,
    and float32 dictionaries stay float32.

    Parameters
    ----------
    m : int
        Length of an atom, at least 2.
    k : int
        Number of atoms, at least 1.

    Notes
    -----
    Everything happens column by column. With x a unit column, v a tangent one (xᵀv = 0) and θ = ‖v‖,

    - the geodesic is exp(x, v) = x cos θ + v sin θ / θ,
    - the angle between x and y is 2 atan2(‖x − y‖, ‖x + y‖). The familiar arccos(xᵀy) sees no angle below
      1e-8, because 1 − θ²/2 rounds to 1; this form keeps its digits from 0 to π [1]_,
    - the distance of two dictionaries is the root of the sum of their squared angles.

    References
    ----------
    .. [1] W. Kahan, "How futile are mindless assessments of roundoff in floating-point computation?", 2006.

    Examples
    --------
    A quarter turn of one atom, while the other one rests:

    >>> spheres = Spheres(3, 2)
    >>> D = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> V = np.array([[0.0, 0.0], [0.0, 0.0], [np.pi / 2, 0.0]])
    >>> spheres.exp(D, V).round(12)
    array([[0., 0.],
           [0., 1.],
           [1., 0.]])
    >>> round(spheres.dist(D, -D) ** 2 / np.pi**2, 12)  # both atoms half a circle away: π² + π²
    2.0
    """

    def __init__(self, m, k):
        if not isinstance(m, Integral) or m < 2:
            raise ValueError(
                f"m={m!r}: an atom needs a whole number of entries, at least 2; "
                "with a single one it can only be +1 or -1 and has nowhere to move."
            )
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k={k!r}: a dictionary needs a whole number of atoms, at least 1.")
        super().__init__(int(m), int(k))

    def __repr__(self):
        return f"{type(self).__name__}({self._m}, {self._n})"

    __str__ = __repr__

    # The metric. Scalars are Python floats: a NumPy float64 would turn float32 arrays into float64 ones.

    def inner_product(self, point, tangent_vector_a, tangent_vector_b):
        """Sum over all entries of the product of two tangent vectors, as a float."""
        if tangent_vector_a.flags.fnc:  # vdot reads rows first: transposing spares it a copy of both
            return float(np.vdot(tangent_vector_a.T, tangent_vector_b.T))
        return float(np.vdot(tangent_vector_a, tangent_vector_b))

    def norm(self, point, tangent_vector):
        """Frobenius norm of a tangent vector, as a float."""
        entries = tangent_vector.ravel(order="K")
        return math.sqrt(entries.dot(entries))

    def dist(self, point_a, point_b):
        """Geodesic distance: the root of the sum of the squared angles between corresponding atoms."""
        return float(np.linalg.norm(self._angles(point_a, point_b)))

    def _angles(self, point_a, point_b):
        return 2 * np.arctan2(_norms(point_a - point_b), _norms(point_a + point_b))

    # Tangent vectors.

    def projection(self, point, vector):
        """Remove from every column its component along the atom: v − x (xᵀv)."""
        return _in_dtype_of(point, vector - point * _dots(point, vector))

    to_tangent_space = projection

    def transport(self, point_a, point_b, tangent_vector_a):
        """Carry a tangent vector from `point_a` to `point_b` by projecting it onto the new tangent space."""
        return self.projection(point_b, tangent_vector_a)

    def zero_vector(self, point):
        """Return the tangent vector that stays at `point`, in its dtype."""
        return np.zeros_like(point)

    def euclidean_to_riemannian_hessian(self, point, euclidean_gradient, euclidean_hessian, tangent_vector):
        """Hessian product on the spheres: the projected Euclidean one, minus v (xᵀ∇f) for their curvature."""
        curvature = tangent_vector * _dots(point, euclidean_gradient)
        return self.projection(point, euclidean_hessian - curvature)

    # Moving, and finding the way back.

    def exp(self, point, tangent_vector):
        """Follow the geodesics x cos θ + v sin θ / θ, and renormalise so that rounding never accumulates."""
        # sin θ / θ and cos θ round to 1 long before θ = 1e-30, so an atom at rest needs no case of its own.
        angles = np.maximum(_norms(tangent_vector), 1e-30)
        moved = point * np.cos(angles)
        moved += tangent_vector * (np.sin(angles) / angles)
        moved /= _norms(moved)
        return _in_dtype_of(point, moved)

    def retraction(self, point, tangent_vector):
        """Step off the spheres and back, (x + v) / ‖x + v‖: equal to `exp` up to θ³/3, and without a sine."""
        return _in_dtype_of(point, _unit_columns(point + tangent_vector))

    def log(self, point_a, point_b):
        """Return the tangent vector at `point_a` whose geodesic reaches `point_b` the short way, at time 1.

        Towards the antipode every direction is equally short. There the one closest to a coordinate axis
        is taken, so that the answer is always the same.
        """
        cosines = _dots(point_a, point_b)
        # x has no tangent component, so y, y − x and y + x all have the same one. It is computed from the
        # shorter of the last two, which is exact where cancellation would hurt: near x and near −x.
        tangents = self.projection(point_a, point_b - point_a * np.copysign(1, cosines))
        sines = _norms(tangents)
        angles = np.arctan2(sines, cosines)

        # Unit columns are unit to a few roundings only: a smaller tangent component carries no direction.
        antipodal = (cosines < 0) & (sines < 8 * np.finfo(sines.dtype).eps)
        if antipodal.any():
            tangents[:, antipodal] = self._any_direction(point_a[:, antipodal])
            sines[antipodal] = 1
        # Where the sine is 0 there is nothing left to stretch: the atoms are equal.
        stretch = np.divide(angles, sines, out=np.ones_like(sines), where=sines > 0)
        return _in_dtype_of(point_a, tangents * stretch)

    def _any_direction(self, atoms):
        """Unit tangents at `atoms`: the coordinate axis most nearly orthogonal to each, projected."""
        axes = np.zeros_like(atoms)
        axes[np.abs(atoms).argmin(axis=0), np.arange(atoms.shape[1])] = 1
        return _unit_columns(self.projection(atoms, axes))

    def pair_mean(self, point_a, point_b):
        """Return the point half way along the geodesic from `point_a` to `point_b`."""
        return self.exp(point_a, self.log(point_a, point_b) / 2)

    # Randomness.

    def random_point(self, rng=None):
        """Draw atoms uniformly on their spheres.

        Parameters
        ----------
        rng : numpy.random.Generator or int, optional
            A generator or a seed. Without one the draw comes from NumPy's global generator, as everywhere in
            Pymanopt.
        """
        if rng is None:
            return super().random_point()
        return _unit_columns(np.random.default_rng(rng).standard_normal((self._m, self._n)))

    def random_tangent_vector(self, point, rng=None):
        """Draw a direction of unit norm at `point`; `rng` as in `random_point`."""
        if rng is None:
            return super().random_tangent_vector(point)
        vector = self.projection(point, np.random.default_rng(rng).standard_normal(point.shape))
        return vector / self.norm(point, vector)


class Lines(Spheres):
    """Dictionaries whose k atoms are lines through the origin: a product of Grassmannians G(m, 1).

    A line is represented by either of its two unit vectors, so D and D with some columns negated are the same
    point. The functions to minimise must not mind the sign either, which is true of every objective whose
    codes follow the dictionary.

    Parameters
    ----------
    m : int
        Length of an atom, at least 2.
    k : int
        Number of atoms, at least 1.

    Notes
    -----
    A tangent vector belongs to a representative: what v is at x, −v is at −x. Locally nothing differs from
    the spheres, so `exp`, `retraction`, gradients and Hessians are the same. Globally two lines are never
    more than π/2 apart, and `dist`, `log`, `pair_mean` and `transport` choose the nearer representative.

    Examples
    --------
    >>> lines = Lines(2, 1)
    >>> x, y = np.array([[1.0], [0.0]]), np.array([[-1.0], [1.0]]) / np.sqrt(2)
    >>> bool(np.isclose(lines.dist(x, y), np.pi / 4)), lines.dist(x, -x)
    (True, 0.0)
    >>> lines.exp(x, lines.log(x, y)).round(3)  # y, represented by its other unit vector
    array([[ 0.707],
           [-0.707]])
    """

    @property
    def typical_dist(self):
        """Diameter of the manifold: all atoms at a right angle."""
        return np.pi / 2 * np.sqrt(self._n)

    def _angles(self, point_a, point_b):
        minus, plus = _norms(point_a - point_b), _norms(point_a + point_b)
        return 2 * np.arctan2(np.minimum(minus, plus), np.maximum(minus, plus))

    def log(self, point_a, point_b):
        """Return the tangent vector at `point_a` that reaches `point_b` up to signs, each atom within π/2."""
        return super().log(point_a, point_b * _signs(point_a, point_b))

    def transport(self, point_a, point_b, tangent_vector_a):
        """Carry a tangent vector to the representatives `point_b`, turning it over with those that are."""
        return self.projection(point_b, tangent_vector_a * _signs(point_a, point_b))


def _dots(a, b):
    """Column by column, the dot product of a and b."""
    if a.size < 2048:  # optimisers live here on small dictionaries: vecdot starts in half the time of einsum,
        return np.vecdot(a, b, axis=0)
    return np.einsum("ij,ij->j", a, b)  # which in turn does not mind the long strides of large ones


def _norms(a):
    return np.sqrt(_dots(a, a))


def _signs(a, b):
    """+1 where the columns of a and b make an acute angle, −1 where an obtuse one."""
    return np.copysign(1, _dots(a, b))


def _unit_columns(a):
    return a / _norms(a)


def _in_dtype_of(point, array):
    """Cast to the dtype of a float point: step sizes of NumPy's float64 would widen a float32 run."""
    if array.dtype == point.dtype or point.dtype.kind != "f":
        return array
    return array.astype(point.dtype)
