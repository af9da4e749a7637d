"""Sums over the signals: the error ‖Y − DX‖², the explained fraction, the energies of codes.

Each is a function of one block of signals, ``..._block``, run by an engine that adds the partial results over
a fixed tree of the blocks: no copy of all signals is made, and the number of threads changes no bit. The
learning loop, `minibatch.py`, `replacement.py` and the estimator call them.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from manifold_dl._validation import warn_once
from manifold_dl.engines import BlockMap, Engine, Threads
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals, CodesBlock
from manifold_dl.engines.protocol import BlockFunction
from manifold_dl.engines.sources import as_signals
from manifold_dl.engines.units import as_units, divide, times_square
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.problem.signals import blocks_of, values_of
from manifold_dl.problem.support import Support, as_support


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
    def of(cls, signals: Any) -> "LossScale":
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


def squared_error(
    signals: Any,
    dictionary: np.ndarray,
    codes: Any,
    exponent: int = 0,
    engine: Engine = Threads(),  # noqa: B008 - frozen
) -> float:
    """‖Y − DX‖², from the residual.

    Parameters
    ----------
    signals, dictionary, codes : m×n, m×d and sparse d×n arrays, or `BlockedSignals` and `BlockedCodes`
    exponent : int
        The sum is in units of 4^exponent (`units.unit_exponent` returns one that is safe).
    engine : Engine
        What runs the function of a block.

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
        return _blocked_error(signals, atoms, codes, exponent)
    blocks = coded_blocks(signals, codes, dictionary.shape[1], engine)
    (error,) = engine.total(BlockMap(squared_error_block, blocks, (atoms, exponent)))
    return error


def _blocked_error(signals: BlockedSignals, atoms: np.ndarray, codes: BlockedCodes, exponent: int) -> float:
    """‖Y − DX‖², in one round with the usage and the energies of the codes, which are asked for next."""
    error = coded_map(squared_error_block, signals, codes, (atoms, exponent))
    energies = BlockMap(energies_of_codes_block, (codes.blocks,), (exponent, len(atoms)))
    squares, codes.usage, codes.energies[exponent] = codes.engine.total(error, codes.usage_map(), energies)
    return squares


def squared_error_block(
    block: Block, codes: np.ndarray, atoms: np.ndarray, exponent: int
) -> tuple[float, None]:
    """‖Y − DX‖² of one block, summed in double precision."""
    rows = divide(block.signals, exponent)
    rest = residual(rows, block, as_units(codes.astype(rows.dtype), exponent), atoms)
    return float(np.einsum("nm,nm->", rest, rest, dtype=float)), None


def explained_fraction(
    signals: Any,
    dictionary: np.ndarray,
    codes: Any,
    engine: Engine = Threads(),  # noqa: B008 - frozen
) -> float:
    """1 − ‖Y − DX‖²/‖Y‖², from the residual and in double precision; 1 for signals of zero.

    Parameters
    ----------
    signals, dictionary, codes : m×n, m×d and sparse d×n arrays, or `BlockedSignals` and `BlockedCodes`
    engine : Engine
        What runs the function of a block.

    Returns
    -------
    float

    Examples
    --------
    >>> Y, X = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[3.0, 0.0], [0.0, 0.0]])
    >>> explained_fraction(Y, np.eye(2), X)
    0.9
    """
    atoms = np.ascontiguousarray(dictionary.T, dtype=float)
    if isinstance(codes, BlockedCodes):
        engine, largest = codes.engine, signals.largest
    else:
        largest = max(float(signals.max()), -float(signals.min()))
    if largest == 0:
        return 1.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of two: no square vanishes or overflows
    if isinstance(codes, BlockedCodes):
        sums = coded_map(energy_and_error_block, signals, codes, (atoms, unit))
    else:
        blocks = coded_blocks(signals, codes, dictionary.shape[1], engine)
        sums = BlockMap(energy_and_error_block, blocks, (atoms, unit))
    ((energy, error),) = engine.total(sums)
    return 1 - error / energy


def energy_and_error_block(
    block: Block, codes: np.ndarray, atoms: np.ndarray, unit: float
) -> tuple[tuple[float, float], None]:
    """‖Y‖² and ‖Y − DX‖² of one block, in units of unit²."""
    rows = np.array(block.signals, dtype=float, order="C") / unit
    rest = residual(rows, block, codes.astype(float) / unit, atoms)
    # Not by BLAS: its order of summation depends on the number of its threads, which differs among processes.
    return (float(np.einsum("nm,nm->", rows, rows)), float(np.einsum("nm,nm->", rest, rest))), None


def code_energies(codes: Any, exponent: int, engine: Engine = Threads()) -> np.ndarray:  # noqa: B008 - frozen
    """‖X_i‖² of every atom.

    Parameters
    ----------
    codes : csc_array, d×n
    exponent : int
        The energies are in units of 4^exponent.
    engine : Engine
        What runs the function of a block.

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
    if isinstance(codes, BlockedCodes):
        if exponent not in codes.energies:
            energies = BlockMap(energies_of_codes_block, (codes.blocks,), (exponent, n_atoms))
            (codes.energies[exponent],) = codes.engine.total(energies)
        return codes.energies[exponent]
    support = Support(codes.indptr, codes.indices, n_atoms, codes.data)
    indices = engine.open(values_of(support.indices, support))
    values = engine.open(values_of(codes.data, support))
    (energies,) = engine.total(BlockMap(code_energies_block, (indices, values), (exponent, n_atoms)))
    return energies


def code_energies_block(
    indices: np.ndarray, values: np.ndarray, exponent: int, n_atoms: int
) -> tuple[np.ndarray, None]:
    """‖X_i‖² of every atom over the signals of one block."""
    squares = divide(values, exponent).astype(float) ** 2
    return np.bincount(indices, weights=squares, minlength=n_atoms), None


def energies_of_codes_block(codes: CodesBlock, exponent: int, n_atoms: int) -> tuple[np.ndarray, None]:
    """The same for codes that an engine has."""
    return code_energies_block(codes.indices, codes.values, exponent, n_atoms)


def coded_map(
    function: BlockFunction, signals: Any, codes: BlockedCodes, common: tuple[Any, ...]
) -> BlockMap:
    """A function of signals with supports, codes and `common`, on signals and codes that an engine has."""
    return BlockMap(on_codes_block, (signals.given, codes.blocks), (function, common))


def on_codes_block(
    rows: np.ndarray, codes: CodesBlock, function: BlockFunction, common: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Call a function of a `Block` and its codes."""
    return function(Block(rows, codes.indptr, codes.indices, None), codes.values, *common)


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
