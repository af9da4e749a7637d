"""A coder that changes in the course of learning: ℓ₁ codes first, greedy ones at last.

`presets.recover` uses it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.coders.convex import Lasso
from manifold_dl.coders.greedy import OMP
from manifold_dl.components.errors import naming


@dataclass(frozen=True)
class AnnealedLasso:
    """The S largest entries of an ℓ₁ code whose penalty follows a schedule; OMP where it is zero.

    With a poor dictionary the ℓ₁ code finds better supports than a greedy one; with a good dictionary OMP
    has the smaller error. The learning loop passes its outer iteration.

    Parameters
    ----------
    sparsity : int
        S.
    alpha : callable
        Outer iteration → penalty, as a fraction of max |Dᵀy| (`Lasso` with relative=True).

    Examples
    --------
    >>> from manifold_dl.updates.ridge import Sawtooth
    >>> coder = AnnealedLasso(sparsity=4, alpha=Sawtooth(0.3, 0.1, period=50, until=190))
    >>> coder.at(0).alpha, coder.at(190), coder.at(None)
    (0.3, OMP(sparsity=4, tol=None, nonnegative=False), OMP(sparsity=4, tol=None, nonnegative=False))
    """

    sparsity: int
    alpha: Callable[[int], float]

    optimal_on_support = True
    scale_equivariant = True

    def at(self, iteration: int | None) -> Lasso | OMP:
        """The coder of one outer iteration.

        Parameters
        ----------
        iteration : int or None
            None, outside of a loop, is the last one.

        Returns
        -------
        Lasso or OMP
        """
        with naming(self.alpha, "schedule of alpha"):
            alpha = 0.0 if iteration is None else self.alpha(iteration)
        if alpha == 0:
            return OMP(sparsity=self.sparsity)
        return Lasso(alpha=alpha, sparsity=self.sparsity, relative=True)

    def encode(
        self,
        signals: np.ndarray,
        dictionary: np.ndarray,
        *,
        codes: Any = None,
        iteration: int | None = None,
        threads: int | None = None,
        weights: Any = None,
    ) -> scipy.sparse.csc_array:
        """Codes by the coder of this `iteration`.

        Parameters
        ----------
        signals : m×n array
            A signal in every column.
        dictionary : m×d array
            An atom in every column, of any norm.
        codes : d×n sparse or dense array, optional
            Where ℓ₁ codes start from: the last codes of the same signals.
        iteration : int, optional
            The outer iteration; by default the coder is OMP.
        threads : int, optional
            All processors by default. The codes do not depend on it.
        weights : array of length n or m×n array, optional
            Numbers ≥ 0. One per entry multiplies the squared error of that entry; 0 marks a missing entry,
            which may hold anything. One per signal does not change its codes, unless it is 0.

        Returns
        -------
        csc_array
            d×n, of the dtype of the signals.
        """
        coder = self.at(iteration)
        if isinstance(coder, Lasso):
            return coder.encode(signals, dictionary, codes=codes, threads=threads, weights=weights)
        return coder.encode(signals, dictionary, threads=threads, weights=weights)
