"""Dask arrays as signals and as codes: the bits of arrays for every form of them."""

import pickle
from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from clusters import assert_same_bits, problem_data
from sklearn.base import clone

import manifold_dl as mdl
from manifold_dl.engines import Dask, Threads
from manifold_dl.engines.dask_codes import in_chunks
from manifold_dl.learning.result import Reason


def test_the_estimator_learns_from_a_dask_array_and_its_codes_stay_one(client):
    Y, options = problem_data()
    model = mdl.ManifoldDictionaryLearning(32, coder=options["coder"], max_iter=2, random_state=0)
    expected = model.fit_transform(Y.T)
    components, score = model.components_, model.score(Y.T)
    rows = da.from_array(Y.T, chunks=(4000, 16))
    codes = model.fit_transform(rows)
    assert isinstance(codes, da.Array) and isinstance(model.components_, np.ndarray)
    np.testing.assert_array_equal(model.components_, components)
    np.testing.assert_array_equal(codes.compute(), expected)
    assert model.score(rows) == score and model.n_samples_seen_ == 9000
    with pytest.raises(ValueError, match="16 features"):
        model.transform(da.ones((10, 5)))


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


@pytest.mark.parametrize("update", [mdl.SimCO(mu=0.05), mdl.MOD()], ids=lambda rule: type(rule).__name__)
def test_update_rules_take_dask_arrays_by_themselves(client, update):
    Y, options = problem_data()
    D = mdl.manifolds.Spheres(16, 32).random_point(np.random.default_rng(0))
    X = options["coder"].encode(Y, D)
    D_new, X_new = update(Y, D, X)
    columns, chunked = da.from_array(Y, chunks=(16, 2500)), in_chunks(X, (2500, 2500, 2500, 1500))
    for codes in (X, chunked):
        D_there, X_there = replace(update, engine=Dask(client))(columns, D, codes)
        np.testing.assert_array_equal(D_there, D_new)
        assert isinstance(X_there, da.Array) == (codes is chunked)
        X_there = X_there.compute() if codes is chunked else X_there
        assert (X_there != X_new).nnz == 0


def test_an_estimator_with_a_client_is_cloned_and_its_codes_may_be_sparse(client):
    Y, options = problem_data()
    model = mdl.ManifoldDictionaryLearning(32, coder=options["coder"], max_iter=1, random_state=0)
    rows = da.from_array(Y.T, chunks=(4000, 16))
    model.set_params(engine=Dask(client), sparse_output=True)
    assert clone(model).engine == model.engine
    assert pickle.loads(pickle.dumps(model.engine)).client == client.scheduler.address
    codes = model.fit(rows).transform(rows)
    again = model.inverse_transform(codes)
    assert isinstance(codes, da.Array) and isinstance(again, da.Array)
    expected = model.transform(Y.T)
    assert (codes.compute() != expected).nnz == 0
    np.testing.assert_array_equal(again.compute(), model.inverse_transform(expected))
    with pytest.raises(TypeError, match="give one chunk after"):
        model.partial_fit(rows)


def test_the_partial_result_of_a_dask_array_has_lazy_codes(client):
    Y, options = problem_data()

    def fail(step):
        if step.iteration == 1:
            raise RuntimeError("a callback failed")

    columns = da.from_array(Y, chunks=(16, 2500))
    with pytest.raises(RuntimeError) as caught:
        mdl.learn_dictionary(columns, 32, engine=Dask(client), **options | {"callbacks": [fail]})
    partial = caught.value.partial
    with pytest.raises(RuntimeError) as expected:
        mdl.learn_dictionary(Y, 32, threads=1, **options | {"callbacks": [fail]})
    assert partial.reason is Reason.FAILED and isinstance(partial.codes, da.Array)
    np.testing.assert_array_equal(partial.dictionary, expected.value.partial.dictionary)
    codes = options["coder"].encode(Y, partial.dictionary)
    assert (partial.codes.compute() != codes).nnz == 0
