"""Rows of signals and of atoms, compiled: products with codes, inner products, energies, the preconditioner.

The functions of `reference.py` that need no small systems.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled
from manifold_dl.kernels.reduced import reference
from manifold_dl.kernels.reduced.reference import LEAST_ENERGY

# OpenBLAS computes a product of at most so many multiplications on the calling thread. Larger ones are made a
# few rows at a time: its threads stay busy for some milliseconds, on processors that our blocks need.
BLAS_MULTIPLICATIONS = 2**18


def add_products(
    rows: np.ndarray, indptr: np.ndarray, indices: np.ndarray, codes: np.ndarray, atoms: np.ndarray
) -> None:
    """See `reference.add_products`."""
    _add_products(rows, indptr, indices, codes, atoms)


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


def precondition(rows: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """See `reference.precondition`."""
    if rows.dtype not in (np.float64, np.float32):  # half or extended precision: NumPy can
        return reference.precondition(rows, energy)
    result = np.empty(rows.shape, rows.dtype)
    _precondition(np.ascontiguousarray(rows), energy, LEAST_ENERGY, result)
    return result


def gram(atoms: np.ndarray, others: np.ndarray) -> np.ndarray:
    """See `reference.gram`."""
    if atoms.dtype != np.float64 or others.dtype != np.float64:
        atoms, others = atoms.astype(float), others.astype(float)
    products = np.empty((len(atoms), len(others)))
    inner_products(atoms, others, BLAS_MULTIPLICATIONS, products)
    return products


@compiled
def inner_products(atoms, others, multiplications, products):
    """All inner products of two sets of rows, a few rows at a time."""
    rows = max(1, multiplications // others.size)
    for first in range(0, len(atoms), rows):
        np.dot(atoms[first : first + rows], others.T, products[first : first + rows])


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
def _precondition(rows, energy, least, result):
    if len(rows) != len(energy):
        raise ValueError("there are not as many rows as energies")
    mean = 0.0
    for i in range(len(energy)):
        mean += energy[i]
    mean /= len(energy)
    for i in range(len(energy)):
        factor = rows.dtype.type(mean / max(energy[i], least * mean) if mean > 0 else 1.0)
        for p in range(rows.shape[1]):
            result[i, p] = factor * rows[i, p]
