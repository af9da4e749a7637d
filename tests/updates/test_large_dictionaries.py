"""What an update takes in memory where dictionary and signals are large, and nothing else may be."""

import tracemalloc

import numpy as np
import pytest

from manifold_dl.datasets import synthetic
from manifold_dl.engines import Threads
from manifold_dl.schedules import Blocks
from manifold_dl.updates import KSVD, MOD, SimCO

# 8 MB each, in the order that nothing has to copy; supports of 16 touch a sixteenth of the pairs of atoms.
_, X, Y = synthetic(512, 4096, 4096, sparsity=16, snr_db=20, rng=0)
X, Y = X.astype(np.float32), np.asfortranarray(Y, np.float32)
START = np.asfortranarray(synthetic(512, 4096, 1, sparsity=16, rng=1).dictionary, np.float32)

# The most, in units of the dictionary, which is as large as the signals; a tenth more than was counted.
RULES = {
    # The new dictionary and the residual; and half a one of blocks of 256 atoms, codes and their places.
    "K-SVD": (KSVD(threads=1), 2.7),
    # The new dictionary and its change; residuals and sums of 128 entries, in double precision.
    "MOD": (MOD(engine=Threads(1)), 4.6),
    # The new dictionary, the signals without the other atoms, and a dozen matrices of an eighth of the size.
    "blocks": (SimCO(schedule=Blocks(512), threads=1), 4.1),
    # The dictionary and the start; nine matrices of conjugate gradients; a point, its gradient; temporaries.
    "all atoms": (SimCO(threads=1), 15.5),
}


@pytest.mark.parametrize("name", RULES)
def test_an_update_of_many_atoms_keeps_few_arrays_of_the_size_of_the_dictionary(name):
    rule, most = RULES[name]
    rule(Y[:, :100], START, X[:, :100])  # compiled and imported before anything is measured
    tracemalloc.start()
    try:
        rule(Y, START, X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most * START.nbytes
