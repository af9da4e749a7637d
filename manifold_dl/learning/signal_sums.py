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
from manifold_dl.engines import BlockMap, Engine, Threads
from manifold_dl.engines.protocol import partition
from manifold_dl.engines.units import as_units, divide, times_square
from manifold_dl.engines.weights import as_weighted_signals
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.problem.signals import blocks_of, values_of
from manifold_dl.problem.support import Support, as_support


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
    def of(cls, signals: np.ndarray, weights: np.ndarray | None = None) -> "LossScale":
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
    signals: np.ndarray,
    dictionary: np.ndarray,
    codes: Any,
    exponent: int = 0,
    engine: Engine = Threads(),  # noqa: B008 - frozen
    weights: np.ndarray | None = None,
) -> float:
    """‖Y − DX‖², with weights Σ w (Y − DX)², from the residual.

    Parameters
    ----------
    signals, dictionary, codes : m×n, m×d and sparse d×n arrays
    exponent : int
        The sum is in units of 4^exponent (`units.unit_exponent` returns one that is safe).
    engine : Engine
        What runs the function of a block.
    weights : array of length n or m×n array, optional
        Of the signals, or of their entries.

    Returns
    -------
    float

    Examples
    --------
    >>> squared_error(np.array([[3.0], [1.0]]), np.eye(2), np.array([[3.0], [0.0]]))
    1.0
    """
    blocks = coded_blocks(signals, codes, dictionary.shape[1], engine)
    atoms = np.ascontiguousarray(dictionary.T)
    parents = *blocks, weight_blocks(weights, signals.shape[1], engine)
    (error,) = engine.total(BlockMap(squared_error_block, parents, (atoms, exponent)))
    return error


def squared_error_block(
    block: Block, codes: np.ndarray, weights: np.ndarray | None, atoms: np.ndarray, exponent: int
) -> tuple[float, None]:
    """‖Y − DX‖² of one block, summed in double precision."""
    rows = divide(block.signals, exponent)
    rest = residual(rows, block, as_units(codes.astype(rows.dtype), exponent), atoms)
    return sum_of_squares(rest, weights), None


def explained_fraction(
    signals: np.ndarray,
    dictionary: np.ndarray,
    codes: Any,
    engine: Engine = Threads(),  # noqa: B008 - frozen
    weights: np.ndarray | None = None,
) -> float:
    """1 − ‖Y − DX‖²/‖Y‖², from the residual and in double precision; 1 for signals of zero.

    Parameters
    ----------
    signals, dictionary, codes : m×n, m×d and sparse d×n arrays
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
    >>> explained_fraction(Y, np.eye(2), X)
    0.9
    """
    blocks = coded_blocks(signals, codes, dictionary.shape[1], engine)
    largest = max(float(signals.max()), -float(signals.min()))
    if largest == 0:
        return 1.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of two: no square vanishes or overflows
    atoms = np.ascontiguousarray(dictionary.T, dtype=float)
    parents = *blocks, weight_blocks(weights, signals.shape[1], engine)
    ((energy, error),) = engine.total(BlockMap(energy_and_error_block, parents, (atoms, unit)))
    return 1 - error / energy if energy > 0 else 1.0


def energy_and_error_block(
    block: Block, codes: np.ndarray, weights: np.ndarray | None, atoms: np.ndarray, unit: float
) -> tuple[tuple[float, float], None]:
    """‖Y‖² and ‖Y − DX‖² of one block, in units of unit²."""
    rows = np.array(block.signals, dtype=float, order="C") / unit
    rest = residual(rows, block, codes.astype(float) / unit, atoms)
    if weights is None:
        return (float(np.vdot(rows, rows)), float(np.vdot(rest, rest))), None
    return (sum_of_squares(rows, weights), sum_of_squares(rest, weights)), None


def code_energies(
    codes: Any,
    exponent: int,
    engine: Engine = Threads(),  # noqa: B008 - frozen
    weights: np.ndarray | None = None,
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
    n_atoms = codes.shape[0]
    support = Support(codes.indptr, codes.indices, n_atoms, codes.data)
    indices = engine.open(values_of(support.indices, support))
    values = engine.open(values_of(codes.data, support))
    factors = np.ones(0)
    if weights is not None:
        mean = weights if weights.ndim == 1 else weights.mean(axis=0, dtype=float)
        factors = np.repeat(mean.astype(float), np.diff(codes.indptr))
    factor_blocks = engine.open(values_of(factors, support))  # empty without weights
    parents = (indices, values, factor_blocks)
    (energies,) = engine.total(BlockMap(code_energies_block, parents, (exponent, n_atoms)))
    return energies


def code_energies_block(
    indices: np.ndarray, values: np.ndarray, factors: np.ndarray, exponent: int, n_atoms: int
) -> tuple[np.ndarray, None]:
    """‖X_i‖² of every atom over the signals of one block."""
    squares = divide(values, exponent).astype(float) ** 2
    if len(factors):
        squares *= factors
    return np.bincount(indices, weights=squares, minlength=n_atoms), None


def coded_blocks(signals: np.ndarray, codes: Any, n_atoms: int, engine: Engine) -> tuple[BlockMap, BlockMap]:
    """The signals (m×n) with their supports, and their codes, which are zero where a support was given."""
    if np.dtype(getattr(codes, "dtype", float)).kind in "iu":  # numbers, not the indices of a support
        codes = codes.astype(float)
    support = as_support(codes, signals.shape[1], n_atoms)
    values = np.zeros(len(support.indices)) if support.values is None else support.values
    return engine.open(blocks_of(signals.T, support)), engine.open(values_of(values, support))


def residual(rows: np.ndarray, block: Block, codes: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """y − Dx for every signal y of `rows`, where the codes x have the support of the block."""
    rest = np.array(rows, order="C")
    reduced.add_products(rest, block.indptr, block.indices, -codes, atoms)
    return rest


def weight_blocks(weights: np.ndarray | None, n_signals: int, engine: Engine) -> BlockMap:
    """The weights beside the blocks of signals: None, one per signal, or one per entry in rows."""
    parts = partition(n_signals)
    if weights is None:
        return engine.open([None] * len(parts))
    rows = weights if weights.ndim == 1 else weights.T
    return engine.open([rows[part] for part in parts])


def sum_of_squares(rows: np.ndarray, weights: np.ndarray | None) -> float:
    """Σ w rows², in double precision; `weights` are None, one per row, or one per entry."""
    if weights is None:
        return float(np.einsum("nm,nm->", rows, rows, dtype=float))
    return float(weighted_squares(rows, weights).sum())


def weighted_squares(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ w rows² of every row, in double precision."""
    if weights.ndim == 1:
        return weights * np.einsum("nm,nm->n", rows, rows, dtype=float)
    return np.einsum("nm,nm,nm->n", weights, rows, rows, dtype=float)
