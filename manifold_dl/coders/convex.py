"""Codes that minimise the ℓ₁ norm: the lasso and its limit, basis pursuit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.coders.blockwise import Coding, encode_blocks, in_any_units
from manifold_dl.coders.checks import as_problem, require_fraction, require_sparsity
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.units import divide
from manifold_dl.kernels import coding as kernels
from manifold_dl.kernels.coding import LassoSettings
from manifold_dl.problem.solvers import LassoSolver, SignalUnit
from manifold_dl.problem.support import Support, as_support


@dataclass(frozen=True)
class Lasso:
    """The lagrangian form: minimise ½‖y − Dx‖² + alpha·‖x‖₁, for every signal.

    Parameters
    ----------
    alpha : float
        The penalty, in the units of Dᵀy: `alpha` of scikit-learn's `sparse_encode`, lambda1 of SPAMS. (The
        alpha of scikit-learn's `Lasso` is this one divided by m.)
    sparsity : int, optional
        Keep only so many coefficients of each code, the largest, and solve for them again by least squares.
        That removes the shrinkage, and is how an ℓ₁ code becomes a support for a dictionary update.
    relative : bool
        Count `alpha` as a fraction of max |Dᵀy|, signal by signal: at 1 or above every code is zero. Signals
        scaled by c then get codes scaled by c, which an absolute penalty cannot give.
    tol : float
        The duality gap allowed, as a fraction of the objective. Rounding of the correlations adds up to
        32·eps/a to it, where a is `alpha` as a fraction of max |Dᵀy|: with a = 0.1 that is 4e-5 in single
        precision (seen: 8e-6) and 7e-14 in double.
    nonnegative : bool
        Only codes ≥ 0: scikit-learn's `positive_code`. With `relative` the penalty is then a fraction of
        max Dᵀy, and with `sparsity` the last solve is non-negative least squares.

    Notes
    -----
    The kernel is an active-set method that ends at the exact solution for the signs it finds; a first pass
    costs about twice as much as OMP with as many atoms, and `codes`, the last codes, shorten it. In single
    precision, signals whose codes do not satisfy the optimality conditions are coded again in double.

    Weights of entries multiply the squared errors and not the penalty: a signal with half of its entries
    missing has about half the correlations Dᵀ(w∘y), and an absolute penalty shrinks its codes twice as much.
    `relative` follows the weights.

    References
    ----------
    Tibshirani (1996), Regression shrinkage and selection via the lasso. Lee, Battle, Raina and Ng (2007),
    Efficient sparse coding algorithms.

    Examples
    --------
    With orthonormal atoms the codes are the correlations, each moved towards zero by alpha:

    >>> import numpy as np
    >>> Lasso(alpha=0.5).encode(np.array([[2.0], [-0.7], [0.1]]), np.eye(3)).toarray().round(12).ravel()
    array([ 1.5, -0.2,  0. ])
    >>> Lasso(alpha=0.5, sparsity=1).encode(np.array([[2.0], [-0.7], [0.1]]), np.eye(3)).toarray().ravel()
    array([2., 0., 0.])
    """

    alpha: float
    sparsity: int | None = None
    relative: bool = False
    tol: float = 1e-6
    nonnegative: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, Real) or isinstance(self.alpha, bool):
            raise TypeError(f"alpha={self.alpha!r}: the penalty is a number.")
        if not (np.isfinite(self.alpha) and self.alpha > 0):
            raise ValueError(
                f"alpha={self.alpha}: the penalty must be finite and positive; its limit 0 is BasisPursuit()."
            )
        if self.sparsity is not None:
            require_sparsity(self.sparsity)
        require_fraction("tol", self.tol)

    @property
    def optimal_on_support(self) -> bool:
        """Whether the codes are solved again by least squares on their support."""
        return self.sparsity is not None

    @property
    def scale_equivariant(self) -> bool:
        """Whether signals times c get codes times c."""
        return self.relative

    def penalty(self, codes: scipy.sparse.csc_array) -> float:
        """The value of the penalty, alpha·Σ|x|.

        Parameters
        ----------
        codes : d×n sparse array
            X.

        Returns
        -------
        float
        """
        return float(self.alpha) * float(np.abs(codes.data).sum(dtype=float))

    def inner_solver(self, mu: float, unit: SignalUnit) -> LassoSolver:
        """The lasso as codes that follow a dictionary: ``SimCO(codes=Lasso(alpha=0.1))``.

        Parameters
        ----------
        mu : float
            With μ > 0 it is the elastic net.
        unit : SignalUnit
            The units of the signals.

        Returns
        -------
        LassoSolver
        """
        if self.relative or self.sparsity is not None:
            option = "relative=True" if self.relative else f"sparsity={self.sparsity}"
            raise ValueError(
                f"{option}: such codes are not the minimum of one function of the dictionary, and have no "
                "gradient. Let codes follow by Lasso(alpha=...), or in any units by RmsLasso(alpha=...)."
            )
        return LassoSolver(math.ldexp(self.alpha, -unit.exponent), mu, self.nonnegative)

    def encode(
        self,
        signals: np.ndarray,
        dictionary: np.ndarray,
        *,
        codes: Any = None,
        threads: int | None = None,
        weights: Any = None,
    ) -> scipy.sparse.csc_array:
        """See `FullSparseCoder.encode`: m×n signals and an m×d dictionary → d×n codes."""
        Y, D, W = as_problem(signals, dictionary, weights)
        if self.sparsity is not None:
            require_sparsity(self.sparsity, *D.shape)
        path, refit = np.array([self.alpha]), self.sparsity or 0
        settings = LassoSettings(path, self.relative, self.tol, refit, self.nonnegative)
        coding = lasso_coding(settings, penalties_in_units)
        return encode_blocks(Y, D, coding, threads, _starting_codes(codes, Y, D), W)


@dataclass(frozen=True)
class BasisPursuit:
    """Minimise ‖x‖₁ subject to Dx = y: the limit of the lasso as its penalty goes to zero.

    The penalty is halved from max |Dᵀy| down to `smallest` times it, each solution the start of the next, and
    the last support is solved by least squares. A signal outside the span of the atoms is fitted as well as
    they can, with the smallest ℓ₁ norm. For signals with noise `Lasso` is faster and means more: a basis
    pursuit fits the noise too, with up to m atoms.

    Parameters
    ----------
    smallest : float
        Where the path of penalties ends, as a fraction of max |Dᵀy|.

    References
    ----------
    Chen, Donoho and Saunders (1998), Atomic decomposition by basis pursuit.

    Examples
    --------
    >>> import numpy as np
    >>> D = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> BasisPursuit().encode(np.array([[0.6], [0.8]]), D).toarray().round(12).ravel()
    array([0., 0., 1.])
    """

    smallest: float = 1e-6

    optimal_on_support = True
    scale_equivariant = True

    def __post_init__(self) -> None:
        require_fraction("smallest", self.smallest)

    def encode(
        self, signals: np.ndarray, dictionary: np.ndarray, *, threads: int | None = None, weights: Any = None
    ) -> scipy.sparse.csc_array:
        """See `FullSparseCoder.encode`: m×n signals and an m×d dictionary → d×n codes."""
        Y, D, W = as_problem(signals, dictionary, weights)
        # Rounding leaves correlations of about eps; a smaller penalty would be lost among them.
        smallest = max(self.smallest, 1e3 * np.finfo(Y.dtype).eps)
        path = np.append(2.0 ** -np.arange(1, np.ceil(-np.log2(smallest))), smallest)
        settings = LassoSettings(path, True, 1e-6, min(D.shape))
        return encode_blocks(Y, D, lasso_coding(settings), threads, weights=W)


def lasso_coding(settings: LassoSettings, in_units: Callable = in_any_units) -> Coding:
    """How blocks are coded by the lasso."""
    return Coding(kernels.lasso, settings, in_units, unit_atoms=False, weighted=kernels.weighted_lasso)


def penalties_in_units(settings: LassoSettings, exponent: int, dtype: np.dtype) -> LassoSettings:
    """The settings for signals divided by 2^exponent: absolute penalties as near to it as the type allows."""
    if settings.relative:
        return settings
    limits = np.finfo(dtype)
    penalties = divide(np.asarray(settings.path, np.float64), exponent)
    return settings._replace(path=np.clip(penalties, float(limits.tiny), float(limits.max) / 4))


def _starting_codes(codes: Any, Y: Any, D: np.ndarray) -> Support | None:
    """The codes to start from, checked, in the dtype of the signals.

    Codes that an engine has may be lost and computed again, with other bits if they were where to start from.
    """
    if codes is None or isinstance(Y, BlockedSignals):
        return None
    support = as_support(codes, Y.shape[1], D.shape[1])
    if support.values is None:
        raise TypeError("codes holds a support without coefficients; a warm start needs codes.")
    return support._replace(values=support.values.astype(Y.dtype))
