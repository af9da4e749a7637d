"""What users give as signals, opened: an array in memory, or `BlockedSignals` that an engine has.

`learn_dictionary` and the estimator call `open_signals` once; everything after it takes either. A Dask array
goes to the workers of a cluster, a path is read block by block, an array stays one unless the engine is
remote.
"""

import os
import sys
from typing import Any

import numpy as np

from manifold_dl._missing import WEIGHTS
from manifold_dl._validation import as_matrix, as_observed, as_weights
from manifold_dl._weights import JointWeights
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.blocked_weights import (
    BlockedWeights,
    converted_block,
    not_missing_block,
    observed_block,
)
from manifold_dl.engines.protocol import BlockMap, Engine, partition
from manifold_dl.engines.threads import Threads, as_engine


def open_signals(signals: Any, threads: int | None = None, engine: Engine | None = None) -> Any:
    """The signals as an m×n array in memory, or as `BlockedSignals`.

    Parameters
    ----------
    signals : m×n array, Dask array, or path
    threads : int, optional
        Short for ``engine=Threads(threads)``.
    engine : Engine, optional

    Returns
    -------
    array or BlockedSignals

    Examples
    --------
    >>> open_signals(np.ones((4, 9)), threads=1).shape
    (4, 9)
    """
    opened = _open(signals, threads, engine, finite=True)
    is_new = isinstance(opened, BlockedSignals) and opened is not signals
    return opened.check() if is_new else opened


def open_observed(
    signals: Any, weights: Any, threads: int | None = None, engine: Engine | None = None
) -> tuple[Any, Any]:
    """Signals and their weights, both as arrays in memory, or with an engine.

    Parameters
    ----------
    signals : m×n array, Dask array, or path
    weights : array of length n, m×n array, Dask array, path, or None
        Numbers ≥ 0; signals become zero where they are.
    threads : int, optional
        Short for ``engine=Threads(threads)``.
    engine : Engine, optional

    Returns
    -------
    signals : array or BlockedSignals
    weights : array, BlockedWeights or None
        None if all are 1.

    Examples
    --------
    >>> open_observed([[1.0, np.nan]], [[2.0, 0.0]], threads=1)[0]
    array([[1., 0.]])
    """
    if weights is None or _are_open(signals, weights):
        return open_signals(signals, threads, engine), weights
    Y = _open(signals, threads, engine, finite=False)
    if not isinstance(Y, BlockedSignals):
        Y, W = as_observed(Y, _in_memory(weights))
        if W is not None and not W.any():
            raise ValueError("all weights are zero: there is nothing to learn from.")
        return np.asfortranarray(Y), np.asfortranarray(W) if isinstance(W, np.ndarray) else W
    blocked = _open_weights(weights, Y)
    if blocked is None or blocked.are_ones:
        return Y.check(), None
    items = BlockMap(observed_block, (Y.given, blocked.blocks))
    blocked.observed = BlockedSignals(Y.engine, items, Y.shape, Y.dtype, Y.source, Y.name).check()
    return blocked.observed, blocked


def open_distant(
    signals: Any, weights: Any, threads: int | None = None, engine: Engine | None = None
) -> tuple[Any, Any]:
    """Signals that are no array in memory (of Dask, in files) and their weights; others as they are.

    Parameters
    ----------
    signals : m×n array, Dask array, or path
    weights : array of length n, m×n array, Dask array, path, or None
    threads : int, optional
        Short for ``engine=Threads(threads)``.
    engine : Engine, optional

    Returns
    -------
    signals : array or BlockedSignals
    weights : array, BlockedWeights or None
    """
    if is_distant(signals) or isinstance(signals, BlockedSignals):
        return open_observed(signals, weights, threads, engine)
    return signals, weights


