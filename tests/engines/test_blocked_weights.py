"""Weights where an engine has the signals: the bits of signals in memory, and what is refused."""

import dask.array as da
import numpy as np
import pytest
from clusters import assert_same_bits, problem_data

import manifold_dl as mdl
from manifold_dl.engines import Dask, Threads
from manifold_dl.engines.opening import open_observed
from manifold_dl.learning.callbacks import Checkpoint
from manifold_dl.schedules import Blocks


def weights_of(kind, shape, dtype):
    """One weight per signal, some of them zero; or one per entry, a fifth of them zero."""
    rng = np.random.default_rng(1)
    if kind == "signals":
        # No whole numbers: their sum depends on its order.
        return (rng.integers(0, 3, shape[1]) * rng.random(shape[1])).astype(dtype)
    return (rng.random(shape) * (rng.random(shape) > 0.2)).astype(dtype)


def weighted_problem(kind, dtype):
    """Signals with NaN where entries have no weight, their weights, and the arguments of a short run."""
    Y, options = problem_data(dtype)
    W = weights_of(kind, Y.shape, dtype)
    Y[np.broadcast_to(W == 0, Y.shape)] = np.nan
    return Y, W, options | {"callbacks": [mdl.History(condition=True)]}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["signals", "entries"])
def test_weights_give_the_bits_of_threads(client, tmp_path, kind, dtype):
    Y, W, options = weighted_problem(kind, dtype)
    expected = mdl.learn_dictionary(Y, 32, threads=1, weights=W, **options)
    assert_same_bits(mdl.learn_dictionary(Y, 32, engine=Dask(client), weights=W, **options), expected)
    columns = da.from_array(Y, chunks=(16, 2500))
    chunks = (16, 4000) if kind == "entries" else 4000
    lazy = da.from_array(W, chunks=chunks)
    assert_same_bits(
        mdl.learn_dictionary(columns, 32, engine=Dask(client), weights=lazy, **options), expected
    )
    np.save(tmp_path / "Y.npy", Y.T)
    np.save(tmp_path / "W.npy", W.T)
    engine = Threads(2, memory=1 << 18)  # most states go to scratch files
    given = tmp_path / "W.npy" if kind == "entries" else W
    found = mdl.learn_dictionary(tmp_path / "Y.npy", 32, engine=engine, weights=given, **options)
    assert_same_bits(found, expected)


@pytest.mark.parametrize(
    "update, kind",
    [
        (mdl.MOD(), "signals"),
        (mdl.SimCO(codes="fixed"), "entries"),
        (mdl.SimCO("trust-region", mu=0.0), "entries"),
        (mdl.SimCO(mu=0.01, schedule=Blocks(8)), "entries"),
    ],
    ids=["MOD", "fixed codes", "Hessian products", "blocks of atoms"],
)
def test_update_rules_with_weights_give_the_bits_of_threads(client, update, kind):
    Y, W, options = weighted_problem(kind, np.float64)
    options |= {"update": update, "max_iter": 2}
    expected = mdl.learn_dictionary(Y, 32, threads=1, weights=W, **options)
    assert_same_bits(mdl.learn_dictionary(Y, 32, engine=Dask(client), weights=W, **options), expected)


def test_atoms_are_replaced_by_the_same_weighted_signals(client):
    Y, W, options = weighted_problem("entries", np.float64)
    init = mdl.manifolds.Spheres(16, 32).random_point(np.random.default_rng(0))
    init[:, 1] = init[:, 0]
    options |= {"init": init, "max_iter": 4}
    expected = mdl.learn_dictionary(Y, 32, threads=1, weights=W, **options)
    assert expected.history.replaced.sum() > 0
    assert_same_bits(mdl.learn_dictionary(Y, 32, engine=Dask(client), weights=W, **options), expected)


def test_a_checkpoint_with_weights_is_resumed_elsewhere(client, tmp_path):
    Y, W, options = weighted_problem("entries", np.float64)
    options |= {"callbacks": []}
    expected = mdl.learn_dictionary(Y, 32, threads=1, weights=W, **options)
    stop = [Checkpoint(tmp_path / "run.npz"), lambda step: step.iteration == 1]
    mdl.learn_dictionary(Y, 32, engine=Dask(client), weights=W, **options | {"callbacks": stop})
    found = mdl.learn_dictionary(Y, 32, threads=1, weights=W, resume=tmp_path / "run.npz", **options)
    assert_same_bits(found, expected)


def test_the_estimator_takes_sample_weights_of_a_dask_array(client):
    Y, options = problem_data()
    weights = weights_of("signals", Y.shape, float)
    model = mdl.ManifoldDictionaryLearning(32, coder=options["coder"], max_iter=2, random_state=0)
    expected = model.fit(Y.T, sample_weight=weights).components_
    score = model.score(Y.T, sample_weight=weights)
    rows = da.from_array(Y.T, chunks=(4000, 16))
    np.testing.assert_array_equal(model.fit(rows, sample_weight=weights).components_, expected)
    assert model.score(rows, sample_weight=weights) == score


def test_the_estimator_takes_missing_values_of_a_dask_array(client):
    Y, options = problem_data()
    rows = np.where(weights_of("entries", Y.shape, float) > 0, Y, np.nan).T
    settings = {"coder": options["coder"], "max_iter": 2, "random_state": 0, "missing_values": np.nan}
    model = mdl.ManifoldDictionaryLearning(32, **settings)
    expected = model.fit(rows).components_
    score, codes = model.score(rows), model.transform(rows)
    array = da.from_array(rows, chunks=(4000, 16))
    np.testing.assert_array_equal(model.fit(array).components_, expected)
    assert model.score(array) == score
    np.testing.assert_array_equal(model.transform(array).compute(), codes)
    with pytest.raises(ValueError, match="sample_weight and missing_values together"):
        model.fit(array, sample_weight=np.arange(len(rows)))


def test_ones_are_no_weights(client):
    Y, _ = problem_data()
    signals, weights = open_observed(Y, da.ones(Y.shape, chunks=(16, 4000)), engine=Dask(client))
    assert weights is None and signals.energy > 0


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda W: -W, "finite and not negative"),
        (lambda W: W * np.nan, "finite and not negative"),
        (lambda W: W * 0, "all weights are zero"),
        (lambda W: W * 1e300, "divide all weights"),
        (lambda W: W[:, :10], "shape"),
    ],
    ids=["negative", "NaN", "zero", "large", "shape"],
)
def test_wrong_weights_are_refused_with_a_sentence(client, change, words):
    Y, _ = problem_data()
    W = change(da.from_array(weights_of("entries", Y.shape, float), chunks=(16, 4000)))
    with pytest.raises(ValueError, match=words):
        open_observed(Y, W, engine=Dask(client))


def test_mod_with_weights_of_entries_is_refused(client):
    Y, W, options = weighted_problem("entries", np.float64)
    with pytest.raises(ValueError, match="m passes"):
        mdl.learn_dictionary(Y, 32, engine=Dask(client), weights=W, **options | {"update": mdl.MOD()})
