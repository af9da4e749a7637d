"""The entries that count of codes in rectangular arrays, in a row, as a csc_array has them."""

import numpy as np

from manifold_dl.kernels.backend import NUMBA_INSTALLED, compiled_in_order
from manifold_dl.kernels.coding.interface import Codes


def entries(codes: Codes) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values of all signals. Supports are often of one size, or much smaller than the rows."""
    counts, indices, values = codes
    n, width = indices.shape
    if n == 0 or counts.min() == width:
        return indices.ravel(), values.ravel()
    if not NUMBA_INSTALLED:
        counted = np.arange(width) < counts[:, None]
        return indices[counted], values[counted]
    total = int(counts.sum(dtype=np.int64))
    found = np.empty(total, indices.dtype), np.empty(total, values.dtype)
    _copy_entries(counts, indices, values, *found)
    return found


@compiled_in_order
def _copy_entries(
    counts: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    found_indices: np.ndarray,
    found_values: np.ndarray,
) -> None:
    place = np.int64(0)
    for j in range(len(counts)):
        for l in range(counts[j]):
            found_indices[place], found_values[place] = indices[j, l], values[j, l]
            place += 1