def open_incomplete(signals: Any, engine: Engine) -> tuple[Any, Any]:
    """Signals in which NaN marks missing entries, where an engine has them, and their weights.

    Parameters
    ----------
    signals : Dask array or path
    engine : Engine

    Returns
    -------
    BlockedSignals, BlockedWeights or None
        Weights are 0 for missing entries and 1 for others; None if nothing is missing.
    """
    Y = _open(signals, None, engine, finite=False)
    blocks = BlockMap(not_missing_block, (Y.given,))
    return open_observed(Y, BlockedWeights(Y.engine, blocks, Y.shape, Y.dtype))


def _open(signals: Any, threads: int | None, engine: Engine | None, finite: bool) -> Any:
    """What `open_signals` returns, before signals on an engine are checked."""
    if isinstance(signals, BlockedSignals):
        return signals
    if is_dask_array(signals):
        from manifold_dl.engines.dask_arrays import open_dask_array

        return open_dask_array(signals, threads, engine, finite)
    engine = as_engine(threads, engine)
    if isinstance(signals, str | os.PathLike):
        from manifold_dl.engines.files import open_path

        return open_path(signals, engine, finite)
    if isinstance(signals, np.memmap):
        from manifold_dl.engines.files import open_memmap

        return open_memmap(signals, engine, finite)
    if _is_zarr_array(signals):
        from manifold_dl.engines.files import open_distant_array

        return open_distant_array(signals, engine, finite)
    Y = np.asfortranarray(
        as_matrix(signals, "signals", finite, WEIGHTS)
    )  # once: kernels read every signal in one piece
    return open_array(Y, engine) if engine.is_remote else Y


def _open_weights(weights: Any, signals: BlockedSignals) -> BlockedWeights | None:
    """Weights beside signals that an engine has; None if all are 1."""
    engine, dtype, (m, n) = signals.engine, signals.dtype, signals.shape
    if isinstance(weights, BlockedWeights):
        return weights
    shape = getattr(weights, "shape", (m, n))
    if isinstance(weights, str | os.PathLike | np.memmap) or (is_dask_array(weights) and len(shape) == 2):
        opened = _open(weights, None, engine, finite=False)
        if isinstance(opened, BlockedSignals):
            if opened.shape != (m, n):
                raise ValueError(f"weights has shape {opened.shape}, but the signals have shape {(m, n)}.")
            blocks = BlockMap(converted_block, (opened.given,), (dtype,))
            return BlockedWeights(engine, blocks, (m, n), dtype, opened.source)
        weights = opened
    W = as_weights(_in_memory(weights), m, n, dtype)
    if W is None:
        return None
    if isinstance(W, JointWeights):
        raise ValueError(
            f"sample_weight and missing values together need samples in memory, and {engine!r} has these: "
            "leave one of them out, or `engine`."
        )
    rows = W if W.ndim == 1 else W.T
    blocks = engine.open([np.ascontiguousarray(rows[part]) for part in partition(n)])
    return BlockedWeights(engine, blocks, W.shape, dtype, W)


def _are_open(signals: Any, weights: Any) -> bool:
    """Whether `open_observed` has returned both."""
    return isinstance(weights, BlockedWeights) and weights.observed is signals


def _in_memory(weights: Any) -> Any:
    """Weights as an array: of a file, or computed by Dask."""
    if is_dask_array(weights):
        return weights.compute()
    if isinstance(weights, str | os.PathLike):
        return _open(weights, None, Threads(memory=sys.maxsize), finite=False)
    return weights


def _is_zarr_array(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "zarr"


def open_array(Y: np.ndarray, engine: Engine) -> BlockedSignals:
    """An array in memory, sent to an engine."""
    items = engine.open([np.ascontiguousarray(Y.T[part]) for part in partition(Y.shape[1])])
    return BlockedSignals(engine, items, Y.shape, Y.dtype, source=Y)


def is_distant(array: Any) -> bool:
    """Whether it is an array of Dask or zarr, a memory-mapped one, or the path of one."""
    return is_dask_array(array) or _is_zarr_array(array) or isinstance(array, str | os.PathLike | np.memmap)


def is_dask_array(array: Any) -> bool:
    """Whether it is an array of Dask, without importing Dask."""
    return type(array).__module__.partition(".")[0] == "dask" and hasattr(array, "chunks")
