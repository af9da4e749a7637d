"""What a run keeps in memory: no copy of the signals, and no codes of earlier iterations."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

from manifold_dl import KSVD, MOD, OMP, SimCO, datasets, learn_dictionary

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


def memory_per_signal(order, update, weighted):
    """What a run allocates for one more signal, relative to the signal; constants fall out."""
    rng, peaks = np.random.default_rng(0), []
    sizes = 10_000, 30_000
    for n in sizes:
        signals = np.asarray(rng.standard_normal((64, n)), order=order)
        weights = rng.uniform(0.5, 1, n) if weighted else None
        options = {"coder": OMP(sparsity=2), "update": update, "max_iter": 2, "tol": 0.0, "threads": 1}
        start = np.asfortranarray(signals[:, :40] / np.linalg.norm(signals[:, :40], axis=0))
        tracemalloc.start()
        learn_dictionary(signals, 40, init=start, rng=0, weights=weights, minibatches=False, **options)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return (peaks[1] - peaks[0]) / (sizes[1] - sizes[0]) / (64 * 8)


# Codes, their indices and what is computed of a signal take less than half of what the signal takes. Signals
# in Fortran order are used where they are, others laid out once; K-SVD keeps a residual, and one weight per
# signal scales a copy.
@pytest.mark.parametrize(
    ("update", "weighted", "copies"),
    [(SimCO(threads=1), False, 0), (MOD(), False, 0), (KSVD(threads=1), False, 1), (MOD(), True, 1)],
    ids=["SimCO", "MOD", "K-SVD", "weights"],
)
@pytest.mark.usefixtures("without_collection")
@pytest.mark.parametrize(("order", "laid_out"), [("F", 0), ("C", 1)])
def test_signals_are_copied_only_to_be_laid_out(
    without_collection, order, laid_out, update, weighted, copies
):
    assert memory_per_signal(order, update, weighted) < laid_out + copies + 0.5
