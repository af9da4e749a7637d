"""Dask arrays as signals, and codes that stay Dask arrays.

An m×n Dask array is cut into the blocks of `partition(n)`. Each block carries its own small task graph, so
that any worker can compute it again at any time. Chunks that a user has persisted are taken from the workers
that have them.
"""

import warnings
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse

from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.dask import Dask, as_client
from manifold_dl.engines.files import open_distant_array
from manifold_dl.engines.protocol import Engine, partition
from manifold_dl.engines.threads import Threads, as_engine
from manifold_dl.engines.worker import Lazy


class GraphBlock(Lazy):
    """A block of signals as a task graph, computed on the thread of the worker."""

    def __init__(self, graph: dict[Any, Any], key: Any, dtype: np.dtype) -> None:
        self.graph, self.key, self.dtype = graph, key, dtype

    def load(self) -> np.ndarray:
        """The signals, in rows."""
        return as_rows(dask.get(self.graph, self.key), self.dtype)


def as_rows(columns: Any, dtype: np.dtype) -> np.ndarray:
    """Signals in columns as contiguous rows of their own memory."""
    return np.array(np.asarray(columns).T, dtype=dtype, order="C")


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
    if signals.ndim != 2 or 0 in signals.shape or np.isnan(signals.shape).any():
        raise ValueError(f"signals has shape {signals.shape}; an m×n matrix of known size is needed.")
    if signals.dtype.kind not in "fiub":
        raise TypeError(f"signals has dtype {signals.dtype}; only real numbers are accepted.")
    if isinstance(engine, Threads):
        return open_distant_array(signals, engine, finite)
    if signals.numblocks[0] > 1:
        warnings.warn(
            f"signals has {signals.numblocks[0]} chunks along its {signals.shape[0]} rows: it is rechunked "
            "so that every signal is in one chunk.",
            stacklevel=3,
        )
    dtype = signals.dtype if signals.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    items = engine.open(_blocks(signals, dtype, engine))
    return BlockedSignals(engine, items, signals.shape, dtype, source=signals)


def encoded(signals: Any, encode: Callable[..., Any], n_atoms: int, weights: Any = None) -> Any:
    """The d×n codes of an m×n Dask array, as a lazy Dask array with sparse chunks.

    Parameters
    ----------
    signals : dask.array.Array
    encode : callable
        From some signals, in columns, and their weights to a sparse array of their codes.
    n_atoms : int
    weights : array of length n, m×n array or m×n Dask array, optional

    Returns
    -------
    dask.array.Array
        Its `compute()` is a csc_array.
    """
    # The blocks of the learning: in single precision the last bit of a code depends on where its block ends.
    sizes = tuple(part.stop - part.start for part in partition(signals.shape[1]))
    signals = signals.rechunk(((len(signals),), sizes))
    dtype = signals.dtype if signals.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    arrays, chunks = [signals], ((n_atoms,), signals.chunks[1])
    if weights is not None:
        matrix = weights if weights.ndim == 2 else weights[None, :]
        arrays.append(da.asarray(matrix).astype(dtype).rechunk(((len(matrix),), signals.chunks[1])))
    return da.map_blocks(
        _encode_chunk,
        *arrays,
        encode=encode,
        per_signal=weights is not None and weights.ndim == 1,
        dtype=dtype,
        chunks=chunks,
        meta=scipy.sparse.csc_array((0, 0), dtype=dtype),
    )


def encoded_rows(samples: Any, encode: Callable[[np.ndarray], Any], n_atoms: int) -> Any:
    """The n×d codes of an n×m Dask array of samples, as a lazy Dask array with dense chunks.

    Parameters
    ----------
    samples : dask.array.Array
    encode : callable
        From some signals, in columns, to a sparse array of their codes.
    n_atoms : int

    Returns
    -------
    dask.array.Array
    """
    samples = samples.rechunk({1: -1})
    dtype = samples.dtype if samples.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    chunks, meta = (samples.chunks[0], (n_atoms,)), np.zeros((0, 0), dtype)
    return samples.map_blocks(_encode_rows, encode, dtype=dtype, chunks=chunks, meta=meta)


def _encode_rows(rows: np.ndarray, encode: Callable[[np.ndarray], Any]) -> np.ndarray:
    return np.ascontiguousarray(encode(np.asarray(rows).T).toarray().T)


def _encode_chunk(
    columns: np.ndarray, weights: Any = None, *, encode: Callable[..., Any], per_signal: bool
) -> Any:
    if weights is None:
        return encode(np.asarray(columns))
    return encode(np.asarray(columns), np.asarray(weights)[0] if per_signal else np.asarray(weights))


def _blocks(signals: Any, dtype: np.dtype, engine: Any) -> list[Any]:
    """The blocks of the array, each to be computed on its own."""
    from distributed import Future

    m, n = signals.shape
    sizes = tuple(part.stop - part.start for part in partition(n))
    array = signals.rechunk(((m,), sizes))
    if any(isinstance(value, Future) for value in _leaves(dict(signals.__dask_graph__()))):
        rows = dask.delayed(as_rows)
        return as_client(engine.client).compute([rows(chunk, dtype) for chunk in array.to_delayed()[0]])
    (array,) = dask.optimize(array)
    graph = dict(array.__dask_graph__())
    keys = [(array.name, 0, number) for number in range(len(sizes))]
    dependencies = {key: _references(value, graph) for key, value in graph.items()}
    return [GraphBlock(_culled(graph, dependencies, key), key, dtype) for key in keys]


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


def _has_client() -> bool:
    try:
        as_client(None)
    except (ImportError, ValueError):
        return False
    return True
