"""Checks of the indices of sparse arrays, which SciPy does not make and compiled kernels rely on."""

from typing import Any

import numpy as np


def require_sound_indices(matrix: Any, name: str) -> None:
    """Refuse a sparse array whose indices leave its own shape or memory.

    SciPy does not look at arrays that were changed in place: its conversions and our kernels would then read
    and write anywhere in memory.
    """
    if matrix.ndim != 2:
        raise ValueError(f"{name} has shape {matrix.shape}; a matrix with two axes is needed.")
    if matrix.format not in ("csc", "csr", "bsr"):
        for axis, stored in enumerate(matrix.tocoo().coords):
            _require_range(stored, matrix.shape[axis], name, matrix.shape)
        return
    n_rows, n_columns = matrix.shape
    if matrix.format == "bsr":
        n_rows, n_columns = n_rows // matrix.blocksize[0], n_columns // matrix.blocksize[1]
    n_major, n_minor = (n_columns, n_rows) if matrix.format == "csc" else (n_rows, n_columns)
    indptr, n_stored = matrix.indptr, min(len(matrix.indices), len(matrix.data))
    if len(indptr) != n_major + 1:
        raise ValueError(
            f"{name} has an indptr of length {len(indptr)}; its shape {matrix.shape} needs {n_major + 1}."
        )
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"{name} has an indptr that does not begin at 0 and ascend from there: rebuild it.")
    if indptr[-1] > n_stored:
        raise ValueError(
            f"{name} has an indptr that ends at {indptr[-1]}, but only {n_stored} entries are stored."
        )
    _require_range(matrix.indices[: indptr[-1]], n_minor, name, matrix.shape)


def _require_range(indices: np.ndarray, limit: int, name: str, shape: tuple) -> None:
    if not len(indices):
        return
    smallest, largest = indices.min(), indices.max()
    if smallest < 0 or largest >= limit:
        wrong = smallest if smallest < 0 else largest
        raise ValueError(f"{name} holds the index {wrong}, outside its own shape {shape}.")
