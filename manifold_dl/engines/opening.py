"""What users give as signals, opened: an array in memory, or `BlockedSignals` that an engine has.

`learn_dictionary` and the estimator call `open_signals` once; everything after it takes either. A Dask array
goes to the workers of a cluster, a path is read block by block, an array stays one unless the engine is
remote.
"""

import os
from typing import Any

import numpy as np

from manifold_dl._validation import as_matrix
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.protocol import Engine, partition
from manifold_dl.engines.threads import as_engine


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
    if isinstance(signals, BlockedSignals):
        return signals
    if is_dask_array(signals):
        from manifold_dl.engines.dask_arrays import open_dask_array

        return open_dask_array(signals, threads, engine)
    engine = as_engine(threads, engine)
    if isinstance(signals, str | os.PathLike):
        from manifold_dl.engines.files import open_path

        return open_path(signals, engine)
    if isinstance(signals, np.memmap):
        from manifold_dl.engines.files import open_memmap

        return open_memmap(signals, engine)
    if type(signals).__module__.partition(".")[0] == "zarr":
        from manifold_dl.engines.files import open_distant_array

        return open_distant_array(signals, engine)
    Y = np.asfortranarray(as_matrix(signals, "signals"))  # once: kernels read every signal in one piece
    return open_array(Y, engine) if engine.is_remote else Y


def open_array(Y: np.ndarray, engine: Engine) -> BlockedSignals:
    """An array in memory, sent to an engine."""
    items = engine.open([np.ascontiguousarray(Y.T[part]) for part in partition(Y.shape[1])])
    return BlockedSignals(engine, items, Y.shape, Y.dtype, source=Y)


def is_dask_array(array: Any) -> bool:
    """Whether it is an array of Dask, without importing Dask."""
    return type(array).__module__.partition(".")[0] == "dask" and hasattr(array, "chunks")
