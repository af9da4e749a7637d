"""The memory in which a pursuit with weights works: one set of arrays for all signals of a block.

`weighted.py` calls it. As in `pursuit_memory.py` the arrays are arguments of its kernel, which need not count
who uses them.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import internal_in_order
from manifold_dl.kernels.coding.dictionary import ROWS
from manifold_dl.kernels.coding.interface import PreparedDictionary
from manifold_dl.kernels.memory import aligned
from manifold_dl.kernels.numba_private import borrowed


class Atoms(NamedTuple):
    """What belongs to each atom: padded rows."""

    a: np.ndarray  # Dᵀ(s∘r)
    squares: np.ndarray  # ‖s∘d‖²
    remaining: np.ndarray  # ‖P s∘d‖² of orthogonal least squares; 1/‖s∘d‖² of OMP
    gains: np.ndarray  # by how much the squared residual would fall
    v: np.ndarray  # Dᵀ(s∘q)
    diagonal: np.ndarray  # ‖d‖²
    folded: np.ndarray  # for `argmax_abs`


class Basis(NamedTuple):
    """An orthonormal basis of the chosen atoms on the observed entries: √w∘d = QᵀR, column by column."""

    Q: np.ndarray  # size×m: a direction in every row
    R: np.ndarray  # size×size: column k belongs to atom k, the diagonal is stored inverted
    z: np.ndarray  # the products of the directions with the signal
    c: np.ndarray  # scratch
    support: np.ndarray
    x: np.ndarray


class Entries(NamedTuple):
    """What belongs to each entry of a signal that has a weight."""

    places: np.ndarray
    roots: np.ndarray
    residual: np.ndarray  # s∘(y − Dx)
    others: np.ndarray  # places with another weight than most
    factors: np.ndarray  # scratch, as long as a support too


class WeightedWorkspace(NamedTuple):
    """Memory of one thread."""

    squared_tiles: np.ndarray  # those of D∘D
    rows: np.ndarray  # the Gram matrix as one tile
    products: np.ndarray  # tiles×ROWS×width: Dᵀ(w∘y) of a few signals
    norms: np.ndarray  # the same of (D∘D)ᵀw
    scaled: np.ndarray  # ROWS×m: w∘y, then w
    atoms: Atoms
    basis: Basis
    entries: Entries


def empty_weighted_workspace(dictionary: PreparedDictionary, sparsity: int) -> WeightedWorkspace:
    """Memory for supports of at most `sparsity` atoms; rows as long as the dictionary are aligned."""
    tiles, gram = dictionary.tiles, dictionary.gram
    (n_tiles, m, width), dtype = tiles.shape, tiles.dtype
    padded = len(gram)
    squared, products, norms, scaled, Q = (
        aligned(shape, dtype, smallest=0)
        for shape in (tiles.shape, *[(n_tiles, ROWS, width)] * 2, (ROWS, m), (sparsity, m))
    )
    np.multiply(tiles, tiles, out=squared)
    a, squares, remaining, gains, v, diagonal = (aligned((padded,), dtype, smallest=0) for _ in range(6))
    diagonal[:] = np.diagonal(gram)
    z, c, x = np.empty((3, sparsity), dtype)
    roots, residual = np.empty((2, m), dtype)
    places, others = np.empty((2, m), np.int64)
    return WeightedWorkspace(
        squared,
        gram.reshape(1, padded, padded),
        products,
        norms,
        scaled,
        Atoms(a, squares, remaining, gains, v, diagonal, np.empty(padded // 16, dtype)),
        Basis(Q, np.empty((sparsity, sparsity), dtype), z, c, np.empty(sparsity, np.int64), x),
        Entries(places, roots, residual, others, np.empty(max(m, sparsity), dtype)),
    )


@internal_in_order
def borrowed_weighted(work: WeightedWorkspace) -> WeightedWorkspace:
    """The same memory, without counting who uses it."""
    squared, rows, products, norms, scaled, atoms, basis, entries = work
    a, squares, remaining, gains, v, diagonal, folded = atoms
    Q, R, z, c, support, x = basis
    places, roots, residual, others, factors = entries
    return WeightedWorkspace(
        borrowed(squared),
        borrowed(rows),
        borrowed(products),
        borrowed(norms),
        borrowed(scaled),
        Atoms(
            borrowed(a),
            borrowed(squares),
            borrowed(remaining),
            borrowed(gains),
            borrowed(v),
            borrowed(diagonal),
            borrowed(folded),
        ),
        Basis(borrowed(Q), borrowed(R), borrowed(z), borrowed(c), borrowed(support), borrowed(x)),
        Entries(borrowed(places), borrowed(roots), borrowed(residual), borrowed(others), borrowed(factors)),
    )
