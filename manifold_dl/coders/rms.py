"""The lasso with one penalty for all signals, stated as a fraction of their size."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.coders.checks import require_array, require_sparsity
from manifold_dl.coders.convex import Lasso
from manifold_dl.engines.threads import as_engine
from manifold_dl.engines.weights import as_weighted_signals
from manifold_dl.problem.solvers import LassoSolver, SignalUnit


@dataclass(frozen=True)
class RmsLasso:
    """`Lasso` with a penalty of `alpha` times the root mean square norm of the signals.

    Signals in other units, all multiplied by c, get codes multiplied by c, and yet the penalty is the same
    number for every signal: weak signals get fewer atoms. (`Lasso(relative=True)` has another penalty for
    every signal and every dictionary, so that codes cannot follow a dictionary by it.)

    Parameters
    ----------
    alpha : float
        The penalty as a fraction of the root mean square norm of the signals that are coded together; with
        weights √(Σ w y²/Σ_j w̄_j), where w̄_j is the mean weight of signal j.
    sparsity : int, optional
        Keep only so many coefficients of each code, the largest, and solve for them again by least squares.

    Examples
    --------
    >>> import numpy as np
    >>> D, Y = np.eye(2), np.array([[3.0, 0.3], [0.0, 0.4]])
    >>> codes = RmsLasso(alpha=0.1).encode(Y, D)
    >>> penalty = 0.1 * np.sqrt((9 + 0.25) / 2)
    >>> bool(np.allclose(codes.toarray(), np.maximum(Y - penalty, 0)))
    True
    """

    alpha: float
    sparsity: int | None = None

    scale_equivariant = True

    def __post_init__(self) -> None:
        Lasso(self.alpha, self.sparsity)  # checks both
        if self.sparsity is not None:
            require_sparsity(self.sparsity)

    @property
    def optimal_on_support(self) -> bool:
        """Whether the codes are solved again by least squares on their support."""
        return self.sparsity is not None

    def inner_solver(self, mu: float, unit: SignalUnit) -> LassoSolver:
        """The lasso as codes that follow a dictionary: ``SimCO(codes=RmsLasso(alpha=0.1))``.

        Parameters
        ----------
        mu : float
            With μ > 0 it is the elastic net.
        unit : SignalUnit
            The size of the signals.

        Returns
        -------
        LassoSolver
        """
        if self.sparsity is not None:
            Lasso(self.alpha, self.sparsity).inner_solver(mu, unit)  # says why not
        return LassoSolver(self._penalty(unit.rms), mu)

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
        require_array(signals, self)
        known = as_weighted_signals(signals, weights, as_engine(threads))
        rms = np.sqrt(known.energy / known.total_weight) if known.total_weight > 0 else 0.0
        penalty = np.ldexp(self._penalty(float(rms)), known.exponent)
        coder = Lasso(float(penalty), self.sparsity)
        return coder.encode(signals, dictionary, codes=codes, threads=threads, weights=weights)

    def _penalty(self, rms: float) -> float:
        """The penalty for signals of this size; any will do for signals of zeros."""
        return self.alpha * rms if rms > 0 else self.alpha
