"""The entries of codes in rectangular arrays, in a row."""

import numpy as np
import pytest

from manifold_dl.kernels.coding import Codes, entries


@pytest.mark.parametrize("counts", [[2, 0, 3, 1], [3, 3, 3, 3], [0, 0, 0, 0], []])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entries_are_those_that_count_in_the_order_of_the_signals(counts, dtype):
    n = len(counts)
    indices = np.arange(3 * n, dtype=np.int32).reshape(n, 3)
    values = -indices.astype(dtype)
    found = entries(Codes(np.array(counts, np.int32), indices, values))
    expected = [3 * j + l for j, count in enumerate(counts) for l in range(count)]
    assert found[0].dtype == np.int32 and found[1].dtype == dtype
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], -np.array(expected, dtype))
