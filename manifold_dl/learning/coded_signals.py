"""Signals with their codes and weights, block by block: what sums over signals read.

All may be arrays in memory, or with an engine (`BlockedSignals`, `BlockedCodes`, `BlockedWeights`).
`signal_sums.py` and `replacement.py` build their functions of a block on it.
"""

from typing import Any

import numpy as np

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.blocked import BlockedCodes, CodesBlock
from manifold_dl.engines.blocked_weights import BlockedWeights
from manifold_dl.engines.protocol import BlockFunction, partition
from manifold_dl.kernels.reduced import Block
from manifold_dl.problem.signals import blocks_of, values_of
from manifold_dl.problem.support import as_support


def coded_map(
    function: BlockFunction,
    signals: Any,
    codes: Any,
    weights: Any,
    common: tuple[Any, ...],
    engine: Engine,
    beside: tuple[BlockMap, ...] = (),
) -> BlockMap:
    """A function of signals with supports, codes, weights, states `beside` them and `common`.

    Parameters
    ----------
    function : callable
        ``function(block, codes, weights, *beside, *common)``.
    signals, codes : m×n and sparse d×n arrays, or `BlockedSignals` and `BlockedCodes`
    weights : array of length n, m×n array, BlockedWeights or None
    common : tuple
        Its first item is the atoms, in rows.
    engine : Engine
    beside : tuple of BlockMap

    Returns
    -------
    BlockMap
    """
    own = weight_blocks(weights, signals.shape[1], engine)
    if isinstance(codes, BlockedCodes):  # no state between them, which would be kept, or stored
        return BlockMap(on_codes_block, (signals.given, codes.blocks, own, *beside), (function, common))
    return BlockMap(function, (*coded_blocks(signals, codes, len(common[0]), engine), own, *beside), common)


def on_codes_block(
    rows: np.ndarray, codes: CodesBlock, weights: np.ndarray | None, *others: Any
) -> tuple[Any, Any]:
    """Call a function of a `Block` and its codes on signals and codes that an engine has."""
    *beside, function, common = others
    block = Block(rows, codes.indptr, codes.indices, None)
    return function(block, codes.values, weights, *beside, *common)


def coded_blocks(signals: np.ndarray, codes: Any, n_atoms: int, engine: Engine) -> tuple[BlockMap, BlockMap]:
    """The signals (m×n) with their supports, and their codes, which are zero where a support was given."""
    if np.dtype(getattr(codes, "dtype", float)).kind in "iu":  # numbers, not the indices of a support
        codes = codes.astype(float)
    support = as_support(codes, signals.shape[1], n_atoms)
    values = np.zeros(len(support.indices)) if support.values is None else support.values
    return engine.open(blocks_of(signals.T, support)), engine.open(values_of(values, support))


def weight_blocks(weights: Any, n_signals: int, engine: Engine) -> BlockMap:
    """The weights beside the blocks of signals: None, one per signal, or one per entry in rows."""
    if isinstance(weights, BlockedWeights):
        return weights.blocks
    parts = partition(n_signals)
    if weights is None:
        return engine.open([None] * len(parts))
    rows = weights if weights.ndim == 1 else weights.T  # of `JointWeights` the products
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
