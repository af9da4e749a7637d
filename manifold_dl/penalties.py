"""The regularizers as the atoms I see them: functions of the m×|I| matrix that moves, the others at rest.

A regularizer knows whole dictionaries. `Penalties` puts the atoms I in their places, asks it there, and cuts
out what concerns I. `problem.py` adds it to the objective, `restriction.py` to φ.
"""

import numpy as np

from manifold_dl.regularizers import Sum, differentiable


class Penalties:
    """Σ R(D) with its derivatives in the atoms I.

    Parameters
    ----------
    regularizers : sequence of Regularizer
    whole : callable
        From the atoms I, m×|I|, to the whole m×d dictionary.
    atoms : the set I
    n_atoms : d
    """

    def __init__(self, regularizers, whole, atoms, n_atoms):
        self._sum = Sum(tuple(differentiable(regularizer) for regularizer in regularizers))
        self._whole, self._atoms, self._n_atoms = whole, atoms, n_atoms
        self._evaluated = []  # the regularizers at the points asked for last, newest first

    def value(self, point):
        return self._at(point).value

    def gradient(self, point):
        """The gradient with respect to the atoms I, m×|I|."""
        return self._at(point).gradient[:, self._atoms]

    def hessian(self, point, direction):
        """The Hessian product with an m×|I| direction, in the atoms I."""
        spread = np.zeros((len(point), self._n_atoms), np.result_type(point, direction))
        spread[:, self._atoms] = direction
        return self._at(point).hessian(spread)[:, self._atoms]

    def curvatures(self, point):
        """The size of the diagonal Hessian blocks, one number an atom, from one product."""
        evaluation = self._at(point)
        if getattr(evaluation, "curvatures", None) is None:
            # Signs at random leave of a block its diagonal, on average. They are the same every time: an
            # optimizer counts on a preconditioner that stays as it is.
            signs = np.random.default_rng(0).choice(np.array([-1, 1], dtype=point.dtype), point.shape)
            try:
                product = self.hessian(point, signs)
            except TypeError:  # there is a gradient only, and nothing that autograd could differentiate
                product = np.zeros_like(point)
            evaluation.curvatures = np.abs(np.einsum("mk,mk->k", product, signs, dtype=float)) / len(point)
        return evaluation.curvatures

    def _at(self, point):
        """What the regularizers know of `point`, shared by their value, gradient and Hessian products."""
        point = np.asarray(point)
        for place, (known, evaluation) in enumerate(self._evaluated):
            # By value, because a caller may have changed the array in place; and a trust region that was
            # refused comes back to the point before.
            if known.dtype == point.dtype and np.array_equal(known, point):
                self._evaluated.insert(0, self._evaluated.pop(place))
                return evaluation
        evaluation = self._sum.at(self._whole(point))
        self._evaluated = [(point.copy(), evaluation), *self._evaluated[:1]]
        return evaluation
