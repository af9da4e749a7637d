"""Codes that minimise the ℓ₁ norm: the lasso and its limit, basis pursuit."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from manifold_dl.coders.blockwise import as_problem, encode_blocks, require_sparsity
from manifold_dl.engines.units import divide
from manifold_dl.kernels import coding as kernels
from manifold_dl.kernels.reduced.reference import take
from manifold_dl.problem.support import as_support


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
        The duality gap allowed, as a fraction of the objective.

    Notes
    -----
    The kernel is an active-set method that ends at the exact solution for the signs it finds; a first pass
    costs about twice as much as OMP with as many atoms, and `codes`, the last codes, shorten it.

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

    def __post_init__(self):
        if not isinstance(self.alpha, Real) or isinstance(self.alpha, bool):
            raise TypeError(f"alpha={self.alpha!r}: the penalty is a number.")
        if not (np.isfinite(self.alpha) and self.alpha > 0):
            raise ValueError(
                f"alpha={self.alpha}: the penalty must be finite and positive; its limit 0 is BasisPursuit()."
            )
        if self.sparsity is not None:
            require_sparsity(self.sparsity)
        _require_fraction("tol", self.tol)

    @property
    def optimal_on_support(self):
        return self.sparsity is not None

    @property
    def scale_equivariant(self):
        return self.relative

    def encode(self, signals, dictionary, *, codes=None, threads=None):
        """Codes (d×n, csc) of the columns of `signals`; `codes` (d×n) is where to start from."""
        Y, D = as_problem(signals, dictionary)
        if self.sparsity is not None:
            require_sparsity(self.sparsity, *D.shape)
        start = _starting_codes(codes, Y, D)
        refit = self.sparsity or 0

        def kernel(prepared, rows, signals, exponent):
            alpha = self.alpha if self.relative else _in_units(self.alpha, exponent, rows.dtype)
            begin = start(signals, exponent)
            settings = kernels.LassoSettings(np.array([alpha]), self.relative, self.tol, refit)
            return kernels.lasso(prepared, rows, settings, begin)

        return encode_blocks(Y, D, kernel, threads, unit_atoms=False)


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

    def __post_init__(self):
        _require_fraction("smallest", self.smallest)

    def encode(self, signals, dictionary, *, threads=None):
        """Codes (d×n, csc) of the columns of `signals` (m×n) over the columns of `dictionary` (m×d)."""
        Y, D = as_problem(signals, dictionary)
        start = _starting_codes(None, Y, D)
        # Rounding leaves correlations of about eps; a smaller penalty would be lost among them.
        smallest = max(self.smallest, 1e3 * np.finfo(Y.dtype).eps)
        path = np.append(2.0 ** -np.arange(1, np.ceil(-np.log2(smallest))), smallest)

        def kernel(prepared, rows, signals, exponent):
            settings = kernels.LassoSettings(path, True, 1e-6, min(D.shape))
            return kernels.lasso(prepared, rows, settings, start(signals, exponent))

        return encode_blocks(Y, D, kernel, threads, unit_atoms=False)


def _starting_codes(codes, Y, D):
    """A function from signals and their exponent to their part of `codes`: indptr, indices, values.

    The signals are a slice or an array of indices; they are in units of 2^exponent, as the values will be.
    """
    every = np.arange(Y.shape[1])
    if codes is None:
        nothing = np.zeros(0, np.int32), np.zeros(0, Y.dtype)
        return lambda signals, exponent: kernels.StartingCodes(
            np.zeros(len(every[signals]) + 1, np.int64), *nothing
        )
    support = as_support(codes, Y.shape[1], D.shape[1])
    if support.values is None:
        raise TypeError("codes holds a support without coefficients; a warm start needs codes.")
    values = support.values.astype(Y.dtype)

    def part(signals, exponent):
        indptr, indices, places = take(support.indptr, support.indices, every[signals])
        return kernels.StartingCodes(indptr, indices, divide(values[places], exponent))

    return part


def _in_units(alpha, exponent, dtype):
    """alpha / 2^exponent, as near to it as the type allows."""
    limits = np.finfo(dtype)
    return float(np.clip(float(divide(np.float64(alpha), exponent)), limits.tiny, limits.max / 4))


def _require_fraction(name, value):
    if not (isinstance(value, Real) and 0 < value < 1):
        raise ValueError(f"{name}={value!r}: a fraction between 0 and 1 is needed.")
