"""Mini-batches where an engine has the signals: the bits of signals in memory."""

import dask.array as da
import numpy as np
import pytest
from clusters import assert_same_bits, problem_data

import manifold_dl as mdl
from manifold_dl.engines import Dask, Threads


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_mini_batches_give_the_bits_of_threads(client, tmp_path, dtype, weighted):
    Y, options = problem_data(dtype)
    options |= {"minibatches": mdl.MiniBatches(size=2048, full=0.4), "max_iter": 3}
    if weighted:
        W = np.random.default_rng(1).integers(0, 3, Y.shape).astype(dtype)
        options |= {"weights": W}
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    assert expected.history.sets.tolist() == [5, 5, 1]  # 9,000 signals are five mini-batches
    assert_same_bits(mdl.learn_dictionary(Y, 32, threads=2, **options), expected)
    columns = da.from_array(Y, chunks=(16, 2500))
    assert_same_bits(mdl.learn_dictionary(columns, 32, engine=Dask(client), **options), expected)
    np.save(tmp_path / "rows.npy", Y.T)
    engine = Threads(2, memory=0)
    assert_same_bits(mdl.learn_dictionary(tmp_path / "rows.npy", 32, engine=engine, **options), expected)
