"""Supports and least squares in plain NumPy: what `reference.py` and `reference_convex.py` have in common."""

from collections.abc import Sequence

import numpy as np
import scipy.optimize

from manifold_dl.kernels.coding.interface import Codes

# Below this many units of rounding a number that should be zero is taken to be zero.
ROUNDINGS = 64

Support = Sequence[int] | np.ndarray


def largest_entries(values: np.ndarray, size: int) -> np.ndarray:
    """Indices of the entries largest in magnitude, leaving out zeros."""
    order = np.argsort(-np.abs(values), kind="stable")[:size]
    return order[values[order] != 0]


def is_independent(atoms: np.ndarray, support: Support, p: int | np.integer) -> bool:
    """Whether atom p is farther from the span of the support than rounding of its fit there could make it."""
    c = solve(atoms, atoms[p], support)
    rest = atoms[p] - c @ atoms[support]
    size = atoms[p] @ atoms[p] + c**2 @ np.sum(atoms[support] ** 2, axis=1)
    return rest @ rest > ROUNDINGS * np.finfo(atoms.dtype).eps * size


def independent(atoms: np.ndarray, support: Support) -> list[int]:
    """The support without the atoms that depend on those before them."""
    kept: list[int] = []
    for p in support:
        if is_independent(atoms, kept, p):
            kept.append(p)
    return kept


def solve(atoms: np.ndarray, y: np.ndarray, support: Support) -> np.ndarray:
    """Least-squares coefficients of y on a support."""
    return np.linalg.lstsq(atoms[support].T, y)[0] if len(support) else np.zeros(0, y.dtype)


def nnls(atoms: np.ndarray, y: np.ndarray, support: Support) -> np.ndarray:
    """Coefficients ≥ 0 of y on a support."""
    return scipy.optimize.nnls(atoms[support].T, y)[0] if len(support) else np.zeros(0, y.dtype)


def padded_codes(codes: Sequence[tuple[Support, np.ndarray]], dtype: np.dtype, width: int) -> Codes:
    """A list of (support, coefficients), as counts, indices and values with the indices increasing."""
    counts = np.array([len(support) for support, _ in codes], np.int32)
    indices, values = np.zeros((len(codes), width), np.int32), np.zeros((len(codes), width), dtype)
    for j, (support, x) in enumerate(codes):
        order = np.argsort(support)
        indices[j, : len(order)], values[j, : len(order)] = (
            np.asarray(support, int)[order],
            np.asarray(x)[order],
        )
    return Codes(counts, indices, values)
