"""What a run keeps in memory: codes of earlier iterations are freed at once."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

from manifold_dl import OMP, SimCO, datasets, learn_dictionary

_, _, Y = datasets.synthetic(16, 24, 12_000, sparsity=3, snr_db=20, rng=0)


@pytest.fixture
def without_collection():
    """No search for circles of references, as if the next one were far away."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class WatchedOMP:
    """OMP that notes how many of the arrays it has returned are still in memory."""

    def __init__(self):
        self.returned, self.alive = [], []

    def encode(self, signals, dictionary):
        self.alive.append(sum(array() is not None for array in self.returned))
        codes = OMP(sparsity=3).encode(signals, dictionary)
        self.returned.append(weakref.ref(codes.data))
        return codes


@pytest.mark.parametrize("update", [SimCO(), SimCO(codes="fixed")])
def test_codes_of_earlier_iterations_are_freed(without_collection, update):
    coder = WatchedOMP()
    learn_dictionary(Y, 24, coder=coder, update=update, max_iter=5, rng=0, replace=None)
    assert max(coder.alive) <= 1  # those that the best dictionary had before its update


def test_indices_of_codes_take_32_bits():
    result = learn_dictionary(Y, 24, coder=OMP(sparsity=3), max_iter=1, rng=0)
    assert result.codes.indices.dtype == result.codes.indptr.dtype == np.int32


def test_a_longer_run_needs_no_more_memory(without_collection):
    def peak(max_iter):
        tracemalloc.start()
        learn_dictionary(Y, 24, coder=OMP(sparsity=3), max_iter=max_iter, tol=0.0, rng=0, threads=1)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(1)  # what is made once
    # The codes of one more iteration would be 12,000 · 3 · 12 bytes.
    assert peak(5) < peak(2) + 12_000 * 3 * 12
