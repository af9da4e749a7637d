"""Batches of signals with supports of one size: every signal in one batch, and none wider than needed."""

from itertools import pairwise

import numpy as np
import pytest
from kernel_cases import Case, compiled, reference

from manifold_dl.kernels.reduced.batches import BATCH_SIZE


@pytest.mark.parametrize(("copies", "widths"), [(1, [8]), (8, [8]), (9, [16]), (64, [64]), (70, [64, 8])])
def test_batches_are_padded_to_the_next_multiple_only(copies, widths):
    # One signal with a large support must not cost the memory of sixty-four.
    batches = compiled.make_batches(3 * np.arange(copies + 1), np.tile(np.arange(3, dtype=np.int32), copies))
    assert batches.widths.tolist() == widths
    assert len(batches.indices) == 3 * sum(widths) and batches.factor_place[-1] == 6 * sum(widths)


def test_every_signal_with_a_support_is_in_one_batch():
    case = Case()
    batches = compiled.make_batches(case.indptr, case.indices)
    np.testing.assert_array_equal(np.sort(batches.signals), np.flatnonzero(np.diff(case.indptr)))
    assert len(np.unique(batches.signals)) == len(batches.signals)


@pytest.mark.parametrize("copies", [1, BATCH_SIZE - 1, BATCH_SIZE, BATCH_SIZE + 1])
def test_batches_that_are_not_full_count_every_signal_once(copies):
    # So many signals with supports of each size.
    case = Case(seed=1, copies=copies)
    found, expected = case.refit(compiled, 0.1, 0.3), case.refit(reference, 0.1, 0.3)
    assert found == pytest.approx(expected, rel=1e-12)


def test_supports_that_are_not_sorted_are_recognised():
    case = Case()
    assert compiled.make_batches(case.indptr, case.indices).ascending
    for begin, end in pairwise(case.indptr):
        case.indices[begin:end] = case.indices[begin:end][::-1]
    assert not compiled.make_batches(case.indptr, case.indices).ascending
    assert case.refit(compiled, 0.1, 0.3) == pytest.approx(case.refit(reference, 0.1, 0.3), rel=1e-12)
