"""The Gram matrix without its diagonal, and its change: which all penalties on pairs of atoms use."""

import numpy as np


def overlaps_of(dictionary: np.ndarray) -> np.ndarray:
    """Return G°, the Gram matrix DᵀD with a diagonal of zeros."""
    return _off_diagonal(dictionary.T @ dictionary)


def change_of_overlaps(dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return (EᵀD + DᵀE)°, the derivative of G° along E."""
    change = direction.T @ dictionary
    return _off_diagonal(change + change.T)


def _off_diagonal(gram: np.ndarray) -> np.ndarray:
    np.fill_diagonal(gram, 0)
    return gram
