"""All m×k matrices: the baseline without a geometry."""

import numpy as np
import pymanopt

from manifold_dl.manifolds.columnwise import as_shape, in_dtype_of


class Euclidean(pymanopt.manifolds.Euclidean):
    """Dictionaries without any constraint: R^{m×k}, the baseline that shows why norms are fixed.

    Use it to compare, not to learn. Multiplying an atom by c and dividing its codes by c changes no residual,
    so with μ = 0 the norms are arbitrary; with a ridge μ > 0 on the codes they grow without end, because the
    ridge shrinks like 1/c². The infimum is that of μ = 0 and is never attained.

    Parameters
    ----------
    m : int
        Length of an atom, at least 2.
    k : int
        Number of atoms, at least 1.

    Notes
    -----
    Every array is a point and every array a tangent vector: exp(x, v) = x + v, log(x, y) = y − x, and the
    gradient and the Hessian are the Euclidean ones. `SimCO` does not normalise the atoms here.

    Examples
    --------
    The ridge pays for codes. Longer atoms make the same signals with shorter ones:

    >>> from manifold_dl import update_problem
    >>> Y, D = np.array([[3.0, 0.0], [0.0, 4.0]]), np.eye(2)
    >>> problem = update_problem(Y, np.eye(2, dtype=bool), manifold=Euclidean, mu=0.1)
    >>> [round(problem.cost(c * D), 5) for c in (1.0, 10.0, 100.0)]
    [2.27273, 0.02498, 0.00025]
    """

    def __init__(self, m, k):
        super().__init__(*as_shape(m, k))

    def __repr__(self):
        return f"Euclidean({', '.join(map(str, self._shape))})"

    __str__ = __repr__

    def norm(self, point, tangent_vector):
        """Frobenius norm, as a float."""
        return float(np.linalg.norm(tangent_vector))

    def dist(self, point_a, point_b):
        """Frobenius norm of the difference, as a float."""
        return float(np.linalg.norm(point_a - point_b))

    def projection(self, point, vector):
        """Every array is tangent: `vector` itself, in the dtype of `point`."""
        return in_dtype_of(point, vector)

    to_tangent_space = projection

    def exp(self, point, tangent_vector):
        """Go straight ahead."""
        return in_dtype_of(point, point + tangent_vector)

    retraction = exp

    def closest(self, point):
        """Every array is on the manifold: `point` itself."""
        return point

    def zero_vector(self, point):
        """Return the tangent vector that stays at `point`, in its dtype."""
        return np.zeros_like(point)

    def random_point(self, rng=None):
        """Draw independent normal entries; `rng` as in `Spheres`."""
        return (
            super().random_point() if rng is None else np.random.default_rng(rng).standard_normal(self._shape)
        )

    def random_tangent_vector(self, point, rng=None):
        """Draw a direction of unit norm; `rng` as in `Spheres`."""
        vector = self.random_point(rng)
        return in_dtype_of(point, vector / self.norm(point, vector))
