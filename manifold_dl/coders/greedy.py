"""Pursuits that add one atom at a time and keep the codes optimal: OMP and orthogonal least squares."""

from collections.abc import Callable
from dataclasses import dataclass

from manifold_dl.coders.pursuit import TolerancePursuit
from manifold_dl.kernels import coding as kernels
from manifold_dl.kernels.coding import Codes


@dataclass(frozen=True)
class OMP(TolerancePursuit):
    """Orthogonal matching pursuit: add the atom most correlated with the residual, then solve least squares.

    Parameters
    ----------
    sparsity : int, optional
        At most so many atoms per signal.
    tol : float, optional
        Stop once ‖y − Dx‖² ≤ tol, the error-constrained form used in denoising. The residual itself is
        measured before a signal is declared done; the usual recursion for its norm loses all digits near an
        exact fit. Give `sparsity`, `tol` or both.
    nonnegative : bool
        Only codes ≥ 0: add the atom with the largest positive product with the residual, then solve
        non-negative least squares, which may drop an atom again.

    Notes
    -----
    A signal may get fewer atoms: none if it is zero, and no more once its residual is orthogonal to all
    atoms. Atoms that depend on those chosen are passed over. Atoms of any norm are accepted: the choice goes
    by the angle, the codes belong to the atoms as given. scikit-learn's `orthogonal_mp` does
    the same for atoms of norm 1.

    With weights w of entries the next atom is the one with the largest |⟨w∘d, r⟩|/‖√w∘d‖, and `tol` bounds
    Σ w (y − Dx)². A signal gets at most as many atoms as it has entries with a weight.

    The result has the dtype of the signals and does not depend on `threads`.

    References
    ----------
    Pati, Rezaiifar and Krishnaprasad (1993), Orthogonal matching pursuit. Rubinstein, Zibulevsky and Elad
    (2008), Efficient implementation of the K-SVD algorithm using batch orthogonal matching pursuit.
    Bruckstein, Elad and Zibulevsky (2008), On the uniqueness of nonnegative sparse solutions to
    underdetermined systems of equations.

    Examples
    --------
    >>> import numpy as np
    >>> D = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> Y = np.array([[0.3, 2.0], [0.4, 0.0]])
    >>> OMP(sparsity=1).encode(Y, D).toarray().round(12)
    array([[0. , 2. ],
           [0. , 0. ],
           [0.5, 0. ]])
    """

    sparsity: int | None = None
    tol: float | None = None
    nonnegative: bool = False

    optimal_on_support = True

    def _kernel(self) -> Callable[..., Codes]:
        return kernels.nonnegative_omp if self.nonnegative else kernels.omp

    def _weighted_kernel(self) -> Callable[..., Codes] | None:
        return kernels.weighted_nonnegative_omp if self.nonnegative else kernels.weighted_omp


@dataclass(frozen=True)
class ForwardSelection(TolerancePursuit):
    """Orthogonal least squares: add the atom that lowers the residual most, then solve least squares.

    OMP chooses the atom most correlated with the residual; this chooses the one that leaves the smallest
    residual after the fit, so it divides the correlation by the distance of the atom from the span of those
    chosen. Supports are better at the same sparsity (about 1 % less error on picture patches), for
    half as much time again. SPAMS' `omp` is this method.

    Parameters
    ----------
    sparsity : int, optional
        At most so many atoms per signal.
    tol : float, optional
        Stop once ‖y − Dx‖² ≤ tol. Give `sparsity`, `tol` or both, as for `OMP`.

    References
    ----------
    Chen, Billings and Luo (1989), Orthogonal least squares methods and their application to non-linear system
    identification.

    Examples
    --------
    >>> import numpy as np
    >>> D = np.eye(3)[:, [0, 2]]
    >>> ForwardSelection(tol=0.5).encode(np.array([[1.0], [0.1], [0.2]]), D).toarray()
    array([[1.],
           [0.]])
    """

    sparsity: int | None = None
    tol: float | None = None

    optimal_on_support = True

    def _kernel(self) -> Callable[..., Codes]:
        return kernels.forward_selection

    def _weighted_kernel(self) -> Callable[..., Codes] | None:
        return kernels.weighted_forward_selection
