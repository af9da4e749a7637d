"""A coder that changes in the course of learning: ℓ₁ codes first, greedy ones at last."""

from collections.abc import Callable
from dataclasses import dataclass

from manifold_dl.coders.convex import Lasso
from manifold_dl.coders.greedy import OMP
from manifold_dl.components.errors import naming


@dataclass(frozen=True)
class AnnealedLasso:
    """The S largest entries of an ℓ₁ code whose penalty follows a schedule; OMP where it is zero.

    From a bad dictionary the ℓ₁ code finds better supports than a greedy one; with a good dictionary OMP
    has the smaller error. The learning loop tells the coder its outer iteration.

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
    (0.3, OMP(sparsity=4, tol=None), OMP(sparsity=4, tol=None))
    """

    sparsity: int
    alpha: Callable[[int], float]

    optimal_on_support = True
    scale_equivariant = True

    def at(self, iteration):
        """The coder of one outer iteration; None, outside of a loop, is the last one."""
        with naming(self.alpha, "schedule of alpha"):
            alpha = 0.0 if iteration is None else self.alpha(iteration)
        if alpha == 0:
            return OMP(sparsity=self.sparsity)
        return Lasso(alpha=alpha, sparsity=self.sparsity, relative=True)

    def encode(self, signals, dictionary, *, codes=None, iteration=None, threads=None):
        """Codes (d×n, csc) by the coder of this `iteration`; ℓ₁ codes start from the last `codes`."""
        coder = self.at(iteration)
        if isinstance(coder, Lasso):
            return coder.encode(signals, dictionary, codes=codes, threads=threads)
        return coder.encode(signals, dictionary, threads=threads)
