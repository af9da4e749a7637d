"""Dask arrays as signals.

An m×n Dask array is cut into the blocks of `partition(n)`. Each block carries its own small task graph, so
that any worker can compute it again at any time. Chunks that a user has persisted are taken from the workers
that have them.
"""

import warnings
from typing import Any

import dask
import numpy as np
import scipy.sparse

from manifold_dl._missing import WEIGHTS
from manifold_dl._validation import require_unmasked
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.dask import Dask, as_client
from manifold_dl.engines.files import open_distant_array
from manifold_dl.engines.protocol import Engine, partition
from manifold_dl.engines.threads import Threads, as_engine
from manifold_dl.engines.worker import Lazy


class GraphBlock(Lazy):
    """A block of signals as a task graph, computed on the thread of the worker."""

    def __init__(self, graph: dict[Any, Any], key: Any, shape: tuple[int, int], dtype: np.dtype) -> None:
        self.graph, self.key, self.shape, self.dtype = graph, key, shape, dtype

    def load(self) -> np.ndarray:
        """The signals, in rows."""
        return as_rows(dask.get(self.graph, self.key), self.shape, self.dtype)


def as_rows(columns: Any, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Signals in columns as contiguous rows of their own memory; they have to be of the shape announced."""
    if columns.shape != shape:
        raise ValueError(
            f"a block of the Dask array has shape {columns.shape}, but its chunks say {shape}: the function "
            "that makes them returns others than it announced."
        )
    return np.array(dense(columns).T, dtype=dtype, order="C")


def float_type(dtype: Any) -> np.dtype:
    """The type that signals of some type are computed in: float32 stays, all others become float64."""
    return np.dtype(np.float32) if dtype == np.float32 else np.dtype(np.float64)


def dense(columns: Any) -> np.ndarray:
    """A chunk as an array; it may be sparse."""
    require_unmasked(columns, "signals", WEIGHTS)
    return columns.toarray() if scipy.sparse.issparse(columns) else np.asarray(columns)


def open_dask_array(signals: Any, threads: int | None, engine: Engine | None, finite: bool = True) -> Any:
    """An m×n Dask array on an engine: that of the client, or threads of this process.

    Parameters
    ----------
    signals : dask.array.Array
        Chunked along the signals (axis 1); otherwise it is rechunked, with a warning.
    threads : int, optional
    engine : Engine, optional
    finite : bool
        Whether NaN is refused in an array that is small.

    Returns
    -------
    BlockedSignals, or an m×n array if it is small and there is no cluster
    """
    if engine is None and threads is None and not _has_client():
        engine = Threads()
    engine = Dask() if engine is None and threads is None else as_engine(threads, engine)
    if np.isnan(signals.shape).any():
        raise ValueError(
            f"signals has shape {signals.shape}: the sizes of its chunks are unknown. Call "
            "`compute_chunk_sizes()` on the array first."
        )
    if signals.ndim != 2 or 0 in signals.shape:
        raise ValueError(f"signals has shape {signals.shape}; an m×n matrix is needed.")
    if signals.dtype.kind not in "fiub":
        raise TypeError(f"signals has dtype {signals.dtype}; only real numbers are accepted.")
    if isinstance(engine, Threads):  # NumPy would take masked chunks for data
        columns = signals.map_blocks(dense, dtype=signals.dtype, meta=np.zeros((0, 0), signals.dtype))
        return open_distant_array(columns, engine, finite)
    if signals.numblocks[0] > 1:
        warnings.warn(
            f"signals has {signals.numblocks[0]} chunks along its {signals.shape[0]} rows: it is rechunked "
            "so that every signal is in one chunk.",
            stacklevel=3,
        )
    dtype = float_type(signals.dtype)
    items = engine.open(_blocks(signals, dtype, engine))
    return BlockedSignals(engine, items, signals.shape, dtype, source=signals)


def _blocks(signals: Any, dtype: np.dtype, engine: Any) -> list[Any]:
    """The blocks of the array, each to be computed on its own."""
    from distributed import Future

    m, n = signals.shape
    sizes = tuple(part.stop - part.start for part in partition(n))
    array = signals.rechunk(((m,), sizes))
    futures = [value for value in _leaves(dict(signals.__dask_graph__())) if isinstance(value, Future)]
    if futures:
        client, rows = as_client(engine.client), dask.delayed(as_rows)
        _require_client(futures, client)
        chunks = zip(array.to_delayed()[0], sizes, strict=True)
        return client.compute([rows(chunk, (m, size), dtype) for chunk, size in chunks])
    (array,) = dask.optimize(array)
    graph = dict(array.__dask_graph__())
    keys = [(array.name, 0, number) for number in range(len(sizes))]
    dependencies = {key: _references(value, graph) for key, value in graph.items()}
    return [
        GraphBlock(_culled(graph, dependencies, key), key, (m, size), dtype)
        for key, size in zip(keys, sizes, strict=True)
    ]


def _culled(graph: dict, dependencies: dict, key: Any) -> dict:
    """The part of a graph that one key needs."""
    needed: dict[Any, Any] = {}
    waiting = [key]
    while waiting:
        one = waiting.pop()
        if one not in needed:
            needed[one] = graph[one]
            waiting.extend(dependencies[one])
    return needed


def _references(value: Any, graph: dict) -> list[Any]:
    """The keys that a task of a graph reads."""
    if hasattr(value, "dependencies"):
        return [key for key in value.dependencies if key in graph]
    from dask.core import keys_in_tasks

    return list(keys_in_tasks(graph, [value]))


def _leaves(graph: dict) -> list[Any]:
    """Values of a graph that are no tasks."""
    return [getattr(value, "value", value) for value in graph.values()]


def _require_client(futures: list[Any], client: Any) -> None:
    """Refuse chunks on the workers of another cluster, which those of this one do not know."""
    for owner in {future.client for future in futures}:
        if owner.scheduler.address != client.scheduler.address:
            raise ValueError(
                f"signals were persisted on the cluster {owner.scheduler.address}, but the engine has "
                f"{client.scheduler.address}: persist them there, or give an array that is not persisted."
            )


def _has_client() -> bool:
    try:
        as_client(None)
    except (ImportError, ValueError):
        return False
    return True
