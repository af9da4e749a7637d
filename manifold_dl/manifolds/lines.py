"""`Lines`: the product of lines through the origin, which are unit atoms up to their signs."""

import numpy as np

from manifold_dl.manifolds.columnwise import norms, signs
from manifold_dl.manifolds.spheres import Spheres


class Lines(Spheres):
    """Dictionaries whose k atoms are lines through the origin: a product of Grassmannians G(m, 1).

    A line is represented by either of its two unit vectors, so D and D with some columns negated are the same
    point. The objective must not depend on signs either, which is true if codes follow the dictionary. (With
    fixed codes it depends on them. Methods that move in steps still work, because locally nothing differs
    from `Spheres`; distances then mean less.)

    Use it where dictionaries are compared or averaged, for example by a particle swarm: signs of atoms mean
    nothing, and on `Spheres` D and −D have the largest distance of all.

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
    def typical_dist(self) -> float:
        """Diameter of the manifold: all atoms at a right angle."""
        return float(np.pi / 2 * np.sqrt(self.k))

    def _angles(self, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        minus, plus = norms(point_a - point_b), norms(point_a + point_b)
        return 2 * np.arctan2(np.minimum(minus, plus), np.maximum(minus, plus))

    def log(self, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        """Return the tangent vector at `point_a` that reaches `point_b` up to signs, each atom within π/2."""
        return super().log(point_a, point_b * signs(point_a, point_b))

    def transport(self, point_a: np.ndarray, point_b: np.ndarray, tangent_vector_a: np.ndarray) -> np.ndarray:
        """Carry a tangent vector to the representatives `point_b`, with the signs of the changed ones."""
        return self.projection(point_b, tangent_vector_a * signs(point_a, point_b))
