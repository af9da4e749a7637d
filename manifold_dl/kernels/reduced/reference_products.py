"""Products with X Xᵀ in plain NumPy: what the normal equations of MOD need where there are many atoms."""

import numpy as np

from manifold_dl.kernels.reduced.minimum_norm import groups


def times_code_products(
    indptr: np.ndarray, indices: np.ndarray, codes: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """X Xᵀ V for V with a row for every atom, in its dtype, without forming X Xᵀ."""
    result = np.zeros_like(rows)
    for _, places in groups(indptr):
        x, own = codes[places], indices[places]
        np.add.at(result, own, x[:, :, None] * np.einsum("cs,csm->cm", x, rows[own])[:, None, :])
    return result
