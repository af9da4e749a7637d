"""Unit atoms inside a subspace of R^m: with mean zero, band-limited, or in the span of any basis.

The intersection of a sphere with a subspace is a sphere of lower dimension, and its great circles are great
circles of the larger one. So the formulas of `Spheres` hold, except that vectors are first projected onto the
subspace, and line searches can use the restriction of the objective to a geodesic.
"""

from dataclasses import dataclass

import numpy as np

from manifold_dl.manifolds.columnwise import dots, in_dtype_of, unit_columns
from manifold_dl.manifolds.spheres import Spheres


class SpheresWithin(Spheres):
    """Unit atoms inside one and the same subspace of R^m: a base class.

    A subclass has a method `within(vectors)`, the orthogonal projection P of the columns of an m×k array, and
    an attribute `rank`, the dimension of the subspace.

    Parameters
    ----------
    m : int
        Length of an atom, at least 2.
    k : int
        Number of atoms, at least 1.

    Notes
    -----
    With x a unit atom of the subspace, an ambient vector g has the tangent component Pg − x (xᵀPg), and the
    Hessian product is the same projection of H[v] − v (xᵀ∇f). Geodesics, distances and logarithms are those
    of `Spheres`.

    Examples
    --------
    Signals that are symmetric about their centre, in two lines:

    >>> class Symmetric(SpheresWithin):
    ...     rank = property(lambda self: (self.m + 1) // 2)
    ...     within = staticmethod(lambda vectors: (vectors + vectors[::-1]) / 2)
    >>> D = Symmetric(4, 10).random_point(0)
    >>> bool(np.allclose(D, D[::-1])), Symmetric(4, 10).dim
    (True, 10)
    """

    @property
    def dim(self) -> int:
        """Each atom has one degree of freedom less than the subspace has dimensions."""
        return (self.rank - 1) * self.k

    def projection(self, point: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Project every column onto the subspace, and remove its component along the atom."""
        inside = self.within(vector)
        return in_dtype_of(point, inside - point * dots(point, inside))

    to_tangent_space = projection

    # Rounding errors leave the subspace as well as the spheres. Every step ends with a correction of both.

    def exp(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Follow the great circles of `Spheres`, which do not leave the subspace."""
        return unit_columns(self.within(super().exp(point, tangent_vector)))

    def retraction(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Normalise x + v, inside the subspace."""
        return unit_columns(self.within(super().retraction(point, tangent_vector)))

    def random_point(self, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """Draw atoms uniformly on the spheres inside the subspace; `rng` as in `Spheres`."""
        return unit_columns(self.within(super().random_point(rng)))

    def random_tangent_vector(
        self, point: np.ndarray, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Draw a direction of unit norm at `point`; `rng` as in `Spheres`."""
        vector = self.projection(point, super().random_tangent_vector(point, rng))
        return vector / self.norm(point, vector)

    def _inside(self, vectors: np.ndarray) -> np.ndarray:
        return self.within(vectors)

    def _axes(self, columns: np.ndarray) -> np.ndarray:
        """Return unit vectors of the subspace: the projections of the coordinate axes nearest to it."""
        projections = self.within(np.eye(self.m))
        order = np.argsort(-dots(projections, projections), kind="stable")[: self.rank]
        return unit_columns(projections[:, order[columns % self.rank]])

    def _any_direction(self, atoms: np.ndarray) -> np.ndarray:
        """Return the coordinate axis with the longest tangent component for each atom: it is never zero."""
        directions = np.empty_like(atoms)
        axes = np.eye(self.m, dtype=atoms.dtype)
        for j, atom in enumerate(atoms.T):
            tangents = self.projection(np.repeat(atom[:, None], self.m, axis=1), axes)
            directions[:, j] = unit_columns(tangents[:, [dots(tangents, tangents).argmax()]])[:, 0]
        return directions


class ZeroMean(SpheresWithin):
    """Dictionaries whose k atoms are unit vectors with mean zero: no atom has a DC component.

    Use it where the mean of a signal is coded separately, as is usual for image patches: atoms with mean
    zero then keep it.

    Parameters
    ----------
    m : int
        Length of an atom, at least 3.
    k : int
        Number of atoms, at least 1.

    Notes
    -----
    The special case of `Subspace` with the subspace orthogonal to 1 = (1, ..., 1). The projection is
    v − 1 (1ᵀv)/m, a subtraction of means; the dimension is k(m − 2).

    Examples
    --------
    >>> manifold = ZeroMean(8, 3)
    >>> D = manifold.random_point(0)
    >>> D = manifold.exp(D, manifold.random_tangent_vector(D, 1))
    >>> bool(np.allclose(D.mean(axis=0), 0)), bool(np.allclose(np.linalg.norm(D, axis=0), 1))
    (True, True)
    """

    def __init__(self, m: int, k: int) -> None:
        super().__init__(m, k)
        if m < 3:
            raise ValueError(
                f"m={m}: the unit vectors of R² with mean zero are ±(1, -1)/√2 and have nowhere to move; "
                "ZeroMean needs m >= 3."
            )

    @property
    def rank(self) -> int:
        """Dimension of the subspace, m − 1."""
        return self.m - 1

    def within(self, vectors: np.ndarray) -> np.ndarray:
        """Subtract from every column its mean.

        Parameters
        ----------
        vectors : m×k array

        Returns
        -------
        m×k array
        """
        return in_dtype_of(vectors, vectors - vectors.mean(axis=0, dtype=float))


@dataclass(frozen=True, eq=False, repr=False)
class Subspace:
    """Unit atoms in the span of a basis: a factory, for ``manifold=Subspace(basis)``.

    Use it where atoms are known to be band-limited, smooth, symmetric, or orthogonal to given vectors.
    `ZeroMean` is the most common case, and needs no basis.

    Parameters
    ----------
    basis : m×r array
        Linearly independent columns, 2 ≤ r ≤ m. They are orthonormalised.

    Notes
    -----
    With B the orthonormal basis, the projection onto the subspace is BBᵀ and the dimension of the manifold
    k(r − 1). A dictionary is D = BZ with Z on `Spheres(r, k)`, and the two manifolds are isometric.

    Examples
    --------
    Atoms made of the four lowest cosines of length 16:

    >>> import scipy.fft
    >>> cosines = scipy.fft.idct(np.eye(16)[:, :4], axis=0, norm="ortho")
    >>> smooth = Subspace(cosines)
    >>> smooth
    Subspace(<16×4 basis>)
    >>> D = smooth(16, 5).random_point(0)
    >>> bool(np.allclose(cosines @ (cosines.T @ D), D)), smooth(16, 5).dim
    (True, 15)
    """

    basis: np.ndarray

    def __post_init__(self) -> None:
        basis = np.array(self.basis, dtype=float)
        if basis.ndim != 2 or not np.isfinite(basis).all():
            raise ValueError(
                f"basis has shape {basis.shape}: a Subspace needs a matrix of finite numbers, "
                "with a basis vector in every column."
            )
        m, r = basis.shape
        if not 2 <= r <= m:
            raise ValueError(
                f"basis has {r} columns of length {m}: a Subspace needs at least 2, or atoms have nowhere "
                f"to move, and at most {m}, or they are not independent."
            )
        if np.linalg.matrix_rank(basis) < r:
            raise ValueError(
                f"the {r} columns of basis are linearly dependent: leave out those that add nothing."
            )
        if not np.allclose(basis.T @ basis, np.eye(r), rtol=0, atol=1e-14):
            basis = np.linalg.qr(basis)[0]
        basis.setflags(write=False)
        object.__setattr__(self, "basis", basis)

    def __call__(self, m: int, k: int) -> "WithinSpan":
        """Return the manifold of m×k dictionaries."""
        return WithinSpan(self.basis, m, k)

    def __eq__(self, other: object) -> bool:
        return type(other) is Subspace and np.array_equal(self.basis, other.basis)

    def __hash__(self) -> int:
        return hash(self.basis.tobytes())

    def __repr__(self) -> str:
        m, r = self.basis.shape
        return f"Subspace(<{m}×{r} basis>)"


class WithinSpan(SpheresWithin):
    """Unit atoms in the span of the orthonormal columns of `basis`, as `Subspace(basis)(m, k)` returns.

    Parameters
    ----------
    basis : m×r array
        Orthonormal columns.
    m : int
        Length of an atom, equal to that of the basis vectors.
    k : int
        Number of atoms, at least 1.
    """

    def __init__(self, basis: np.ndarray, m: int, k: int) -> None:
        super().__init__(m, k)
        if len(basis) != m:
            raise ValueError(f"m={m}: the basis of this Subspace has vectors of length {len(basis)}.")
        self.basis = basis

    def __repr__(self) -> str:
        return f"Subspace(<{self.m}×{self.rank} basis>)({self.m}, {self.k})"

    __str__ = __repr__

    @property
    def rank(self) -> int:
        """Dimension of the subspace."""
        return self.basis.shape[1]

    def within(self, vectors: np.ndarray) -> np.ndarray:
        """Project every column onto the span, B (Bᵀv)."""
        return in_dtype_of(vectors, self.basis @ (self.basis.T @ vectors))
