"""Arrays that begin where a line of the cache begins."""

import numpy as np
import pytest

from manifold_dl.kernels.memory import LINE, SMALL, aligned, aligned_copy, aligned_zeros


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("rows", range(1, 9))
def test_large_arrays_begin_a_line_of_the_cache(rows, dtype):
    array = aligned((rows, SMALL), dtype)
    assert array.shape == (rows, SMALL) and array.dtype == dtype
    assert array.ctypes.data % LINE == 0 and array.flags.c_contiguous and array.flags.writeable


def test_arrays_below_the_limit_are_those_of_numpy():
    assert aligned((3, 4), np.float64).base is None
    assert aligned((3, 4), np.float64, smallest=0).ctypes.data % LINE == 0


@pytest.mark.parametrize("shape", [(3, 5), (200, 300)])
def test_copies_have_contiguous_rows_and_the_same_numbers(shape):
    matrix = np.asfortranarray(np.random.default_rng(0).standard_normal(shape))
    copy = aligned_copy(matrix)
    np.testing.assert_array_equal(copy, matrix)
    assert copy.flags.c_contiguous and not np.shares_memory(copy, matrix)


def test_zeros_are_zero():
    np.testing.assert_array_equal(aligned_zeros((200, 300), np.float32), np.zeros((200, 300), np.float32))
