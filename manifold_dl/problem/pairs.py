"""Whether signals share the inner products of all pairs of atoms, or form those of their own supports.

A search along a geodesic reads DᵀD, DᵀU, UᵀU and X Xᵀ on the pairs of atoms that occur together in a support:
Σ_j |Ω_j|² of them, with repetitions. Where these are many, as with 65,000 signals on 256 atoms, all d²
products are formed once and shared (`inner.py`); where they are few, as with 4,000 signals on 4,096 atoms,
each signal forms its own (`separate.py`), and nothing in an update grows with d². `inner_problem` of
`update_problem.py`, the rule MOD and the coder FixedSupport call `share_products`.
"""

from collections.abc import Callable

import numpy as np

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.blocked import CodeUsage
from manifold_dl.kernels.reduced import Block

Usage = Callable[[], CodeUsage] | None

# Up to so many atoms pairs are not even counted: sharing takes 3 ms more at most (64×256, n = 1,000: 10.7 ms
# for a default update instead of 8.0), and a first call compiles one kind of kernels instead of two, which
# takes 8 seconds less.
FEW_ATOMS = 256

# Sharing pays from so many pairs in supports on, for every one of the d² products. Measured: with supports of
# 5, a default update takes with separate products, in units of that with shared ones,
#     0.6, 0.8 and 1.1 at 0.5, 1 and 1.9 pairs per product for 64×512 atoms,
#     0.3, 0.7 and 0.85 at 0.2, 1 and 1.9 for 64×1024 atoms, and 1.4 at 3 for 64×256 atoms.
# A run on mini-batches of 4,096 signals, 1.6 at 64×256, takes 1.09 of the time, and 1.13 in single precision.
PAIRS_PER_PRODUCT = 1.5


def share_products(n_atoms: int, data: BlockMap, engine: Engine, usage: Usage = None) -> bool:
    """Whether to form the products of all pairs of `n_atoms` atoms once, for blocks with their supports.

    `usage`, where it is given, holds the number of pairs: then no pass over the signals counts them.

    Examples
    --------
    >>> from manifold_dl.engines import Threads
    >>> block = Block(np.zeros((2, 3)), np.array([0, 2, 4]), np.array([0, 1, 1, 2], np.int32), None)
    >>> share_products(300, Threads(1).open([block]), Threads(1))
    False
    """
    if n_atoms <= FEW_ATOMS:
        return True
    if usage is not None:
        n_pairs = usage().n_pairs
    else:
        n_pairs = engine.total(BlockMap(count_pairs_block, (data,)))[0] or 0
    return n_pairs >= PAIRS_PER_PRODUCT * n_atoms**2


def count_pairs_block(block: Block) -> tuple[int, None]:
    """Σ |Ω_j|² of one block."""
    sizes = np.diff(block.indptr)
    return int(sizes @ sizes), None
