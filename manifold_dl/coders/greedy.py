"""Pursuits that add one atom at a time and keep the codes optimal: OMP and orthogonal least squares."""

from dataclasses import dataclass

from manifold_dl.coders.blockwise import as_problem, encode_blocks, require_a_stop, require_sparsity
from manifold_dl.engines.units import times_square
from manifold_dl.kernels import coding as kernels


@dataclass(frozen=True)
class OMP:
    """Orthogonal matching pursuit: add the atom most correlated with the residual, then solve least squares.

    Parameters
    ----------
    sparsity : int, optional
        At most so many atoms per signal.
    tol : float, optional
        Stop once ‖y − Dx‖² ≤ tol, the error-constrained form used in denoising. The residual itself is
        measured before a signal is declared done; the usual recursion for its norm loses all digits near an
        exact fit. Give `sparsity`, `tol` or both.

    Notes
    -----
    A signal may get fewer atoms: none if it is zero, and no more once its residual is orthogonal to all
    atoms. Atoms that depend on those chosen are passed over. Atoms of any norm are accepted: the choice goes
    by the angle, the codes belong to the atoms as given. scikit-learn's `orthogonal_mp` does
    the same for atoms of norm 1.

    The result has the dtype of the signals and does not depend on `threads`.

    References
    ----------
    Pati, Rezaiifar and Krishnaprasad (1993), Orthogonal matching pursuit. Rubinstein, Zibulevsky and Elad
    (2008), Efficient implementation of the K-SVD algorithm using batch orthogonal matching pursuit.

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

    optimal_on_support = True

    def __post_init__(self):
        require_a_stop(self)

    @property
    def scale_equivariant(self):
        return self.tol is None

    def encode(self, signals, dictionary, *, threads=None):
        """Codes (d×n, csc) of the columns of `signals` (m×n) over the columns of `dictionary` (m×d)."""
        return _pursue(kernels.omp, self, signals, dictionary, threads)


@dataclass(frozen=True)
class ForwardSelection:
    """Orthogonal least squares: add the atom that lowers the residual most, then solve least squares.

    OMP asks which atom is most correlated with the residual; this asks which would leave the smallest
    residual after the fit, so it divides the correlation by the distance of the atom from the span of those
    chosen. Supports are better at the same sparsity (about 1 % less error on picture patches), for
    half as much time again. SPAMS' `omp` is this method.

    Parameters
    ----------
    sparsity, tol
        As for `OMP`.

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

    def __post_init__(self):
        require_a_stop(self)

    @property
    def scale_equivariant(self):
        return self.tol is None

    def encode(self, signals, dictionary, *, threads=None):
        """Codes (d×n, csc) of the columns of `signals` (m×n) over the columns of `dictionary` (m×d)."""
        return _pursue(kernels.forward_selection, self, signals, dictionary, threads)


def _pursue(kernel, coder, signals, dictionary, threads):
    Y, D = as_problem(signals, dictionary)
    sparsity = min(D.shape) if coder.sparsity is None else coder.sparsity
    require_sparsity(sparsity, *D.shape)
    tol = -1.0 if coder.tol is None else float(coder.tol)

    def run(prepared, rows, _, exponent):
        return kernel(prepared, rows, kernels.PursuitSettings(sparsity, times_square(tol, -exponent)))

    return encode_blocks(Y, D, run, threads)
