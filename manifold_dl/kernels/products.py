"""Inner products of all pairs of rows: Gram matrices, for the objective and for the coders.

BLAS computes them, so nothing is compiled, and in pieces so small that it does so on the calling thread: the
bits do not depend on the number of threads.
"""

import math

import numpy as np

from manifold_dl.kernels.memory import aligned_copy

# OpenBLAS computes a product of at most so many multiplications on the calling thread. Larger ones are made a
# few rows at a time: its threads stay busy for some milliseconds, on processors that our blocks need.
BLAS_MULTIPLICATIONS = 2**18
FEWEST_ROWS = 8


def inner_products(atoms: np.ndarray, others: np.ndarray, products: np.ndarray) -> None:
    """All inner products of two sets of rows, a few rows at a time: BLAS alone, so nothing is compiled."""
    rows = BLAS_MULTIPLICATIONS // max(1, others.size)
    if rows >= len(atoms):
        np.dot(atoms, others.T, products)
    elif rows >= FEWEST_ROWS:
        for first in range(0, len(atoms), rows):
            np.dot(atoms[first : first + rows], others.T, products[first : first + rows])
    else:  # so few rows at a time would read all the others again and again: square pieces
        side = max(FEWEST_ROWS, math.isqrt(BLAS_MULTIPLICATIONS // max(1, others.shape[1])))
        for first in range(0, len(atoms), side):
            for second in range(0, len(others), side):
                piece = products[first : first + side, second : second + side]
                piece[:] = atoms[first : first + side] @ others[second : second + side].T


def gram_matrix(rows: np.ndarray, products: np.ndarray) -> None:
    """All inner products of one set of rows, symmetric to the last bit: in square pieces, half of them."""
    # NumPy calls another function of BLAS, with other last bits, where numbers do not begin at multiples of
    # their size, as in an array that came from another process.
    rows = aligned_copy(rows)
    side = max(FEWEST_ROWS, math.isqrt(BLAS_MULTIPLICATIONS // max(1, rows.shape[1])))
    for i in range(0, len(rows), side):
        for j in range(0, i + 1, side):
            piece = rows[i : i + side] @ rows[j : j + side].T
            products[i : i + side, j : j + side] = piece
            products[j : j + side, i : i + side] = piece.T
