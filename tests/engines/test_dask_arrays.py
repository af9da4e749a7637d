"""Dask arrays as signals: the bits of arrays for every form of them."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from clusters import assert_same_bits, problem_data

import manifold_dl as mdl
from manifold_dl.engines import Dask, Threads


def test_persisted_arrays_and_chunks_across_signals_are_accepted(client):
    Y, options = problem_data()
    options |= {"max_iter": 1}
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    persisted = client.persist(da.from_array(Y, chunks=(16, 4096)))
    assert_same_bits(mdl.learn_dictionary(persisted, 32, engine=Dask(client), **options), expected)
    with pytest.warns(UserWarning, match="2 chunks along its 16 rows"):
        found = mdl.learn_dictionary(da.from_array(Y, chunks=(8, 4096)), 32, **options)
    assert_same_bits(found, expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda columns: columns.rechunk((16, 37)),
        lambda columns: columns.rechunk(((16,), (1, 4, 1024, 4971, 3000))),
        lambda columns: columns.rechunk((16, 9000)),
        lambda columns: columns.astype(">f8"),
        lambda columns: columns.map_blocks(scipy.sparse.csc_array),
        lambda columns: (columns * 2) / 2,
    ],
    ids=["tiny chunks", "chunks of all sizes", "one chunk", "big-endian", "sparse chunks", "a computation"],
)
def test_odd_arrays_give_the_bits_of_an_array(client, make):
    Y, options = problem_data()
    options |= {"max_iter": 1}
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    assert_same_bits(mdl.learn_dictionary(make(da.from_array(Y, chunks=(16, 2500))), 32, **options), expected)


def test_other_types_of_numbers_have_codes_of_their_type(client):
    Y, options = problem_data()
    for signals in (np.rint(100 * Y).astype(np.int16), Y.astype(np.float16), Y > 0, Y.astype(np.float32)):
        expected = mdl.learn_dictionary(signals, 32, threads=1, **options)
        found = mdl.learn_dictionary(da.from_array(signals, chunks=(16, 2500)), 32, **options)
        assert found.codes.dtype == expected.codes.dtype
        assert_same_bits(found, expected)


def test_chunks_of_another_shape_than_announced_are_refused(client):
    Y, options = problem_data()
    columns = da.from_array(Y, chunks=(16, 2500)).map_blocks(without_one, dtype=float)
    with pytest.raises(ValueError, match="its chunks say"):
        mdl.learn_dictionary(columns, 32, **options)


def without_one(columns):
    return columns[:, :-1]


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda columns: columns[:, columns[0] > 0], ValueError, r"unknown. Call `compute_chunk_sizes\(\)`"),
        (lambda columns: columns + 1j, TypeError, "dtype complex128"),
        (lambda columns: columns.astype(object), TypeError, "dtype object"),
        (lambda columns: columns[:, :0], ValueError, r"shape \(16, 0\)"),
        (lambda columns: columns[..., None], ValueError, r"shape \(16, 9000, 1\)"),
        (lambda columns: da.ma.masked_greater(columns, 2.0), TypeError, "masked array"),
        (lambda columns: columns.map_blocks(of_a_damaged_file, dtype=float), ZeroDivisionError, "chunk 2"),
    ],
    ids=["unknown sizes", "complex", "object", "empty", "three axes", "masked", "failing chunk"],
)
@pytest.mark.parametrize("threads", [False, True], ids=["cluster", "threads"])
def test_arrays_that_are_no_signals_are_refused_with_a_sentence(client, make, error, words, threads):
    Y, options = problem_data()
    signals = make(da.from_array(Y, chunks=(16, 2500)))
    engine = Threads(1, memory=0) if threads else Dask(client)
    with pytest.raises(error, match=words):
        mdl.learn_dictionary(signals, 32, engine=engine, **options)


def of_a_damaged_file(columns, block_info):
    if block_info[0]["chunk-location"] == (0, 2):
        raise ZeroDivisionError("chunk 2")
    return columns


@pytest.mark.parametrize("memory", [0, 10**9], ids=["on disk", "in memory"])
def test_sparse_chunks_on_threads_give_the_bits_of_an_array(memory):
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    columns = da.from_array(Y, chunks=(16, 2500)).map_blocks(scipy.sparse.csc_array)
    engine = Threads(1, memory=memory)
    assert_same_bits(mdl.learn_dictionary(columns, 32, engine=engine, **options), expected)


def test_an_engine_and_a_number_of_threads_exclude_each_other(client):
    Y, options = problem_data()
    with pytest.raises(ValueError, match="give one of them"):
        mdl.learn_dictionary(
            da.from_array(Y, chunks=(16, 2500)), 32, engine=Dask(client), threads=2, **options
        )
