"""The leading right singular vector of a matrix, compiled, for the K-SVD sweep of `ksvd.py`.

It is the leading eigenvector of the smaller Gram matrix G. A small G is squared: G, G², G⁴, ..., each divided
by its trace, until only one eigenvalue is left. Every squaring rounds like one product, and the gap between
the first two eigenvalues doubles each time, so the error is that of the first product: ε over the gap, as for
any other method.

Squaring takes the cube of the size. A larger G is first projected on a Krylov space of up to 64 dimensions,
and the projection is squared (`krylov.py`). OpenBLAS runs products of 64×64×64 numbers on the calling thread:
larger ones are made of such tiles, so that the bits do not depend on its number of threads.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import internal
from manifold_dl.kernels.reduced.krylov import krylov
from manifold_dl.kernels.reduced.squares import leading_of_square, normalise, scale, trace
from manifold_dl.kernels.status import NOT_UNIQUE, OK


class Limits(NamedTuple):
    """Constants, as arguments: Numba's cache on disk would not notice a change."""

    # 30 squarings tell eigenvalues apart whose ratio is 1 − 2e-8.
    squarings: int = 30
    # When this much is left of the other eigenvalues, the next square has 1e-18 of them.
    negligible: float = 1e-9
    # The largest Gram matrix to be squared, the width of a tile and the dimension of a Krylov space.
    largest: int = 64
    # Krylov spaces are begun anew from the two best vectors so often; then the caller's LAPACK is faster.
    spaces: int = 8
    # The vector is found when ‖Gv − θv‖ is this much of θ: four roundings.
    residual: float = 4 * float(np.finfo(np.float64).eps)
    # A new direction that is shorter than this, relative to its product with G, is rounding.
    rounding: float = 32 * float(np.finfo(np.float64).eps)


LIMITS = Limits()


class LargeMemory(NamedTuple):
    """What `leading` writes to besides the squares, where a product may be larger than a tile."""

    gram: np.ndarray  # as many entries as the largest Gram matrix has, if that is not squared
    tiles: np.ndarray  # 3 × 64 × 64
    basis: np.ndarray  # entries of two vectors more than the dimension of a Krylov space
    products: np.ndarray  # vᵢ·G vⱼ


def memory_for(m: int, most_rows: int) -> tuple[np.ndarray, LargeMemory | None]:
    """Two matrices that are squared; and memory for the rest, which rows of up to 64 entries do not need.

    Tiles and Krylov spaces take longer to compile than all of the sweep: with None they are left out.
    """
    size, width = min(m, most_rows), LIMITS.largest
    squares = np.empty((2, min(size, width) ** 2))
    if m <= width:
        return squares, None
    more = size if size > width else 0
    tiles, basis = np.empty((3, width, width)), np.empty((width + 2) * more)
    return squares, LargeMemory(np.empty(more * more), tiles, basis, np.empty((width + 2, width)))


@internal
def leading(E, start, squares, large, limits, u):
    """u becomes the leading right singular vector of E, zero if E is; NOT_UNIQUE where it cannot be found.

    `start` is a vector that may be near: a space of Krylov begins with it.
    """
    n, m = E.shape
    size = min(n, m)
    if large is not None and size > limits.largest:
        return _leading_by_projection(E, start, squares, large, limits, u)
    A = squares[0][: size * size].reshape((size, size))
    B = squares[1][: size * size].reshape((size, size))
    if n < m:
        _gram_of_rows(E, large, limits, A)
    else:
        _gram_of_columns(E, limits, A, B)
    if trace(A) == 0:
        u[:] = 0
        return OK
    v, is_clear = leading_of_square(A, B, limits)
    if not is_clear:
        return NOT_UNIQUE
    _right_vector(E, v, u)
    return OK


@internal
def _leading_by_projection(E, start, squares, large, limits, u):
    """The same where the Gram matrix is too large to be squared."""
    n, m = E.shape
    size = min(n, m)
    A = large.gram[: size * size].reshape((size, size))
    _gram_of_tiles(E, n < m, large.tiles, A)
    energy = trace(A)
    if energy == 0:
        u[:] = 0
        return OK
    scale(A, energy)
    if krylov(A, E, start, squares, large, limits) == NOT_UNIQUE:
        return NOT_UNIQUE
    _right_vector(E, large.basis[:size], u)
    return OK


@internal
def _right_vector(E, v, u):
    """u becomes the unit vector that belongs to the leading eigenvector of the smaller Gram matrix."""
    n, m = E.shape
    if n < m:
        u[:] = 0
        for k in range(n):
            for p in range(m):
                u[p] += v[k] * E[k, p]
    else:
        for p in range(m):
            u[p] = v[p]
    normalise(u)


@internal
def _gram_of_rows(E, large, limits, A):
    """A becomes EEᵀ."""
    if large is not None and E.shape[0] * E.size > limits.largest**3:
        _gram_of_tiles(E, True, large.tiles, A)
        return
    np.dot(E, E.T, A)


@internal
def _gram_of_columns(E, limits, A, B):
    """A becomes EᵀE, where it has the size of a tile: some rows at a time."""
    n, m = E.shape
    rows = max(1, limits.largest**3 // (m * m))
    A[:] = 0
    for start in range(0, n, rows):
        some = E[start : min(start + rows, n)]
        np.dot(some.T, some, B)
        for p in range(m):
            for q in range(m):
                A[p, q] += B[p, q]


@internal
def _gram_of_tiles(E, of_rows, tiles, A):
    """A becomes EEᵀ (of rows) or EᵀE, by products of tiles; tiles at the edge are filled up with zeros."""
    longest, size = tiles.shape[1], len(A)
    width = -(-size // -(-size // longest))  # all tiles equally wide
    length = E.shape[1] if of_rows else E.shape[0]
    one, other = (
        tiles[0].reshape(-1)[: longest * width].reshape((longest, width)),
        tiles[1].reshape(-1)[: longest * width].reshape((longest, width)),
    )
    product = tiles[2].reshape(-1)[: width * width].reshape((width, width))
    A[:] = 0
    for i in range(0, size, width):
        for j in range(i, size, width):
            for k in range(0, length, longest):
                _copy_tile(E, of_rows, k, i, one)
                _copy_tile(E, of_rows, k, j, other)
                np.dot(one.T, other, product)
                for p in range(min(width, size - i)):
                    for q in range(min(width, size - j)):
                        A[i + p, j + q] += product[p, q]
    for p in range(size):
        for q in range(p):
            A[p, q] = A[q, p]


@internal
def _copy_tile(E, of_rows, k, i, tile):
    """The tile of E (of Eᵀ, if the Gram matrix is that of rows) with this first row and column."""
    tile[:] = 0
    if of_rows:
        for q in range(min(tile.shape[1], E.shape[0] - i)):
            for p in range(min(len(tile), E.shape[1] - k)):
                tile[p, q] = E[i + q, k + p]
    else:
        for p in range(min(len(tile), E.shape[0] - k)):
            for q in range(min(tile.shape[1], E.shape[1] - i)):
                tile[p, q] = E[k + p, i + q]
