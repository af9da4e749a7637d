"""Signals and codes that are no arrays in this process: an engine has them, block by block.

`learn_dictionary` makes `BlockedSignals` of a Dask array or of files. Coders, update rules and sums over
signals take them in the place of an m×n array, and `BlockedCodes` in the place of sparse d×n codes. Only what
is asked for (the codes at the end, a few signals to start with) is ever brought together.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._missing import WEIGHTS, not_finite
from manifold_dl._validation import warn_once
from manifold_dl.engines.protocol import BlockMap, Engine, partition
from manifold_dl.engines.selected_rows import selected_rows
from manifold_dl.engines.units import ORDINARY, divide, exponent_of


class CodesBlock(NamedTuple):
    """The codes of a block of signals: signal j has values[indptr[j]:indptr[j + 1]] on atoms `indices`."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    values: np.ndarray


@dataclass(frozen=True)
class BlockStatistics:
    """What is known of some signals after one look at them."""

    energy: float
    largest: float  # |y|, over all entries
    n_bad: int = 0  # entries that are not finite
    first_bad: tuple[int, int, float] | None = None  # signal, entry and value of the first of them

    def __add__(self, other: "BlockStatistics") -> "BlockStatistics":
        energy, largest = self.energy + other.energy, max(self.largest, other.largest)
        return BlockStatistics(energy, largest, self.n_bad + other.n_bad, self.first_bad or other.first_bad)


@dataclass(frozen=True)
class Dominance:
    """The signal with the largest energy, against all others."""

    energy: float
    number: int
    others: float  # the energy of all others
    are_others: bool  # whether any of them is not zero

    def __add__(self, other: "Dominance") -> "Dominance":
        high, low = (self, other) if self.energy >= other.energy else (other, self)
        are_others = high.are_others or low.are_others or low.energy > 0
        return Dominance(high.energy, high.number, high.others + low.others + low.energy, are_others)


class BlockedSignals:
    """Signals in blocks on an engine, in the place of an m×n array.

    Parameters
    ----------
    engine : Engine
    items : BlockMap
        Its states are the signals of the blocks of `partition(n)`, a signal in every contiguous row.
    shape : (m, n)
    dtype : dtype
        float32 or float64.
    source : object
        Where they come from: it makes lazy codes of them (`lazy_codes`).
    name : str
        What messages call the signals.
    """

    ndim = 2

    def __init__(
        self,
        engine: Engine,
        items: BlockMap,
        shape: tuple[int, int],
        dtype: Any,
        source: Any = None,
        name: str = "signals",
    ) -> None:
        self.engine, self.shape, self.dtype, self.source = engine, shape, np.dtype(dtype), source
        self.given = items  # in the units of the data
        parts = partition(shape[1])
        self.firsts = engine.open([part.start for part in parts])
        self.name = name
        self.energy, self.largest, self.exponent = 0.0, 0.0, 0  # before `check`
        self.rows = items

    def check(self) -> "BlockedSignals":
        """Look at all signals once: refuse what is not finite, choose their units, compute their energy.

        Returns
        -------
        self
        """
        engine = self.engine
        self.energy, self.largest, self.exponent = self._measure(self.name)
        if self.exponent:
            self.rows = BlockMap(divided_block, (self.given,), (self.exponent,))
            ((self.energy, dominance),) = engine.total(BlockMap(dominance_block, (self.rows, self.firsts)))
            if dominance.are_others and dominance.others <= np.finfo(float).eps * dominance.energy:
                warn_once(
                    f"the squares of all other signals vanish against those of signal {dominance.number}: "
                    "the dictionary is fitted to that signal alone. Remove it, or divide each signal by "
                    "its norm.",
                    "one signal outweighs all others",
                )
        return self

    def _measure(self, name: str) -> tuple[float, float, int]:
        """‖Y‖², max |y| and the exponent of the units in which no square overflows or vanishes."""
        (found,) = self.engine.total(BlockMap(statistics_block, (self.given, self.firsts)))
        if found.first_bad is not None:
            signal, entry, value = found.first_bad
            raise not_finite(name, value, f"in signal {signal}, entry {entry}", found.n_bad, WEIGHTS)
        safe = 2.0 ** (2 * ORDINARY[self.dtype])
        if math.isfinite(found.energy) and 1 / safe <= found.energy <= safe:
            return found.energy, found.largest, 0
        return found.energy, found.largest, exponent_of(found.largest, self.dtype, name)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return len(partition(self.shape[1]))

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """Some signals, in rows, in the order of their numbers.

        Parameters
        ----------
        numbers : array of int

        Returns
        -------
        array, a signal in every row
        """
        return selected_rows(self.engine, self.given, self.firsts, numbers, self.shape[1])


