"""Weights of signals that an engine has: one per signal, or one per entry, beside the blocks of signals.

`opening.open_observed` makes `BlockedWeights` of an array, a Dask array or files, together with the signals,
which are zero where the weights are. Functions of a block take the weights of that block: an array with a
number, or a row of numbers, for every signal.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl._validation import LARGEST_WEIGHT
from manifold_dl.engines.protocol import BlockMap, Engine, partition
from manifold_dl.engines.selected_rows import selected_rows


@dataclass(frozen=True)
class WeightRange:
    """The smallest and the largest of some weights, and their sum."""

    smallest: float
    largest: float
    total: float

    def __add__(self, other: "WeightRange") -> "WeightRange":
        smallest, largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        return WeightRange(smallest, largest, self.total + other.total)


class BlockedWeights:
    """Weights in blocks on an engine, in the place of an array of length n or m×n.

    Parameters
    ----------
    engine : Engine
    blocks : BlockMap
        Its states are the weights of the blocks of `partition(n)`: one per signal, or a row per signal.
    shape : (n,) or (m, n)
    dtype : dtype
        That of the signals.
    source : object
        Where they come from.
    """

    def __init__(
        self, engine: Engine, blocks: BlockMap, shape: tuple[int, ...], dtype: Any, source: Any = None
    ) -> None:
        self.engine, self.blocks, self.shape, self.source = engine, blocks, shape, source
        self.dtype = np.dtype(dtype)
        self.ndim = len(shape)
        self.firsts = engine.open([part.start for part in partition(shape[-1])])
        self.observed: Any = None  # the signals that they belong to, zero where these are
        self.signals: dict[Any, Any] = {}  # what is known of signals with these weights (`weights.py`)
        (self._range,) = engine.total(BlockMap(range_block, (self.blocks,)))
        _require_range(self._range, dtype)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return self._range.total

    @property
    def largest(self) -> float:
        """The largest weight."""
        return self._range.largest

    @property
    def are_ones(self) -> bool:
        """Whether all of them are 1."""
        return self._range.smallest == self._range.largest == 1

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """The weights of some signals, in the order of their numbers.

        Parameters
        ----------
        numbers : array of int

        Returns
        -------
        array
            A number, or a row of them, for every signal.
        """
        return selected_rows(self.engine, self.blocks, self.firsts, numbers, self.shape[-1])

    def rows(self, part: slice) -> np.ndarray:
        """The weights of some neighbouring signals: a number, or a row of them, for every signal.

        Parameters
        ----------
        part : slice

        Returns
        -------
        array
        """
        if isinstance(self.source, np.ndarray):
            return self.source[part] if self.ndim == 1 else self.source.T[part]
        if hasattr(self.source, "rows"):  # files
            return self.source.rows(part).astype(self.dtype, copy=False)
        return self.take(np.arange(part.start, part.stop))


def _require_range(found: WeightRange, dtype: Any) -> None:
    """Refuse weights that are no weights, and those of which sums of weighted squares are no numbers."""
    if not (found.smallest >= 0 and math.isfinite(found.largest)):
        wrong = found.largest if found.smallest >= 0 else found.smallest
        raise ValueError(f"weights holds {wrong}: a weight is finite and not negative.")
    if found.largest == 0:
        raise ValueError("all weights are zero: there is nothing to learn from.")
    limit = LARGEST_WEIGHT[np.dtype(dtype)]
    if not 1 / limit <= found.largest <= limit:
        raise ValueError(
            f"the largest weight is {found.largest:.1e}: divide all weights by it, so that sums of weighted "
            "squares stay within the range of numbers."
        )


def range_block(weights: np.ndarray) -> tuple[WeightRange, None]:
    """The smallest and the largest weight of one block, and the sum; NaN counts as −∞, which is refused."""
    smallest = float(weights.min())
    smallest = -math.inf if math.isnan(smallest) else smallest
    return WeightRange(smallest, float(weights.max()), float(weights.sum(dtype=float))), None


def observed_block(rows: np.ndarray, weights: np.ndarray) -> tuple[None, np.ndarray]:
    """The signals of one block, zero where their weights are: there they may have been anything."""
    missing = np.broadcast_to((weights if weights.ndim == 2 else weights[:, None]) == 0, rows.shape)
    if not np.any(rows, where=missing):
        return None, rows
    rows = rows.copy()
    np.copyto(rows, 0, where=missing)
    return None, rows


def converted_block(weights: np.ndarray, dtype: np.dtype) -> tuple[None, np.ndarray]:
    """The weights of one block in the type of the signals."""
    return None, weights.astype(dtype, copy=False)


def not_missing_block(rows: np.ndarray) -> tuple[None, np.ndarray]:
    """1 for every entry of one block, 0 for those that are NaN."""
    return None, (~np.isnan(rows)).astype(rows.dtype)


def rooted_block(rows: np.ndarray, weights: np.ndarray) -> tuple[None, np.ndarray]:
    """The signals of one block, each times the root of its weight."""
    return None, rows * np.sqrt(weights)[:, None]


def root_block(weights: np.ndarray) -> tuple[None, np.ndarray]:
    """The roots of the weights of one block."""
    return None, np.sqrt(weights)
