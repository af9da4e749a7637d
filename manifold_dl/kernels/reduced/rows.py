"""Rows of signals and of atoms, compiled: products with codes, inner products, energies.

The functions of `reference.py` that need no small systems.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled
from manifold_dl.kernels.products import inner_products


def add_products(
    rows: np.ndarray, indptr: np.ndarray, indices: np.ndarray, codes: np.ndarray, atoms: np.ndarray
) -> None:
    """See `reference.add_products`."""
    _add_products(rows, indptr, indices, codes, atoms)


def residual(
    signals: np.ndarray, indptr: np.ndarray, indices: np.ndarray, codes: np.ndarray, atoms: np.ndarray
) -> np.ndarray:
    """See `reference.residual`."""
    rows = np.array(signals, order="C")
    _add_products(rows, indptr, indices, -codes, atoms)
    return rows


def subtract_other_atoms(
    rows: np.ndarray,
    signals: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    codes: np.ndarray,
    moves: np.ndarray,
    atoms: np.ndarray,
) -> None:
    """See `reference.subtract_other_atoms`."""
    _subtract_other_atoms(rows, signals, indptr, indices, codes, moves, atoms)


def code_energies(indices: np.ndarray, codes: np.ndarray, n_atoms: int) -> np.ndarray:
    """See `reference.code_energies`."""
    result = np.zeros(n_atoms)
    _code_energies(indices, codes, result)
    return result


def times_code_products(
    indptr: np.ndarray, indices: np.ndarray, codes: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """See `reference_products.times_code_products`."""
    rows = np.ascontiguousarray(rows)
    result = np.zeros_like(rows)
    _times_code_products(indptr, indices, codes.astype(rows.dtype, copy=False), rows, result)
    return result


def gram(atoms: np.ndarray, others: np.ndarray) -> np.ndarray:
    """See `reference.gram`."""
    if atoms.dtype != np.float64 or others.dtype != np.float64:
        atoms, others = atoms.astype(float), others.astype(float)
    products = np.empty((len(atoms), len(others)))
    inner_products(atoms, others, products)
    return products


@compiled
def _add_products(rows, indptr, indices, codes, atoms):
    for j in range(rows.shape[0]):
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], codes[a]
            for p in range(rows.shape[1]):
                rows[j, p] += x * atoms[i, p]


@compiled
def _subtract_other_atoms(rows, signals, indptr, indices, codes, moves, atoms):
    for k in range(len(signals)):
        for a in range(indptr[signals[k]], indptr[signals[k] + 1]):
            i, x = indices[a], codes[a]
            if not moves[i]:
                for p in range(rows.shape[1]):
                    rows[k, p] -= x * atoms[i, p]


@compiled
def _code_energies(indices, codes, result):
    for a in range(len(indices)):
        result[indices[a]] += np.float64(codes[a]) * codes[a]


@compiled
def _times_code_products(indptr, indices, codes, rows, result):
    width = rows.shape[1]
    sums = np.empty(width, rows.dtype)
    for j in range(len(indptr) - 1):
        for p in range(width):
            sums[p] = 0
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], codes[a]
            for p in range(width):
                sums[p] += x * rows[i, p]
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], codes[a]
            for p in range(width):
                result[i, p] += x * sums[p]