class BlockedCodes:
    """Sparse codes in blocks on an engine, in the place of a sparse d×n array.

    Parameters
    ----------
    engine : Engine
    blocks : BlockMap
        Its states are `CodesBlock`s.
    shape : (d, n)
    dtype : dtype
    """

    ndim = 2

    def __init__(self, engine: Engine, blocks: BlockMap, shape: tuple[int, int], dtype: Any) -> None:
        self.engine, self.blocks, self.shape, self.dtype = engine, blocks, shape, np.dtype(dtype)
        # What is known of them: ‖X_i‖² by the exponent of their unit and the weights, usage by the weights.
        self.energies: dict[tuple[int, Any], np.ndarray] = {}
        self.usages: dict[Any, CodeUsage] = {}

    @property
    def n_atoms(self) -> int:
        """d."""
        return self.shape[0]

    @property
    def n_signals(self) -> int:
        """n."""
        return self.shape[1]

    def usage(self, weights: Any = None) -> "CodeUsage":
        """How many signals use each atom, and the size of the largest support: one round.

        Parameters
        ----------
        weights : BlockedWeights, optional
            A signal without weight uses nothing, one of weight w counts w times (`repetitions`).

        Returns
        -------
        CodeUsage
        """
        if weights not in self.usages:
            (self.usages[weights],) = self.engine.total(self.usage_map(weights))
        return self.usages[weights]

    def usage_map(self, weights: Any = None) -> BlockMap:
        """The map of `usage`, to be run together with others."""
        if weights is None:
            return BlockMap(usage_block, (self.blocks,), (self.shape[0],))
        return BlockMap(weighted_usage_block, (self.blocks, weights.blocks), (self.shape[0],))

    def compute(self) -> scipy.sparse.csc_array:
        """All codes as one sparse array in this process.

        Returns
        -------
        csc_array
        """
        return joined_codes(self.engine.states(self.blocks), self.shape)


def joined_codes(blocks: list[CodesBlock], shape: tuple[int, int]) -> scipy.sparse.csc_array:
    """The codes of all blocks as one sparse d×n array."""
    sizes = np.concatenate([[0], *(np.diff(block.indptr) for block in blocks)])
    values, indices = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("values", "indices"))
    return scipy.sparse.csc_array((values, indices, np.cumsum(sizes, dtype=np.int64)), shape=shape)


@dataclass(frozen=True)
class CodeUsage:
    """How codes use the atoms."""

    stored: np.ndarray  # signals that have each atom in their support
    nonzero: np.ndarray  # signals with a code other than zero on it
    largest: int  # the size of the largest support
    n_pairs: int  # Σ|Ω_j|², the pairs of atoms that occur together in a support, with repetitions

    def __add__(self, other: "CodeUsage") -> "CodeUsage":
        stored, nonzero = self.stored + other.stored, self.nonzero + other.nonzero
        return CodeUsage(stored, nonzero, max(self.largest, other.largest), self.n_pairs + other.n_pairs)


def usage_block(codes: CodesBlock, n_atoms: int) -> tuple[CodeUsage, None]:
    """How the codes of one block use the atoms."""
    stored = np.bincount(codes.indices, minlength=n_atoms)
    nonzero = np.bincount(codes.indices[codes.values != 0], minlength=n_atoms)
    sizes = np.diff(codes.indptr)
    return CodeUsage(stored, nonzero, int(sizes.max(initial=0)), int(sizes @ sizes)), None


def weighted_usage_block(codes: CodesBlock, weights: np.ndarray, n_atoms: int) -> tuple[CodeUsage, None]:
    """The same where every signal counts as its weight says."""
    usage, _ = usage_block(codes, n_atoms)
    by_signal = weights if weights.ndim == 1 else weights.max(axis=1) > 0
    times = np.repeat(repetitions(by_signal), np.diff(codes.indptr))
    nonzero = np.bincount(codes.indices, weights=times * (codes.values != 0), minlength=n_atoms)
    return replace(usage, nonzero=nonzero), None


def repetitions(weights: np.ndarray) -> np.ndarray:
    """As how many signals each signal of these weights (n) counts: as none without weight, else at least one.

    Whole numbers: their sums do not depend on the order.
    """
    return np.where(weights > 0, np.clip(np.rint(weights.astype(float)), 1, 2**31), 0).astype(np.int64)


def statistics_block(rows: np.ndarray, first: int) -> tuple[BlockStatistics, None]:
    """Energy, largest entry and the first entry that is not finite, of one block."""
    with np.errstate(over="ignore", invalid="ignore"):
        energy = float(np.einsum("ij,ij->", rows, rows, dtype=float))
        largest = max(float(rows.max()), -float(rows.min()))
    if math.isfinite(energy) or not len(wrong := np.argwhere(~np.isfinite(rows))):
        return BlockStatistics(energy, largest), None
    j, i = (int(number) for number in wrong[0])
    return BlockStatistics(energy, largest, len(wrong), (first + j, i, float(rows[j, i]))), None


def divided_block(rows: np.ndarray, exponent: int) -> tuple[None, np.ndarray]:
    """The signals of one block in units of 2^exponent."""
    return None, divide(rows, exponent)


def dominance_block(rows: np.ndarray, first: int) -> tuple[tuple[float, Dominance], None]:
    """‖Y‖² of one block, and its largest signal against the others."""
    energies = np.einsum("nm,nm->n", rows, rows, dtype=float)
    j = int(energies.argmax())
    others = float(np.delete(energies, j).sum())
    energy = float(np.einsum("ij,ij->", rows, rows, dtype=float))
    are_others = bool(np.delete(rows, j, axis=0).any())
    return (energy, Dominance(float(energies[j]), first + j, others, are_others)), None
