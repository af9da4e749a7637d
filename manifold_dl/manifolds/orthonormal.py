"""`Orthonormal`: the Stiefel manifold, for complete and tall dictionaries."""

from typing import NoReturn

import numpy as np
from pymanopt.manifolds import Stiefel

from manifold_dl.manifolds.columnwise import as_shape, in_dtype_of, rounding


class Orthonormal(Stiefel):
    """Dictionaries whose k ≤ m atoms are orthonormal: the Stiefel manifold St(m, k), DᵀD = I.

    Use it to learn a transform: with k = m the codes are correlations, without a system to solve; a tall one
    spans a principal subspace. Overcomplete dictionaries cannot be orthonormal.

    Parameters
    ----------
    m : int
        Length of an atom, at least 2.
    k : int
        Number of atoms, from 1 to m.

    Notes
    -----
    A submanifold of R^{m×k} with its inner product, of dimension mk − k(k + 1)/2.

    - Tangent vectors V at D are those with DᵀV + VᵀD = 0; the projection of G is G − D sym(DᵀG).
    - The retraction is the polar factor, (D + V)(I + VᵀV)^(−1/2). It is also the closest orthonormal matrix
      and agrees with the geodesic to second order; the Q of a QR decomposition does so to first order only.
    - The geodesic is exp(D, V) = e^(VDᵀ − DVᵀ) D e^(−DᵀV), a rotation of the space and one of the atoms: its
      acceleration −D VᵀV is normal. (Two skew matrices, where the formula of [1]_ has one that is not skew.)
      One Newton-Schulz step, D(3I − DᵀD)/2, squares what rounding leaves of DᵀD − I.
    - There is no closed form of the logarithm, and for k = m the manifold has two components (determinant +1
      and −1) that no path connects. So `log`, `dist` and `pair_mean` are not available, nor are the
      optimizers that need them.

    The atoms are tied to each other: a subset of them cannot be updated while the rest stays, and is refused.
    For a union of orthonormal bases, pass ``pymanopt.manifolds.Stiefel`` and a schedule of the blocks to
    `SimCO`.

    References
    ----------
    .. [1] A. Edelman, T. A. Arias and S. T. Smith, "The geometry of algorithms with orthogonality
       constraints", SIAM Journal on Matrix Analysis and Applications 20 (1998), 303-353.

    Examples
    --------
    >>> manifold = Orthonormal(4, 3)
    >>> D = manifold.random_point(0)
    >>> D = manifold.exp(D, manifold.random_tangent_vector(D, 1))
    >>> bool(np.allclose(D.T @ D, np.eye(3))), manifold.dim
    (True, 6)
    >>> manifold.closest(np.eye(4)[:, :3] * [2, 1, 0.5])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """

    couples_atoms = True  # a subset of the atoms cannot move while the rest stays

    def __init__(self, m: int, k: int) -> None:
        m, k = as_shape(m, k)
        if k > m:
            raise ValueError(
                f"k={k} atoms cannot be orthonormal in m={m} dimensions: Orthonormal takes at most m; "
                "for an overcomplete dictionary use Spheres."
            )
        self.m, self.k = m, k
        super().__init__(m, k, retraction="polar")

    def __repr__(self) -> str:
        return f"Orthonormal({self.m}, {self.k})"

    __str__ = __repr__

    def inner_product(
        self, point: np.ndarray, tangent_vector_a: np.ndarray, tangent_vector_b: np.ndarray
    ) -> float:
        """Sum over all entries of the product of two tangent vectors, as a float."""
        return float(np.vdot(tangent_vector_a, tangent_vector_b))

    def norm(self, point: np.ndarray, tangent_vector: np.ndarray) -> float:
        """Frobenius norm of a tangent vector, as a float."""
        return float(np.linalg.norm(tangent_vector))

    def projection(self, point: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Remove the normal component of V, D sym(DᵀV)."""
        DV = point.T @ vector
        return in_dtype_of(point, vector - point @ ((DV + DV.T) / 2))

    to_tangent_space = projection

    def euclidean_to_riemannian_hessian(
        self,
        point: np.ndarray,
        euclidean_gradient: np.ndarray,
        euclidean_hessian: np.ndarray,
        tangent_vector: np.ndarray,
    ) -> np.ndarray:
        """Hessian product: the projection of H[V] − V sym(Dᵀ∇f)."""
        DG = point.T @ euclidean_gradient
        return self.projection(point, euclidean_hessian - tangent_vector @ ((DG + DG.T) / 2))

    def zero_vector(self, point: np.ndarray) -> np.ndarray:
        """Return the tangent vector that stays at `point`, in its dtype."""
        return np.zeros_like(point)

    def exp(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Follow the geodesic, and correct the rounding errors of the orthonormality."""
        D, V = point, tangent_vector
        # The geodesic stays in the span of D and V: use coordinates there if they are fewer.
        Q = np.linalg.qr(np.hstack([D, V]))[0] if 2 * self.k < self.m else np.eye(self.m)
        VD = (Q.T @ V) @ (Q.T @ D).T
        moved = Q @ (_rotation(VD - VD.T) @ (Q.T @ D)) @ _rotation(-D.T @ V)
        return in_dtype_of(point, 1.5 * moved - 0.5 * moved @ (moved.T @ moved))

    def retraction(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Return the closest point to D + V, its polar factor."""
        return in_dtype_of(point, _polar_factor(point + tangent_vector))

    def closest(self, point: np.ndarray) -> np.ndarray:
        """Return the orthonormal matrix nearest to an m×k array: its polar factor, UVᵀ of its UΣVᵀ."""
        nearest = in_dtype_of(point, _polar_factor(point))
        return point if np.abs(point - nearest).max() <= rounding(point) else nearest

    def log(self, point_a: np.ndarray, point_b: np.ndarray) -> NoReturn:
        """Raise `NotImplementedError`: see the notes."""
        raise _unavailable("log")

    def dist(self, point_a: np.ndarray, point_b: np.ndarray) -> NoReturn:
        """Raise `NotImplementedError`: see the notes."""
        raise _unavailable("dist")

    def pair_mean(self, point_a: np.ndarray, point_b: np.ndarray) -> NoReturn:
        """Raise `NotImplementedError`: see the notes."""
        raise _unavailable("pair_mean")

    def random_point(self, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """Draw an orthonormal matrix uniformly; `rng` as in `Spheres`."""
        if rng is None:
            return super().random_point()
        Q, R = np.linalg.qr(np.random.default_rng(rng).standard_normal((self.m, self.k)))
        return Q * np.copysign(1, np.diagonal(R))  # with the signs of QR the draw would not be uniform

    def random_tangent_vector(
        self, point: np.ndarray, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Draw a direction of unit norm at `point`; `rng` as in `Spheres`."""
        if rng is None:
            vector = super().random_tangent_vector(point)
        else:
            vector = self.projection(point, np.random.default_rng(rng).standard_normal(point.shape))
        return in_dtype_of(point, vector / self.norm(point, vector))


def _polar_factor(matrix: np.ndarray) -> np.ndarray:
    U, _, Vt = np.linalg.svd(matrix, full_matrices=False)
    return U @ Vt


def _rotation(skew: np.ndarray) -> np.ndarray:
    """The exponential of a skew matrix, from the eigenvalues of the Hermitian matrix i·skew."""
    angles, vectors = np.linalg.eigh(1j * skew)
    return ((vectors * np.exp(-1j * angles)) @ vectors.conj().T).real


def _unavailable(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"Orthonormal has no {name}: the Stiefel manifold has no logarithm in closed form, and for k = m no "
        "path between the determinants +1 and -1. NelderMead and ParticleSwarm need one: use another."
    )
