"""`Euclidean`: all m×k matrices, the baseline without a constraint, which shows why norms are fixed."""

import numpy as np
import pymanopt

from manifold_dl.manifolds.columnwise import as_shape, in_dtype_of


class Euclidean(pymanopt.manifolds.Euclidean):
    """Dictionaries without any constraint: R^{m×k}, the baseline that shows why norms are fixed.

    Use it to compare, not to learn. Multiplying an atom by c and dividing its codes by c changes no residual,
    so with μ = 0 the norms are arbitrary; with a ridge μ > 0 on the codes they grow without bound, because
    the ridge shrinks like 1/c². The infimum is that of μ = 0 and is never attained.

    Parameters
    ----------
    m : int
        Length of an atom.
    k : int
        Number of atoms, at least 1.

    Notes
    -----
    Every array is a point and every array a tangent vector: exp(x, v) = x + v, log(x, y) = y − x, and the
    gradient and the Hessian are the Euclidean ones. `SimCO` does not normalise the atoms here.

    Examples
    --------
    The ridge penalises codes. Longer atoms represent the same signals with smaller codes:

    >>> from manifold_dl import update_problem
    >>> Y, D = np.array([[3.0, 0.0], [0.0, 4.0]]), np.eye(2)
    >>> problem = update_problem(Y, np.eye(2, dtype=bool), manifold=Euclidean, mu=0.1)
    >>> [round(problem.cost(c * D), 5) for c in (1.0, 10.0, 100.0)]
    [2.27273, 0.02498, 0.00025]
    """

    def __init__(self, m: int, k: int) -> None:
        self.m, self.k = as_shape(m, k, least=1)
        super().__init__(self.m, self.k)

    def __repr__(self) -> str:
        return f"Euclidean({self.m}, {self.k})"

    __str__ = __repr__

    def norm(self, point: np.ndarray, tangent_vector: np.ndarray) -> float:
        """Frobenius norm, as a float."""
        return float(np.linalg.norm(tangent_vector))

    def dist(self, point_a: np.ndarray, point_b: np.ndarray) -> float:
        """Frobenius norm of the difference, as a float."""
        return float(np.linalg.norm(point_a - point_b))

    def projection(self, point: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Every array is tangent: `vector` itself, in the dtype of `point`."""
        return in_dtype_of(point, vector)

    to_tangent_space = projection

    def exp(self, point: np.ndarray, tangent_vector: np.ndarray) -> np.ndarray:
        """Return point + tangent_vector."""
        return in_dtype_of(point, point + tangent_vector)

    retraction = exp

    def closest(self, point: np.ndarray) -> np.ndarray:
        """Every array is on the manifold: `point` itself."""
        return point

    def zero_vector(self, point: np.ndarray) -> np.ndarray:
        """Return the tangent vector that stays at `point`, in its dtype."""
        return np.zeros_like(point)

    def random_point(self, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """Draw independent normal entries; `rng` as in `Spheres`."""
        if rng is None:
            return super().random_point()
        return np.random.default_rng(rng).standard_normal((self.m, self.k))

    def random_tangent_vector(
        self, point: np.ndarray, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Draw a direction of unit norm; `rng` as in `Spheres`."""
        vector = self.random_point(rng)
        return in_dtype_of(point, vector / self.norm(point, vector))
