"""The entries that count of codes in rectangular arrays, in a row, as a csc_array has them."""

import numpy as np

from manifold_dl.kernels.coding.interface import Codes


def entries(codes: Codes) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values of all signals. Supports are often of one size, or much smaller than the rows."""
    counts, indices, values = codes
    n, width = indices.shape
    if n == 0 or counts.min() == width:
        return indices.ravel(), values.ravel()
    counted = np.arange(width) < counts[:, None]
    return indices[counted], values[counted]
