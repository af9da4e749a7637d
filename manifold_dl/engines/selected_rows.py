"""Some signals, or weights, by their numbers: those of a mini-batch, or random ones to begin with.

On the workers of a cluster a round looks for them in all blocks. Where the blocks are in this process, only
those that hold them are read, and of a file only their rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl.engines.protocol import BlockMap, Engine, partition
from manifold_dl.engines.scratch import MappedBlocks, StoredStates


@dataclass(frozen=True)
class NumberedRows:
    """Some signals with their numbers."""

    numbers: np.ndarray
    rows: np.ndarray

    def __add__(self, other: "NumberedRows") -> "NumberedRows":
        numbers = np.concatenate([self.numbers, other.numbers])
        return NumberedRows(numbers, np.concatenate([self.rows, other.rows]))


def selected_rows(
    engine: Engine, blocks: BlockMap, firsts: BlockMap, numbers: np.ndarray, n_signals: int
) -> np.ndarray:
    """Some rows of the states of `blocks`, in the order of their numbers.

    Parameters
    ----------
    engine : Engine
    blocks : BlockMap
        Its states are arrays with an item for every signal of their block.
    firsts : BlockMap
        Its states are the numbers of the first signals of the blocks.
    numbers : array of int
    n_signals : int
        Of all blocks.

    Returns
    -------
    array

    Examples
    --------
    >>> from manifold_dl.engines import Threads
    >>> engine = Threads(1)
    >>> blocks, firsts = engine.open([np.arange(2048), np.arange(2048, 3000)]), engine.open([0, 2048])
    >>> selected_rows(engine, blocks, firsts, np.array([2999, 0, 2048]), 3000).tolist()
    [2999, 0, 2048]
    """
    if not engine.is_remote and blocks.states is not None:
        return _from_states(blocks.states, numbers, partition(n_signals)[0].stop)
    (found,) = engine.total(BlockMap(take_block, (blocks, firsts), (np.sort(numbers),)))
    return found.rows[np.searchsorted(found.numbers, numbers)]


def take_block(rows: np.ndarray, first: int, numbers: np.ndarray) -> tuple[NumberedRows, None]:
    """Those of the signals `numbers`, in ascending order, that are in one block."""
    own = numbers[(numbers >= first) & (numbers < first + len(rows))]
    return NumberedRows(own, rows[own - first]), None


def _from_states(states: Any, numbers: np.ndarray, size: int) -> np.ndarray:
    """The rows from states in this process, in blocks of `size` signals."""
    order = np.argsort(numbers, kind="stable")
    ascending = numbers[order]
    wanted, begins = np.unique(ascending // size, return_index=True)
    parts = np.split(ascending, begins[1:]) if len(wanted) else []
    rows_of = states.alone if isinstance(states, MappedBlocks | StoredStates) else states.__getitem__
    if isinstance(states, MappedBlocks):
        for block, part in zip(wanted.tolist(), parts, strict=True):
            states.advise(block, part - block * size)
    pieces = [rows_of(block)[part - block * size] for block, part in zip(wanted.tolist(), parts, strict=True)]
    found = np.concatenate(pieces) if pieces else rows_of(0)[:0]
    result = np.empty_like(found)
    result[order] = found
    return result
