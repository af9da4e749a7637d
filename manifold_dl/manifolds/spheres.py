"""`Spheres`: the product of unit spheres, the manifold of the paper's Section III."""

import math

import numpy as np
from pymanopt.manifolds import Oblique

from manifold_dl.kernels import reduced as kernels
from manifold_dl.manifolds.columnwise import (
    DOUBLE,
    SINGLE,
    as_shape,
    by_rows,
    dots,
    in_dtype_of,
    largest_one,
    norm_error,
    norms,
    rounding,
    unit_columns,
)


class Spheres(Oblique):
    """Dictionaries whose k atoms are unit vectors: a product of k unit spheres in R^m.

    The same manifold as Pymanopt's `Oblique`, made accurate for long runs: steps along geodesics do not leave
    the spheres, distances and logarithms keep their digits for equal, nearly equal and opposite atoms, and
    float32 dictionaries stay float32.

    Use it unless more is known of the atoms: it is the paper's geometry, and the fastest one.

    Parameters
    ----------
    m : int
        Length of an atom. With m = 1 it is +1 or −1, and nothing can move.
    k : int
        Number of atoms, at least 1.

    Notes
    -----
    Everything happens column by column. With x a unit column, v a tangent one (xᵀv = 0) and θ = ‖v‖,

    - the geodesic is exp(x, v) = x cos θ + v sin θ / θ,
    - the angle between x and y is 2 atan2(‖x − y‖, ‖x + y‖). The usual arccos(xᵀy) is zero for angles below
      1e-8, because 1 − θ²/2 rounds to 1; this form keeps its digits from 0 to π [1]_,
    - the distance of two dictionaries is the root of the sum of their squared angles.

    References
    ----------
    .. [1] W. Kahan, "How futile are mindless assessments of roundoff in floating-point computation?", 2006.

    Examples
    --------
    A quarter turn of one atom, while the other one does not move:

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

    def __init__(self, m: int, k: int) -> None:
        self.m, self.k = as_shape(m, k, least=1)
        super().__init__(self.m, self.k)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.m}, {self.k})"

    __str__ = __repr__

    # The metric. Scalars are Python floats: a NumPy float64 would turn float32 arrays into float64 ones.

    def inner_product(
        self, point: np.ndarray, tangent_vector_a: np.ndarray, tangent_vector_b: np.ndarray
    ) -> float:
        """Sum over all entries of the product of two tangent vectors, as a float."""
        a, b = tangent_vector_a, tangent_vector_b
        # Each in the order of its memory: no copies.
        if a.strides == b.strides and a.dtype == b.dtype and a.dtype in (DOUBLE, SINGLE):
            return kernels.dot(a.ravel("K"), b.ravel("K"))
        return float(np.vdot(tangent_vector_a, tangent_vector_b))

    def norm(self, point: np.ndarray, tangent_vector: np.ndarray) -> float:
        """Frobenius norm of a tangent vector, as a float."""
        entries = tangent_vector.ravel("K")
        if entries.dtype not in (DOUBLE, SINGLE):
            entries = entries.astype(float)
        return math.sqrt(kernels.dot(entries, entries))

    def dist(self, point_a: np.ndarray, point_b: np.ndarray) -> float:
        """Geodesic distance: the root of the sum of the squared angles between corresponding atoms."""
        return float(np.linalg.norm(self._angles(point_a, point_b)))

    def _angles(self, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        return 2 * np.arctan2(norms(point_a - point_b), norms(point_a + point_b))

    # Tangent vectors.

    def projection(self, point: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Remove from every column its component along the atom: v − x (xᵀv)."""
        return by_rows(kernels.project_to_tangent, point, vector)

    to_tangent_space = projection

    def transport(self, point_a: np.ndarray, point_b: np.ndarray, tangent_vector_a: np.ndarray) -> np.ndarray:
        """Carry a tangent vector from `point_a` to `point_b` by projecting it onto the new tangent space."""
        return self.projection(point_b, tangent_vector_a)

    def zero_vector(self, point: np.ndarray) -> np.ndarray:
        """Return the tangent vector that stays at `point`, in its dtype."""
        return np.zeros_like(point)

    def euclidean_to_riemannian_hessian(
        self,
        point: np.ndarray,
        euclidean_gradient: np.ndarray,
        euclidean_hessian: np.ndarray,
        tangent_vector: np.ndarray,
    ) -> np.ndarray:
        """Hessian product on the spheres: the projected Euclidean one, minus v (xᵀ∇f) for their curvature."""
        curvature = tangent_vector * dots(point, euclidean_gradient)
        return self.projection(point, euclidean_hessian - curvature)

    # Maps between points.

    def exp(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Follow the geodesics x cos θ + v sin θ / θ, and renormalise so that rounding never accumulates."""
        return by_rows(kernels.sphere_exp, point, tangent_vector)

    exp_keeps_to_manifold = True  # so that line searches follow geodesics, and not the retraction

    def retraction(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Return (x + v) / ‖x + v‖, which equals `exp` up to θ³/3 and needs no sine."""
        return in_dtype_of(point, unit_columns(point + tangent_vector))

    def log(self, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        """Return the tangent vector at `point_a` of the shortest geodesic that reaches `point_b` at time 1.

        All directions towards the antipode are equally short. The one closest to a coordinate axis is taken,
        so that the result is deterministic.
        """
        cosines = dots(point_a, point_b)
        # x has no tangent component, so y, y − x and y + x all have the same one. It is computed from the
        # shorter of the last two, which is exact where cancellation would hurt: near x and near −x.
        tangents = self.projection(point_a, point_b - point_a * np.copysign(1, cosines))
        sines = norms(tangents)
        angles = np.arctan2(sines, cosines)

        # Unit columns are unit to a few roundings only: a smaller tangent component carries no direction.
        antipodal = (cosines < 0) & (sines < 8 * np.finfo(sines.dtype).eps)
        if antipodal.any():
            tangents[:, antipodal] = self._any_direction(point_a[:, antipodal])
            sines[antipodal] = 1
        # Where the sine is 0 the atoms are equal, and so is the tangent vector 0.
        stretch = np.divide(angles, sines, out=np.ones_like(sines), where=sines > 0)
        return in_dtype_of(point_a, tangents * stretch)

    def _any_direction(self, atoms: np.ndarray) -> np.ndarray:
        """Return unit tangents at `atoms`: the coordinate axis most nearly orthogonal to each, projected."""
        axes = np.zeros_like(atoms)
        if self.m == 1:  # there is none: +1 and −1 are not connected
            return axes
        axes[np.abs(atoms).argmin(axis=0), np.arange(atoms.shape[1])] = 1
        return unit_columns(self.projection(atoms, axes))

    def pair_mean(self, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        """Return the point half way along the geodesic from `point_a` to `point_b`."""
        return self.exp(point_a, self.log(point_a, point_b) / 2)

    def closest(self, point: np.ndarray) -> np.ndarray:
        """Return the dictionary on the manifold that is nearest to an m×k array: here, its unit columns.

        Columns that are on the manifold up to rounding stay as they are, to the last bit. A column that has
        no direction (zero, here) becomes a coordinate axis, a different one for every column.
        """
        few = rounding(point)
        if norm_error(point) <= few:
            inside = self._inside(point)
            if inside is point or norms(point - inside).max() <= few:
                return point  # the usual case, and frequent: once per atom in a sweep over single atoms
        return self._nearest(point, few)

    @np.errstate(over="ignore")  # atoms so long that their squares overflow are not unit atoms
    def _nearest(self, point: np.ndarray, few: float) -> np.ndarray:
        scaled = largest_one(point)
        inside = self._inside(scaled)
        lengths = norms(inside)
        lost = lengths <= few * norms(scaled)
        nearest = inside / np.where(lost, 1, lengths)
        nearest[:, lost] = self._axes(np.flatnonzero(lost)).astype(nearest.dtype)
        settled = norms(point - nearest) <= few
        nearest[:, settled] = point[:, settled]
        return in_dtype_of(point, nearest)

    def _inside(self, vectors: np.ndarray) -> np.ndarray:
        return vectors

    def _axes(self, columns: np.ndarray) -> np.ndarray:
        """Return a different unit vector for each of these column numbers, as long as there are enough."""
        return np.eye(self.m)[:, columns % self.m]

    # Randomness.

    def random_point(self, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """Draw atoms uniformly on their spheres.

        Parameters
        ----------
        rng : numpy.random.Generator or int, optional
            A generator or a seed. By default NumPy's global generator, as everywhere in Pymanopt.

        Returns
        -------
        ndarray of shape (m, k)
        """
        if rng is None:
            return super().random_point()
        return unit_columns(np.random.default_rng(rng).standard_normal((self.m, self.k)))

    def random_tangent_vector(
        self, point: np.ndarray, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Draw a direction of unit norm at `point`; `rng` as in `random_point`."""
        if rng is None:
            return super().random_tangent_vector(point)
        vector = self.projection(point, np.random.default_rng(rng).standard_normal(point.shape))
        length = self.norm(point, vector)
        return vector / length if np.any(length) else vector  # with m = 1 zero is the only tangent vector
