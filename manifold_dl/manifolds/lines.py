"""The product of lines through the origin: spheres that do not mind the sign of an atom."""

import numpy as np

from manifold_dl.manifolds.columnwise import norms, signs
from manifold_dl.manifolds.spheres import Spheres


class Lines(Spheres):
    """Dictionaries whose k atoms are lines through the origin: a product of Grassmannians G(m, 1).

    A line is represented by either of its two unit vectors, so D and D with some columns negated are the same
    point. The functions to minimise must not mind the sign either, which is true of every objective whose
    codes follow the dictionary. (Where they do mind, with fixed codes, methods that go step by step still
    work, because locally nothing differs from `Spheres`; distances mean less.)

    Use it where dictionaries are compared or averaged, by people or by a swarm: signs of atoms mean nothing,
    and on `Spheres` D and −D are as far apart as can be.

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
        minus, plus = norms(point_a - point_b), norms(point_a + point_b)
        return 2 * np.arctan2(np.minimum(minus, plus), np.maximum(minus, plus))

    def log(self, point_a, point_b):
        """Return the tangent vector at `point_a` that reaches `point_b` up to signs, each atom within π/2."""
        return super().log(point_a, point_b * signs(point_a, point_b))

    def transport(self, point_a, point_b, tangent_vector_a):
        """Carry a tangent vector to the representatives `point_b`, turning it over with those that are."""
        return self.projection(point_b, tangent_vector_a * signs(point_a, point_b))
