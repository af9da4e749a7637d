"""Codes that stay Dask arrays: those of a result, of the estimator and of update rules."""

import pickle
from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
from clusters import problem_data
from sklearn.base import clone

import manifold_dl as mdl
from manifold_dl.engines import Dask
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
