"""The memory in which a pursuit works: one set of arrays for all signals of a block.

`pursuit.py` calls it. The arrays are arguments of its kernels, so that these need not count who uses them
(`borrowed`).
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import internal_in_order
from manifold_dl.kernels.coding.common import Code
from manifold_dl.kernels.coding.dictionary import ROWS
from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary
from manifold_dl.kernels.memory import aligned
from manifold_dl.kernels.numba_private import borrowed


class Workspace(NamedTuple):
    """Memory of one thread for pursuits: what belongs to the signal at work."""

    a: np.ndarray  # padded: Dᵀr
    folded: np.ndarray  # for `argmax_abs`
    products: np.ndarray  # tiles×ROWS×width: DᵀY of a few signals
    Q: np.ndarray  # sparsity×padded
    z: np.ndarray
    L: np.ndarray  # the factor; its diagonal is inverted
    code: Code
    residual: np.ndarray


def empty_workspace(dictionary: PreparedDictionary, sparsity: int) -> Workspace:
    """Memory for supports of at most `sparsity` atoms; rows as long as the dictionary are aligned."""
    (n_tiles, m, width), dtype = dictionary.tiles.shape, dictionary.gram.dtype
    padded = n_tiles * width
    rows = (padded,), (n_tiles, ROWS, width), (sparsity, padded)
    a, products, Q = (aligned(shape, dtype, smallest=0) for shape in rows)
    z, x = np.empty((2, sparsity), dtype)
    code, L = Code(np.empty(sparsity, np.int32), x), np.empty((sparsity, sparsity), dtype)
    return Workspace(a, np.empty(padded // 16, dtype), products, Q, z, L, code, np.empty(m, dtype))


@internal_in_order
def borrowed_dictionary(dictionary: PreparedDictionary) -> PreparedDictionary:
    """The same dictionary, without counting who uses it."""
    atoms, tiles, gram, eps = dictionary
    return PreparedDictionary(borrowed(atoms), borrowed(tiles), borrowed(gram), eps)


@internal_in_order
def borrowed_codes(codes: Codes) -> Codes:
    """The same codes, without counting who uses them."""
    return Codes(borrowed(codes.counts), borrowed(codes.indices), borrowed(codes.values))


@internal_in_order
def borrowed_workspace(work: Workspace) -> Workspace:
    """The same memory, without counting who uses it."""
    a, folded, products, Q, z, L, code, residual = work
    return Workspace(
        borrowed(a),
        borrowed(folded),
        borrowed(products),
        borrowed(Q),
        borrowed(z),
        borrowed(L),
        Code(borrowed(code.support), borrowed(code.x)),
        borrowed(residual),
    )
