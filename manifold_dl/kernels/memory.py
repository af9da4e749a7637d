"""Memory that begins where a line of the cache begins.

The kernels read rows of atoms in pieces of up to 64 bytes. Where every piece lies on two lines of the cache,
a pass over the signals takes a seventh longer, and `np.empty` leaves that to chance.
"""

from typing import Any

import numpy as np

LINE = 64
SMALL = 2**14  # bytes: smaller arrays fit into the first cache, and gain only if they are read all the time


def aligned(shape: tuple[int, ...], dtype: Any, smallest: int = SMALL) -> np.ndarray:
    """An empty array of this shape; from `smallest` bytes on it begins a line of the cache."""
    array = np.empty(shape, dtype)
    size = array.nbytes
    if size < smallest:
        return array
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def aligned_copy(matrix: np.ndarray) -> np.ndarray:
    """The matrix with contiguous rows."""
    copy = aligned(matrix.shape, matrix.dtype)
    copy[:] = matrix
    return copy


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The same, filled with zeros."""
    zeros = aligned(shape, dtype)
    zeros.fill(0)
    return zeros
