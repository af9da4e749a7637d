"""Sums over the signals: the error ‖Y − DX‖², the explained fraction, the energies of codes.

With weights every square is multiplied by its own: one per signal, or one per entry. They are None, an array
of length n or an m×n array, as `_validation.as_observed` returns them; signals are zero where weights are.
Each is a function of one block of signals, ``..._block``, run by an engine that adds the partial results over
a fixed tree of the blocks: no copy of all signals is made, and the number of threads changes no bit. The
learning loop, `minibatch.py`, `replacement.py` and the estimator call them.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from manifold_dl._validation import warn_once
from manifold_dl._weights import by_signal
from manifold_dl.engines import BlockMap, Engine, Threads
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals, CodesBlock
from manifold_dl.engines.units import as_units, divide, times_square
from manifold_dl.engines.weights import as_weighted_signals
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.learning.coded_signals import coded_map, sum_of_squares, weight_blocks
from manifold_dl.problem.signals import codes_of
from manifold_dl.problem.support import Support


class LossScale(NamedTuple):
    """The units in which the error of a run is summed, and those in which it is reported.

    Attributes
    ----------
    total_weight : float
        n; with weights the sum of the mean weights of the signals.
    energy : float
        ‖Y‖², with weights Σ w y², in units of 4^exponent.
    exponent : int
        0, unless the squares of the signals overflow or vanish (`engines.units`).
    """

    total_weight: float
    energy: float
    exponent: int

    @classmethod
    def of(cls, signals: Any, weights: Any = None) -> "LossScale":
        """The scale of the signals (m×n)."""
        known = as_weighted_signals(signals, weights, Threads(1))
        return cls(known.total_weight, known.energy, known.exponent)

    def relative(self, error: float) -> float:
        """‖Y − DX‖²/‖Y‖², which exists at any scale; 0 for signals of zero."""
        return error / self.energy if self.energy > 0 else 0.0

    def per_signal(self, error: float) -> float:
        """‖Y − DX‖²/n in the units of the data; inf or 0 where no number can hold it."""
        return times_square(error / self.total_weight, self.exponent)

    def warn_if_out_of_range(self, error: float) -> None:
        """Warn, once per run, where `per_signal` is no ordinary number though the error is one."""
        reported = self.per_signal(error)
        if error > 0 and not np.finfo(float).tiny <= reported < np.inf:
            warn_once(
                f"history.loss is {reported:.1g}, because the squares of signals of about 2^{self.exponent} "
                "are no numbers of double precision. Dictionary, codes and history.relative_loss are right; "
                f"divide the signals by 2.0**{self.exponent} for a loss that can be read.",
                "loss out of range",
            )


def squared_error(
    signals: Any,
    dictionary: np.ndarray,
    codes: Any,
    exponent: int = 0,
    engine: Engine = Threads(),  # noqa: B008 - frozen
    weights: Any = None,
    ahead: BlockedCodes | None = None,
) -> float:
    """‖Y − DX‖², with weights Σ w (Y − DX)², from the residual.

    Parameters
    ----------
    signals, dictionary, codes : m×n, m×d and sparse d×n arrays, or `BlockedSignals` and `BlockedCodes`
    exponent : int
        The sum is in units of 4^exponent (`units.unit_exponent` returns one that is safe).
    engine : Engine
        What runs the function of a block.
    weights : array of length n or m×n array, optional
        Of the signals, or of their entries.
    ahead : BlockedCodes, optional
        Codes that will be needed next: an engine computes them in the same round, with their usage.

    Returns
    -------
    float

    Examples
    --------
    >>> squared_error(np.array([[3.0], [1.0]]), np.eye(2), np.array([[3.0], [0.0]]))
    1.0
    """
    atoms = np.ascontiguousarray(dictionary.T)
    if isinstance(codes, BlockedCodes):
        return _blocked_error(signals, atoms, codes, exponent, weights, ahead)
    (error,) = engine.total(
        coded_map(squared_error_block, signals, codes, weights, (atoms, exponent), engine)
    )
    return error


def _blocked_error(
    signals: BlockedSignals,
    atoms: np.ndarray,
    codes: BlockedCodes,
    exponent: int,
    weights: Any,
    ahead: BlockedCodes | None,
) -> float:
    """‖Y − DX‖², in one round with the usage and the energies of the codes, which are asked for next."""
    error = coded_map(squared_error_block, signals, codes, weights, (atoms, exponent), codes.engine)
    own = by_signal(weights)
    maps = [error, codes.usage_map(weights), _energies_map(codes, exponent, own)]
    if ahead is not None:
        maps.append(ahead.usage_map())
    squares, codes.usages[weights], codes.energies[exponent, own], *more = codes.engine.total(*maps)
    if ahead is not None:
        (ahead.usages[None],) = more
    return squares


def squared_error_block(
    block: Block, codes: np.ndarray, weights: np.ndarray | None, atoms: np.ndarray, exponent: int
) -> tuple[float, None]:
    """‖Y − DX‖² of one block, summed in double precision."""
    rows = divide(block.signals, exponent)
    values = as_units(codes.astype(rows.dtype), exponent)
    rest = reduced.residual(rows, block.indptr, block.indices, values, atoms)
    return sum_of_squares(rest, weights), None


def unexplained_fraction(
    signals: Any,
    dictionary: np.ndarray,
    codes: Any,
    engine: Engine = Threads(),  # noqa: B008 - frozen
    weights: Any = None,
) -> float:
    """‖Y − DX‖²/‖Y‖², from the residual and in double precision; 0 for signals of zero.

    Parameters
    ----------
    signals, dictionary, codes : m×n, m×d and sparse d×n arrays, or `BlockedSignals` and `BlockedCodes`
    engine : Engine
        What runs the function of a block.
    weights : array of length n or m×n array, optional
        Of the signals, or of their entries: both norms become weighted sums of squares.

    Returns
    -------
    float

    Examples
    --------
    >>> Y, X = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[3.0, 0.0], [0.0, 0.0]])
    >>> unexplained_fraction(Y, np.eye(2), X)
    0.1
    """
    atoms = np.ascontiguousarray(dictionary.T, dtype=float)
    if isinstance(signals, BlockedSignals):
        largest = signals.largest
    else:
        largest = max(float(signals.max()), -float(signals.min()))
    if largest == 0:
        return 0.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of two: no square vanishes or overflows
    engine = codes.engine if isinstance(codes, BlockedCodes) else engine
    sums = coded_map(energy_and_error_block, signals, codes, weights, (atoms, unit), engine)
    ((energy, error),) = engine.total(sums)
    return error / energy if energy > 0 else 0.0


def explained_fraction(signals: Any, dictionary: np.ndarray, codes: Any, weights: Any = None) -> float:
    """1 − ‖Y − DX‖²/‖Y‖², of arguments as in `unexplained_fraction`.

    Parameters
    ----------
    signals, dictionary, codes : m×n, m×d and sparse d×n arrays, or `BlockedSignals` and `BlockedCodes`
    weights : array of length n or m×n array, optional

    Returns
    -------
    float
    """
    return 1 - unexplained_fraction(signals, dictionary, codes, weights=weights)


def energy_and_error_block(
    block: Block, codes: np.ndarray, weights: np.ndarray | None, atoms: np.ndarray, unit: float
) -> tuple[tuple[float, float], None]:
    """‖Y‖² and ‖Y − DX‖² of one block, in units of unit²."""
    rows = np.array(block.signals, dtype=float, order="C") / unit
    rest = reduced.residual(rows, block.indptr, block.indices, codes.astype(float) / unit, atoms)
    # Not by BLAS: its order of summation depends on the number of its threads, which differs among processes.
    return (sum_of_squares(rows, weights), sum_of_squares(rest, weights)), None


def code_energies(
    codes: Any,
    exponent: int,
    engine: Engine = Threads(),  # noqa: B008 - frozen
    weights: Any = None,
) -> np.ndarray:
    """‖X_i‖² of every atom; with weights Σ_j w_j x_ij², where w_j may be the mean weight of the entries.

    Parameters
    ----------
    codes : csc_array, d×n
    exponent : int
        The energies are in units of 4^exponent.
    engine : Engine
        What runs the function of a block.
    weights : array of length n or m×n array, optional
        Of the signals, or of their entries.

    Returns
    -------
    array of length d

    Examples
    --------
    >>> import scipy.sparse
    >>> code_energies(scipy.sparse.csc_array([[1.0, 2.0], [0.0, 3.0]]), exponent=0).tolist()
    [5.0, 9.0]
    """
    if isinstance(codes, BlockedCodes):
        if (exponent, weights) not in codes.energies:
            (codes.energies[exponent, weights],) = codes.engine.total(_energies_map(codes, exponent, weights))
        return codes.energies[exponent, weights]
    support = Support(codes.indptr, codes.indices, codes.shape[0], codes.data)
    blocks = engine.open(codes_of(support, codes.data))
    (energies,) = engine.total(
        _energies_map(BlockedCodes(engine, blocks, codes.shape, codes.dtype), exponent, weights)
    )
    return energies


def _energies_map(codes: BlockedCodes, exponent: int, weights: Any) -> BlockMap:
    parents = (codes.blocks, weight_blocks(weights, codes.n_signals, codes.engine))
    return BlockMap(code_energies_block, parents, (exponent, codes.n_atoms))


def code_energies_block(
    codes: CodesBlock, weights: np.ndarray | None, exponent: int, n_atoms: int
) -> tuple[np.ndarray, None]:
    """‖X_i‖² of every atom over the signals of one block."""
    squares = divide(codes.values, exponent).astype(float) ** 2
    if weights is not None:
        mean = weights if weights.ndim == 1 else weights.mean(axis=1, dtype=float)
        squares *= np.repeat(mean.astype(float), np.diff(codes.indptr))
    return np.bincount(codes.indices, weights=squares, minlength=n_atoms), None
