"""When the signals share the inner products of all pairs of atoms."""

import numpy as np

from manifold_dl.engines import Threads
from manifold_dl.kernels.reduced import Block
from manifold_dl.problem.pairs import FEW_ATOMS, share_products


def test_products_are_shared_where_supports_hold_as_many_pairs():
    engine = Threads(1)

    def shares(n_atoms, n_signals, size):
        indptr = size * np.arange(n_signals + 1)
        return share_products(n_atoms, engine.open([Block(None, indptr, None, None)]), engine)

    assert shares(256, 65_000, 5)  # 1.6 million pairs for 65,536 products
    assert not shares(4096, 4_000, 20)  # 1.6 million pairs for 17 million products
    assert shares(FEW_ATOMS, 1, 1)  # there it does not matter
    assert share_products(4096, engine.open([]), engine) is False
