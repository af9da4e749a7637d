"""Codes that stay Dask arrays, lazily: those of a result, and what the estimator returns for Dask arrays.

A chunk of codes is computed from its chunk of signals on the thread of the worker that has it.
"""

import uuid
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse

from manifold_dl.engines.dask_arrays import dense, float_type
from manifold_dl.engines.protocol import MULTIPLE


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
    codes = encode(_as_floats(dense(rows)).T).T
    return codes.tocsr() if sparse else np.ascontiguousarray(codes.toarray())


def _encode_chunk(
    columns: np.ndarray, weights: Any = None, *, encode: Callable[..., Any], per_signal: bool
) -> Any:
    signals = _as_floats(dense(columns))
    if weights is None:
        return encode(signals)
    return encode(signals, np.asarray(weights)[0] if per_signal else np.asarray(weights))


def _as_floats(array: np.ndarray) -> np.ndarray:
    """Floating-point numbers in the byte order of this machine, of which codes have the type."""
    return array.astype(float_type(array.dtype), copy=False)
