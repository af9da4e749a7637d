"""Dask arrays as signals, and codes that stay Dask arrays.

An m×n Dask array is cut into the blocks of `partition(n)`. Each block carries its own small task graph, so
that any worker can compute it again at any time. Chunks that a user has persisted are taken from the workers
that have them.
"""

import uuid
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
from manifold_dl.engines.protocol import MULTIPLE, Engine, partition
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
    return np.array(_dense(columns).T, dtype=dtype, order="C")


def float_type(dtype: Any) -> np.dtype:
    """The type that signals of some type are computed in: float32 stays, all others become float64."""
    return np.dtype(np.float32) if dtype == np.float32 else np.dtype(np.float64)


def _dense(columns: Any) -> np.ndarray:
    """A chunk as an array; it may be sparse."""
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
    dtype = float_type(signals.dtype)
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
        Its `compute()` is a csc_array. It is cut at multiples of 1,024 signals.
    """
    signals = signals.rechunk((-1, in_whole_blocks(signals.chunks[1])))
    dtype = float_type(signals.dtype)
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


def in_chunks(codes: scipy.sparse.csc_array, sizes: tuple[int, ...]) -> Any:
    """Codes (d×n) in memory as a Dask array with sparse chunks of so many columns.

    Parameters
    ----------
    codes : csc_array
    sizes : tuple of int

    Returns
    -------
    dask.array.Array

    Examples
    --------
    >>> codes = in_chunks(scipy.sparse.csc_array(np.eye(3)), (2, 1))
    >>> codes.chunks, int(codes.compute().nnz)
    (((3,), (2, 1)), 3)
    """
    ends = np.cumsum(sizes).tolist()
    name = f"codes-{uuid.uuid4().hex}"
    starts = [0, *ends[:-1]]
    graph = {(name, 0, i): codes[:, a:b] for i, (a, b) in enumerate(zip(starts, ends, strict=True))}
    return da.Array(graph, name, ((codes.shape[0],), tuple(sizes)), meta=codes[:0, :0])


def encoded_rows(
    samples: Any, encode: Callable[[np.ndarray], Any], n_atoms: int, sparse: bool = False
) -> Any:
    """The n×d codes of an n×m Dask array of samples, as a lazy Dask array.

    Parameters
    ----------
    samples : dask.array.Array
    encode : callable
        From some signals, in columns, to a sparse array of their codes.
    n_atoms : int
    sparse : bool
        Whether its chunks are csr_arrays; otherwise they are dense.

    Returns
    -------
    dask.array.Array
        It is cut at multiples of 1,024 samples.
    """
    samples = samples.rechunk((in_whole_blocks(samples.chunks[0]), -1))
    dtype = float_type(samples.dtype)
    meta = scipy.sparse.csr_array((0, 0), dtype=dtype) if sparse else np.zeros((0, 0), dtype)
    options = {"dtype": dtype, "chunks": (samples.chunks[0], (n_atoms,)), "meta": meta}
    return samples.map_blocks(_encode_rows, encode, sparse, **options)


def in_whole_blocks(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks about as large as these, each but the last a multiple of 1,024 signals.

    The products of signals and atoms are formed for sixteen signals at a time, and in single precision the
    last bits of a product depend on which of them a signal is. So codes have the bits of signals in memory
    only where chunks end as blocks do. Sizes that Dask does not know stay as they are.

    Examples
    --------
    >>> in_whole_blocks((2500, 2500, 2500, 1500))
    (2048, 3072, 2048, 1832)
    >>> in_whole_blocks((300, 300))
    (600,)
    """
    if np.isnan(sizes).any():
        return sizes
    *ends, n = np.cumsum(sizes).tolist()
    cuts = sorted({min(MULTIPLE * round(end / MULTIPLE), n) for end in ends} - {0, n})
    return tuple(end - start for start, end in zip([0, *cuts], [*cuts, n], strict=True))


def decoded_rows(codes: Any, components: np.ndarray) -> Any:
    """The n×m samples that an n×d Dask array of codes represents, as a lazy Dask array.

    Parameters
    ----------
    codes : dask.array.Array
        Its chunks may be sparse.
    components : d×m array

    Returns
    -------
    dask.array.Array
    """
    codes = codes.rechunk({1: -1})
    dtype = np.result_type(codes.dtype, components.dtype)
    options = {"dtype": dtype, "chunks": (codes.chunks[0], (components.shape[1],))}
    return codes.map_blocks(_decode_rows, components, meta=np.zeros((0, 0), dtype), **options)


def _decode_rows(codes: Any, components: np.ndarray) -> np.ndarray:
    return np.asarray(codes @ components)


def _encode_rows(rows: np.ndarray, encode: Callable[[np.ndarray], Any], sparse: bool) -> Any:
    codes = encode(_as_floats(_dense(rows)).T).T
    return codes.tocsr() if sparse else np.ascontiguousarray(codes.toarray())


def _encode_chunk(
    columns: np.ndarray, weights: Any = None, *, encode: Callable[..., Any], per_signal: bool
) -> Any:
    signals = _as_floats(_dense(columns))
    if weights is None:
        return encode(signals)
    return encode(signals, np.asarray(weights)[0] if per_signal else np.asarray(weights))


def _as_floats(array: np.ndarray) -> np.ndarray:
    """Floating-point numbers in the byte order of this machine, of which codes have the type."""
    return array.astype(float_type(array.dtype), copy=False)


def _blocks(signals: Any, dtype: np.dtype, engine: Any) -> list[Any]:
    """The blocks of the array, each to be computed on its own."""
    from distributed import Future

    m, n = signals.shape
    sizes = tuple(part.stop - part.start for part in partition(n))
    array = signals.rechunk(((m,), sizes))
    if any(isinstance(value, Future) for value in _leaves(dict(signals.__dask_graph__()))):
        rows = dask.delayed(as_rows)
        chunks = zip(array.to_delayed()[0], sizes, strict=True)
        return as_client(engine.client).compute([rows(chunk, (m, size), dtype) for chunk, size in chunks])
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


def _has_client() -> bool:
    try:
        as_client(None)
    except (ImportError, ValueError):
        return False
    return True
