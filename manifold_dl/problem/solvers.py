"""How codes follow the dictionary by a penalty: x(y, D) = argmin ½‖y − Dx‖² + p(x), no support needed.

By the envelope theorem the value of that minimum has the gradient −r xᵀ in D wherever the minimiser is
unique, whatever p is. So an `InnerSolver` has to return codes and the value, and everything else (gradient,
geodesics, optimizers, engines) is shared. `LassoSolver` is the compiled one; `CoderSolver` makes one of any
coder that states its penalty. `penalized.py` runs a solver on blocks of signals. `solver_of` is where a coder
that a user chose becomes a solver.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse

from manifold_dl.components.calling import require_weights
from manifold_dl.engines.weights import WeightedSignals
from manifold_dl.kernels import reduced
from manifold_dl.kernels.coding import PreparedDictionary, StartingCodes
from manifold_dl.kernels.reduced import Block, InnerFit


class BlockWeights(NamedTuple):
    """The weights of some signals: of their entries, or one per signal, or both, or none."""

    entries: np.ndarray | None = None  # n×m: Σ ½w(y − Dx)² + p(x) in place of ½‖y − Dx‖² + p(x)
    roots: np.ndarray | None = None  # n: √w of weights of whole terms; the signals are multiplied by it


NO_WEIGHTS = BlockWeights()


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

    def fit(
        self,
        signals: np.ndarray,
        prepared: Any,
        start: StartingCodes | None,
        weights: BlockWeights = NO_WEIGHTS,
    ) -> InnerFit:
        """Codes, value and gradient for signals in rows; `start` holds codes of another dictionary.

        With a weight w per signal the signals are √w y, and the codes √w x: w(½‖y − Dx‖² + p(x)) is the term.
        """


class PenalizedCoder(Protocol):
    """A coder whose codes minimise ½‖y − Dx‖² + p(x) exactly, with a method for the value of p.

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
    """p(x) = α‖x‖₁ + (μ/2)‖x‖²: the lasso, and with μ > 0 the elastic net, whose minimiser is unique.

    With `nonnegative` p is infinite where a coefficient is negative.
    """

    alpha: float
    mu: float = 0.0
    nonnegative: bool = False

    @property
    def curvature(self) -> float:
        """μ."""
        return self.mu

    def prepare(self, atoms: np.ndarray) -> PreparedDictionary:
        """The dictionary as the kernel reads it."""
        return reduced.prepare_lasso(atoms, self.mu)

    def fit(
        self,
        signals: np.ndarray,
        prepared: PreparedDictionary,
        start: StartingCodes | None,
        weights: BlockWeights = NO_WEIGHTS,
    ) -> InnerFit:
        """Codes, value and gradient of one block."""
        (W, roots), options = weights, (self.alpha, self.mu, start)
        if W is not None:
            return reduced.fit_weighted_lasso(signals, W, prepared, *options, roots, self.nonnegative)
        return reduced.fit_lasso(signals, prepared, *options, roots, self.nonnegative)


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

    def fit(
        self,
        signals: np.ndarray,
        prepared: np.ndarray,
        start: StartingCodes | None,
        weights: BlockWeights = NO_WEIGHTS,
    ) -> InnerFit:
        """Codes, value and gradient of one block."""
        W, roots = weights
        given = signals if roots is None else _divided(signals, roots)
        options = {} if W is None else {"weights": W.T}
        X = scipy.sparse.csc_array(self.coder.encode(given.T, prepared.T, **options))
        X.sort_indices()
        penalty = self._penalty(X, roots)
        if roots is not None:
            X.data = X.data * np.repeat(roots, np.diff(X.indptr))
        indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
        codes = StartingCodes(indptr, indices, X.data.astype(signals.dtype, copy=False))
        R = signals - X.T @ prepared
        if W is None:
            weighted, energies = R, reduced.code_energies(X.indices, X.data, len(prepared))
        else:
            block = Block(signals, indptr, indices, None)
            weighted, energies = W * R, reduced.weighted_energies(block, W, X.data, len(prepared))
        value = 0.5 * float(np.vdot(R, weighted)) + penalty
        return InnerFit(value, np.asarray(-(X @ weighted), order="C"), energies, codes)

    def _penalty(self, X: scipy.sparse.csc_array, roots: np.ndarray | None) -> float:
        """Σ w p(x), with one call for all signals of one weight."""
        if roots is None or (roots == 1).all():
            return float(self.coder.penalty(X))
        different = np.unique(roots)
        return sum(float(root) ** 2 * float(self.coder.penalty(X[:, roots == root])) for root in different)


def _divided(rows: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Rows divided by their roots, zero where those are."""
    return np.divide(rows, roots[:, None], out=np.zeros_like(rows), where=roots[:, None] > 0)


class CoderMembers(NamedTuple):
    """What a coder may offer so that codes follow by it; None for what it does not have."""

    inner_solver: Callable[[float, SignalUnit], InnerSolver] | None
    encode: Callable[..., Any] | None
    penalty: Callable[[scipy.sparse.csc_array], float] | None


def members_of_coder(coder: Any) -> CoderMembers:
    """The members of a `FollowingCoder` and of a `PenalizedCoder` that any coder, or None, has."""
    return CoderMembers(*(getattr(coder, name, None) for name in CoderMembers._fields))


def can_follow(coder: Any) -> bool:
    """Whether codes can follow a dictionary by this coder: a `FollowingCoder` or a `PenalizedCoder`."""
    if isinstance(coder, type):
        return False
    inner_solver, encode, penalty = members_of_coder(coder)
    return inner_solver is not None or (encode is not None and penalty is not None)


def unit_of(signals: WeightedSignals) -> SignalUnit:
    """The units of some signals; of their weights the mean counts."""
    mean = signals.energy / signals.total_weight if signals.total_weight > 0 else 0.0
    return SignalUnit(float(np.sqrt(mean)), signals.exponent)


def solver_of(coder: Any, mu: float, signals: WeightedSignals) -> InnerSolver:
    """The solver of a `FollowingCoder`, or one that calls `encode` and `penalty` of a `PenalizedCoder`."""
    unit, inner_solver = unit_of(signals), members_of_coder(coder).inner_solver
    if inner_solver is not None:
        solver = inner_solver(mu, unit)
        if not (signals.weights is None and signals.roots is None):
            require_weights(solver, "codes", solver.fit)
        return solver
    if mu > 0:
        raise ValueError(
            f"mu={mu}: {coder!r} solves for its own penalty; put the ridge into that, or use mu=0."
        )
    if unit.exponent:
        raise ValueError(
            f"the signals are of about 2^{unit.exponent}, where squares are no ordinary numbers: divide them "
            f"by 2.0**{unit.exponent}, and choose the penalty for the result."
        )
    if signals.weights is not None:
        require_weights(coder, "codes", coder.encode)
    return CoderSolver(coder)
