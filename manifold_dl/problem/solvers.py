"""How codes follow the dictionary by a penalty: x(y, D) = argmin ½‖y − Dx‖² + p(x), no support needed.

By the envelope theorem the value of that minimum has the gradient −r xᵀ in D wherever the minimiser is
unique, whatever p is. So an `InnerSolver` has to return codes and the value, and everything else (gradient,
geodesics, optimizers, engines) is shared. `LassoSolver` is the compiled one; `CoderSolver` makes one of any
coder that states its penalty. `penalized.py` runs a solver on blocks of signals. `solver_of` is where a coder
that a user chose becomes a solver.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse

from manifold_dl.kernels import reduced
from manifold_dl.kernels.coding import PreparedDictionary, StartingCodes
from manifold_dl.kernels.reduced import InnerFit
from manifold_dl.kernels.status import OK


class InnerSolver(Protocol):
    """Codes that minimise ½‖y − Dx‖² + p(x) for a convex penalty p, one block of signals at a time.

    Attributes
    ----------
    curvature : float or None
        c where p is, as long as no coefficient of x changes its sign or becomes zero, linear plus (c/2)‖x‖²:
        0 for the lasso, μ for the elastic net. It is what a Hessian product needs of p. None if p is not of
        that form: then there is none.
    """

    @property
    def curvature(self) -> float | None: ...

    def prepare(self, atoms: np.ndarray) -> Any:
        """What `fit` needs of the atoms (k×m, an atom in every row), computed once for all blocks."""

    def fit(self, signals: np.ndarray, prepared: Any, start: StartingCodes | None) -> InnerFit:
        """Codes, value and gradient for signals in rows; `start` holds codes of another dictionary."""


class PenalizedCoder(Protocol):
    """A coder whose codes minimise ½‖y − Dx‖² + p(x) exactly, and which knows the value of p.

    Examples
    --------
    Codes in closed form, with p(x) = ½‖x‖²:

    >>> class Ridge:
    ...     def encode(self, signals, dictionary):
    ...         return np.linalg.solve(
    ...             dictionary.T @ dictionary + np.eye(dictionary.shape[1]), dictionary.T @ signals
    ...         )
    ...     def penalty(self, codes):
    ...         return 0.5 * float((codes * codes).sum())
    >>> coder: PenalizedCoder = Ridge()
    """

    def encode(self, signals: np.ndarray, dictionary: np.ndarray) -> Any:
        """Codes of the columns of `signals`: (m×n, m×d) → d×n, sparse or dense."""

    def penalty(self, codes: scipy.sparse.csc_array) -> float:
        """Σ_j p(x_j) over the columns of `codes`, a csc_array."""


class SignalUnit(NamedTuple):
    """In which units a solver sees the signals."""

    rms: float  # their root mean square norm, in units of 2^exponent
    exponent: int  # they were divided by 2^exponent; 0 for ordinary signals


class FollowingCoder(Protocol):
    """A coder that makes its own `InnerSolver`: faster than `encode` and `penalty`, and with a ridge."""

    def inner_solver(self, mu: float, unit: SignalUnit) -> InnerSolver:
        """The solver for p(x) + (μ/2)‖x‖² and signals in these units."""


@dataclass(frozen=True)
class LassoSolver:
    """p(x) = α‖x‖₁ + (μ/2)‖x‖²: the lasso, and with μ > 0 the elastic net, whose minimiser is unique."""

    alpha: float
    mu: float = 0.0

    @property
    def curvature(self) -> float:
        """μ."""
        return self.mu

    def prepare(self, atoms: np.ndarray) -> PreparedDictionary:
        """The dictionary as the kernel reads it."""
        return reduced.prepare_lasso(atoms, self.mu)

    def fit(self, signals: np.ndarray, prepared: PreparedDictionary, start: StartingCodes | None) -> InnerFit:
        """Codes, value and gradient of one block."""
        return reduced.fit_lasso(signals, prepared, self.alpha, self.mu, start)


@dataclass(frozen=True)
class CoderSolver:
    """The penalty of any coder that has a method `penalty`; without Hessian products."""

    coder: PenalizedCoder

    @property
    def curvature(self) -> None:
        """Unknown."""
        return None

    def prepare(self, atoms: np.ndarray) -> np.ndarray:
        """The atoms as they are."""
        return atoms

    def fit(self, signals: np.ndarray, prepared: np.ndarray, start: StartingCodes | None) -> InnerFit:
        """Codes, value and gradient of one block."""
        X = scipy.sparse.csc_array(self.coder.encode(signals.T, prepared.T))
        X.sort_indices()
        R = signals - X.T @ prepared
        value = 0.5 * float(np.vdot(R, R)) + float(self.coder.penalty(X))
        energies = reduced.code_energies(X.indices, X.data, len(prepared))
        indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
        codes = StartingCodes(indptr, indices, X.data.astype(signals.dtype, copy=False))
        return InnerFit(value, np.asarray(-(X @ R), order="C"), energies, codes, OK)


def can_follow(coder: Any) -> bool:
    """Whether codes can follow a dictionary by this coder: a `FollowingCoder` or a `PenalizedCoder`."""
    if isinstance(coder, type):
        return False
    return hasattr(coder, "inner_solver") or (hasattr(coder, "encode") and hasattr(coder, "penalty"))


def solver_of(coder: FollowingCoder | PenalizedCoder, mu: float, unit: SignalUnit) -> InnerSolver:
    """The solver of a coder: its own, or one that calls `encode` and `penalty`."""
    if hasattr(coder, "inner_solver"):
        return coder.inner_solver(mu, unit)
    if mu > 0:
        raise ValueError(
            f"mu={mu}: {coder!r} solves for its own penalty; put the ridge into that, or use mu=0."
        )
    if unit.exponent:
        raise ValueError(
            f"the signals are of about 2^{unit.exponent}, where squares are no ordinary numbers: divide them "
            f"by 2.0**{unit.exponent}, and choose the penalty for the result."
        )
    return CoderSolver(coder)
