"""The dictionary as the compiled coding kernels read it, and its products with the signals.

A dictionary is prepared once for all blocks of signals (`prepare`). The products a = Dᵀy of a signal with all
atoms form a row whose length is padded with zeros; they are formed for a few signals at a time.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_in_order, internal_in_order
from manifold_dl.kernels.coding.interface import PreparedDictionary
from manifold_dl.kernels.memory import aligned

# Products DᵀY are formed for a few signals at a time, small enough to stay in the cache and, at 2^18
# multiplications, small enough that OpenBLAS runs them on the calling thread: the threads are ours, one per
# block of signals.
ROWS = 16
MULTIPLICATIONS = 2**18

# The search for the largest entry folds an array in sixteen, then in two: the number of atoms is padded to a
# multiple.
PAD = 32


class Products(NamedTuple):
    """Memory for the products of a few signals with all atoms, and for the search among them."""

    correlations: np.ndarray  # ROWS×padded: DᵀY
    tile: np.ndarray  # ROWS×width: the products with one tile
    folded: np.ndarray  # padded/16: for `argmax_abs`


def prepare(atoms: np.ndarray) -> PreparedDictionary:
    """The dictionary with the atoms in the rows of `atoms` (d×m), and its Gram matrix."""
    d, m = atoms.shape
    widest = max(64, MULTIPLICATIONS // (ROWS * m))
    n_tiles = -(-d // widest)
    width = -(-d // (n_tiles * PAD)) * PAD
    padded = np.zeros((n_tiles * width, m), atoms.dtype)
    padded[:d] = atoms
    tiles = aligned((n_tiles, m, width), atoms.dtype)  # BLAS reads small matrices in place, a tenth faster so
    tiles[:] = padded.reshape(n_tiles, width, m).transpose(0, 2, 1)
    # Not padded @ padded.T: after a product in threads OpenBLAS keeps its own busy for some 30 ms, waiting
    # for the next, and those are the processors our blocks are about to run on.
    gram = np.empty((len(padded), len(padded)), atoms.dtype)
    _multiply(padded, tiles, gram)
    return PreparedDictionary(atoms, tiles, gram, np.finfo(atoms.dtype).eps)


@internal_in_order
def empty_products(dictionary: PreparedDictionary) -> Products:
    """Memory for one thread."""
    gram, padded = dictionary.gram, len(dictionary.gram)
    return Products(
        np.empty((ROWS, padded), gram.dtype),
        np.empty((ROWS, dictionary.tiles.shape[2]), gram.dtype),
        np.empty(padded // 16, gram.dtype),
    )


@internal_in_order
def correlate(signals: np.ndarray, dictionary: PreparedDictionary, products: Products) -> None:
    """The products of up to ROWS signals with every atom, into `products.correlations`."""
    _correlate(signals, dictionary.tiles, products.tile, products.correlations)


@internal_in_order
def correlate_with(tiles: np.ndarray, signals: np.ndarray, products: Products) -> None:
    """The same with tiles of other numbers than the atoms, such as their squares."""
    _correlate(signals, tiles, products.tile, products.correlations)


@internal_in_order
def multiply_tiles(signals: np.ndarray, tiles: np.ndarray, products: np.ndarray) -> None:
    """The products of up to ROWS signals with every atom, tile by tile: tiles×ROWS×width."""
    for t in range(len(tiles)):
        np.dot(signals, tiles[t], products[t, : len(signals)])


@internal_in_order
def take_row(products: np.ndarray, j: int, a: np.ndarray) -> None:
    """The products of signal j with every atom, in a row. No view is made: it would be counted."""
    width = products.shape[2]
    for t in range(len(products)):
        for i in range(width):
            a[t * width + i] = products[t, j, i]


@internal_in_order
def copy(source: np.ndarray, target: np.ndarray) -> None:
    """target[:] = source, which compiles in a fraction of the time."""
    for i in range(len(source)):
        target[i] = source[i]


@compiled_in_order
def _multiply(rows: np.ndarray, tiles: np.ndarray, out: np.ndarray) -> None:
    """The products of all rows with every atom."""
    product = np.empty((ROWS, tiles.shape[2]), out.dtype)
    for j in range(0, len(rows), ROWS):
        _correlate(rows[j : j + ROWS], tiles, product, out[j : j + ROWS])


@internal_in_order
def _correlate(signals: np.ndarray, tiles: np.ndarray, product: np.ndarray, correlations: np.ndarray) -> None:
    """The products of a few signals with every atom."""
    n, width = len(signals), tiles.shape[2]
    for t in range(len(tiles)):
        np.dot(signals, tiles[t], product[:n])
        for j in range(n):
            copy(product[j], correlations[j, t * width : (t + 1) * width])
