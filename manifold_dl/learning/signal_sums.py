"""Sums over the signals: the error ‖Y − DX‖², the explained fraction, the energies of codes.

Each is a function of one block of signals, `block_...`, whose partial results are added over all blocks. The
learning loop, `minibatch.py`, `replacement.py` and the estimator call the functions that run them.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from manifold_dl._validation import warn_once
from manifold_dl.engines import BlockMap
from manifold_dl.engines.protocol import BlockFunction, partition
from manifold_dl.engines.sources import as_signals
from manifold_dl.engines.threads import as_engine
from manifold_dl.engines.units import as_units, divide, times_square
from manifold_dl.kernels import reduced
from manifold_dl.problem.support import as_support


class CodedBlock(NamedTuple):
    """Some consecutive signals with their codes, which are zero where only a support was given."""

    first: int  # the number of the first of them
    rows: np.ndarray  # a signal in every row
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


class LossScale(NamedTuple):
    """The units in which the error of a run is summed, and those in which it is reported.

    Attributes
    ----------
    n_signals : int
    energy : float
        ‖Y‖², in units of 4^exponent.
    exponent : int
        0, unless the squares of the signals overflow or vanish (`engines.units`).
    """

    n_signals: int
    energy: float
    exponent: int

    @classmethod
    def of(cls, signals: np.ndarray) -> "LossScale":
        """The scale of the signals (m×n)."""
        _, energy, exponent = as_signals(signals)
        return cls(signals.shape[1], energy, exponent)

    def relative(self, error: float) -> float:
        """‖Y − DX‖²/‖Y‖², which exists at any scale; 0 for signals of zero."""
        return error / self.energy if self.energy > 0 else 0.0

    def per_signal(self, error: float) -> float:
        """‖Y − DX‖²/n in the units of the data; inf or 0 where no number can hold it."""
        return times_square(error / self.n_signals, self.exponent)

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


def squared_error(signals: np.ndarray, dictionary: np.ndarray, codes: Any, exponent: int = 0) -> float:
    """‖Y − DX‖², from the residual.

    Parameters
    ----------
    signals, dictionary, codes : m×n, m×d and sparse d×n arrays
    exponent : int
        The sum is in units of 4^exponent (`units.unit_exponent` tells which are safe).

    Returns
    -------
    float

    Examples
    --------
    >>> squared_error(np.array([[3.0], [1.0]]), np.eye(2), np.array([[3.0], [0.0]]))
    1.0
    """
    blocks, atoms = coded_blocks(signals, codes, dictionary.shape[1]), np.ascontiguousarray(dictionary.T)
    return float(_total(block_squared_error, blocks, atoms, exponent))


def block_squared_error(block: CodedBlock, atoms: np.ndarray, exponent: int) -> tuple[float, None]:
    """‖Y − DX‖² of one block, summed in double precision."""
    rows = divide(block.rows, exponent)
    rest = residual(rows, block, as_units(block.values.astype(rows.dtype), exponent), atoms)
    return float(np.einsum("nm,nm->", rest, rest, dtype=float)), None


def explained_fraction(signals: np.ndarray, dictionary: np.ndarray, codes: Any) -> float:
    """1 − ‖Y − DX‖²/‖Y‖², from the residual and in double precision; 1 for signals of zero.

    Parameters
    ----------
    signals, dictionary, codes : m×n, m×d and sparse d×n arrays

    Returns
    -------
    float

    Examples
    --------
    >>> Y, X = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[3.0, 0.0], [0.0, 0.0]])
    >>> explained_fraction(Y, np.eye(2), X)
    0.9
    """
    blocks = coded_blocks(signals, codes, dictionary.shape[1])
    largest = max(float(signals.max()), -float(signals.min()))
    if largest == 0:
        return 1.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of two: no square vanishes or overflows
    atoms = np.ascontiguousarray(dictionary.T, dtype=float)
    energy, error = _total(block_energy_and_error, blocks, atoms, unit)
    return 1 - error / energy


def block_energy_and_error(
    block: CodedBlock, atoms: np.ndarray, unit: float
) -> tuple[tuple[float, float], None]:
    """‖Y‖² and ‖Y − DX‖² of one block, in units of unit²."""
    rows = np.array(block.rows, dtype=float, order="C") / unit
    rest = residual(rows, block, block.values.astype(float) / unit, atoms)
    return (float(np.vdot(rows, rows)), float(np.vdot(rest, rest))), None


def code_energies(codes: Any, exponent: int) -> np.ndarray:
    """‖X_i‖² of every atom.

    Parameters
    ----------
    codes : sparse d×n array
    exponent : int
        The energies are in units of 4^exponent.

    Returns
    -------
    array of length d
    """
    values = divide(codes.data, exponent).astype(float)
    return np.bincount(codes.indices, weights=values**2, minlength=codes.shape[0])


def coded_blocks(signals: np.ndarray, codes: Any, n_atoms: int) -> list[CodedBlock]:
    """The signals (m×n) with their codes or support, block by block: views, nothing is copied."""
    support = as_support(codes, signals.shape[1], n_atoms)
    values = np.zeros(len(support.indices)) if support.values is None else support.values
    blocks = []
    for part in partition(signals.shape[1]):
        indptr = support.indptr[part.start : part.stop + 1]
        own = slice(int(indptr[0]), int(indptr[-1]))
        rows = signals.T[part]
        blocks.append(CodedBlock(part.start, rows, indptr - indptr[0], support.indices[own], values[own]))
    return blocks


def residual(rows: np.ndarray, block: CodedBlock, values: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """y − Dx of every signal of a block, in rows, where x has these values on the block's support."""
    rest = np.array(rows, order="C")
    reduced.add_products(rest, block.indptr, block.indices, -values, atoms)
    return rest


def _total(function: BlockFunction, blocks: Sequence[CodedBlock], *common: Any) -> Any:
    engine = as_engine()
    return engine.total(BlockMap(function, (engine.open(blocks),), common))[0]
