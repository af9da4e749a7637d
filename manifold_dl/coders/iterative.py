"""Pursuits that revise their codes from step to step, instead of solving for them whenever an atom joins."""

from collections.abc import Callable
from dataclasses import dataclass

from manifold_dl._validation import require_count
from manifold_dl.coders.checks import require_sparsity
from manifold_dl.coders.pursuit import FixedSparsityPursuit, TolerancePursuit
from manifold_dl.kernels import coding as kernels
from manifold_dl.kernels.coding import Codes, PursuitSettings


@dataclass(frozen=True)
class MatchingPursuit(TolerancePursuit):
    """Matching pursuit: subtract from the residual its product with the atom most correlated, and repeat.

    The codes are never solved for: the same atom may be taken many times, and the residual falls
    geometrically.

    Parameters
    ----------
    sparsity : int, optional
        Stop where one atom more would be needed.
    tol : float, optional
        Stop once ‖y − Dx‖² ≤ tol. Give `sparsity`, `tol` or both.
    max_iter : int
        At most so many subtractions per signal.

    References
    ----------
    Mallat and Zhang (1993), Matching pursuits with time-frequency dictionaries.

    Examples
    --------
    The second atom takes its product 0.94 with the signal, the first 0.336 of the rest (0.336, -0.252):

    >>> import numpy as np
    >>> D = np.array([[1.0, 0.6], [0.0, 0.8]])
    >>> coder = MatchingPursuit(sparsity=2, max_iter=2)
    >>> coder.encode(np.array([[0.9], [0.5]]), D).toarray().round(12).ravel()
    array([0.336, 0.94 ])
    """

    sparsity: int | None = None
    tol: float | None = None
    max_iter: int = 1000

    optimal_on_support = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("max_iter", self.max_iter)

    def _kernel(self) -> Callable[..., Codes]:
        return kernels.matching_pursuit

    def _settings(self, m: int, d: int) -> PursuitSettings:
        sparsity = d if self.sparsity is None else self.sparsity
        require_sparsity(sparsity, d=d)  # atoms may depend on each other here, so there may be more than m
        return PursuitSettings(sparsity, self._tolerance(), self.max_iter)


@dataclass(frozen=True)
class GradientPursuit(FixedSparsityPursuit):
    """Gradient pursuit: add the atom most correlated, then make one gradient step on the support.

    The step goes to the minimum along the gradient. It costs no more than a matching pursuit on the Gram
    matrix of the support, and the codes come close to those of OMP.

    Parameters
    ----------
    sparsity : int
        Stop where one atom more would be needed.
    max_iter : int
        At most so many gradient steps per signal.

    References
    ----------
    Blumensath and Davies (2008), Gradient pursuits.

    Examples
    --------
    >>> import numpy as np
    >>> GradientPursuit(sparsity=1).encode(np.array([[1.0], [0.5]]), np.eye(2)).toarray().ravel()
    array([1., 0.])
    """

    sparsity: int
    max_iter: int = 1000

    optimal_on_support = False

    def _kernel(self) -> Callable[..., Codes]:
        return kernels.gradient_pursuit


@dataclass(frozen=True)
class SubspacePursuit(FixedSparsityPursuit):
    """Subspace pursuit: a support of fixed size that is revised as a whole while the residual falls.

    Each round adds the `sparsity` atoms most correlated with the residual, solves least squares on the union,
    and keeps the `sparsity` largest coefficients. Unlike OMP it can take back a wrong choice.

    Parameters
    ----------
    sparsity : int
        Atoms per signal.
    max_iter : int
        At most so many rounds per signal; a handful is usual.

    References
    ----------
    Dai and Milenkovic (2009), Subspace pursuit for compressive sensing signal reconstruction.

    Examples
    --------
    >>> import numpy as np
    >>> D = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> SubspacePursuit(sparsity=1).encode(np.array([[0.3], [0.4]]), D).toarray().round(12).ravel()
    array([0. , 0. , 0.5])
    """

    sparsity: int
    max_iter: int = 100

    optimal_on_support = True

    def _kernel(self) -> Callable[..., Codes]:
        return kernels.subspace_pursuit


@dataclass(frozen=True)
class IHT(FixedSparsityPursuit):
    """Iterative hard thresholding: a gradient step, then all but the `sparsity` largest entries set to zero.

    The step length adapts to the signal and is shortened whenever a new support could let the residual grow,
    so every step descends whatever the dictionary. The last support is solved by least squares (debiasing).

    Parameters
    ----------
    sparsity : int
        Atoms per signal.
    max_iter : int
        At most so many gradient steps per signal.

    References
    ----------
    Blumensath and Davies (2010), Normalized iterative hard thresholding: guaranteed stability and
    performance.

    Examples
    --------
    >>> import numpy as np
    >>> IHT(sparsity=1).encode(np.array([[1.0], [0.5]]), np.eye(2)).toarray().ravel()
    array([1., 0.])
    """

    sparsity: int
    max_iter: int = 200

    optimal_on_support = True

    def _kernel(self) -> Callable[..., Codes]:
        return kernels.iht
