"""The engine of a cluster: the bits of threads on real processes, few rounds, and what it refuses."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cloudpickle
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from clusters import assert_same_bits, limited, local_cluster, problem_data  # noqa: F401 - a fixture
from sklearn.base import clone

import manifold_dl as mdl
from manifold_dl.engines import BlockMap, Dask, Threads, rounds
from manifold_dl.engines.cluster import assigned
from manifold_dl.engines.dask_arrays import in_chunks
from manifold_dl.engines.sources import squared_norm_block
from manifold_dl.engines.worker import neighbours
from manifold_dl.learning.callbacks import Checkpoint
from manifold_dl.schedules import Blocks, OneAtATime


@pytest.fixture(scope="module", params=[1, 2, 4])
def workers(request):
    with local_cluster(request.param) as client:
        yield client


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


def test_any_number_of_workers_gives_the_bits_of_threads(workers):
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    engine = Dask(workers)
    columns = da.from_array(Y, chunks=(16, 2500))  # no block is a chunk
    assert_same_bits(mdl.learn_dictionary(columns, 32, engine=engine, **options), expected)


@pytest.mark.parametrize(
    "update, coder",
    [
        (mdl.MOD(), mdl.OMP(sparsity=3)),
        (mdl.SimCO(mu=0.01, schedule=Blocks(8)), mdl.ForwardSelection(sparsity=3)),
        (mdl.SimCO("trust-region", mu=0.0), mdl.FOCUSS(sparsity=3)),
        (mdl.SimCO(codes="fixed"), mdl.IHT(sparsity=3)),
    ],
    ids=["MOD", "blocks of atoms", "Hessian products", "fixed codes"],
)
def test_update_rules_and_coders_give_the_bits_of_threads(client, update, coder):
    Y, options = problem_data(np.float32)
    options |= {"update": update, "coder": coder, "max_iter": 2, "callbacks": [mdl.History(condition=True)]}
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    found = mdl.learn_dictionary(Y, 32, engine=Dask(client), **options)
    assert_same_bits(found, expected)
    np.testing.assert_array_equal(found.history.kappa, expected.history.kappa)


def test_signals_whose_squares_overflow_get_the_same_bits(client):
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y * 2.0**200, 32, threads=1, **options)
    assert_same_bits(mdl.learn_dictionary(Y * 2.0**200, 32, engine=Dask(client), **options), expected)


def test_useless_atoms_are_replaced_by_the_same_signals(client):
    Y, options = problem_data()
    init = mdl.manifolds.Spheres(16, 32).random_point(np.random.default_rng(0))
    init[:, 1] = init[:, 0]
    options |= {"init": init, "max_iter": 4}
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    assert expected.history.replaced.sum() > 0
    assert_same_bits(mdl.learn_dictionary(Y, 32, engine=Dask(client), **options), expected)


@pytest.mark.parametrize("mu, n_atoms", [(0.05, 32), (0.0, 32), (0.05, 150)])
def test_an_iteration_takes_at_most_fourteen_rounds(client, mu, n_atoms):
    Y, options = problem_data()
    engine = Dask(client)
    options |= {"update": mdl.SimCO(mu=mu), "replace": None}
    counts = []
    for max_iter in (2, 6):
        before = engine.rounds()
        mdl.learn_dictionary(Y, n_atoms, engine=engine, **options | {"max_iter": max_iter})
        counts.append(engine.rounds() - before)
    assert (counts[1] - counts[0]) / 4 <= 14


def test_messages_hold_what_their_rounds_read(client, monkeypatch):
    m, d = 16, 128
    Y, options = problem_data()
    argument, sizes = rounds._Submission._argument, {}

    def measured(self, message, address):
        names = [node.function.__name__ for node in message.nodes if node.function is not None]
        sizes.setdefault(" ".join(names), set()).add(len(cloudpickle.dumps(message, protocol=5)))
        return argument(self, message, address)

    monkeypatch.setattr(rounds._Submission, "_argument", measured)
    mdl.learn_dictionary(Y, d, engine=Dask(client), **options | {"max_iter": 2, "replace": None})
    md, dd = 8 * m * d, 8 * d * d
    expected = {
        "fit_block": md + dd,  # D, DᵀD
        "products_block refit_block": 3 * md + 3 * dd,  # D, DᵀD, U and D again; D(t)ᵀD(t) and its derivative
        "refit_block": 2 * dd,  # the last two
    }
    # Besides: names of functions, cosines, angles and slopes, keys of what was released.
    for name, size in expected.items():
        assert size < min(sizes[name]) and max(sizes[name]) < size + 12_000, name


def test_large_messages_and_many_workers_change_no_bit(workers, monkeypatch):
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    monkeypatch.setattr(rounds, "INLINE", 0)  # every message travels from worker to worker
    monkeypatch.setattr(rounds, "FEW", 1)  # sums are added on the workers
    assert_same_bits(mdl.learn_dictionary(Y, 32, engine=Dask(workers), **options), expected)


def test_states_are_released_with_their_maps(client):
    engine, items = Dask(client), [np.full((10, 2), float(b)) for b in range(6)]
    blocks = engine.open(items)
    doubled = BlockMap(doubled_block, (blocks,))
    assert engine.total(doubled) == [600.0]
    key = doubled.states.node.key
    assert sum(client.run(states_kept, key).values()) == 6
    del doubled
    engine.total(BlockMap(squared_norm_block, (blocks,)))  # its message says so
    assert sum(client.run(states_kept, key).values()) == 0
    assert sum(client.run(states_kept, blocks.states.node.key).values()) == 6


def doubled_block(rows):
    return float(2 * rows.sum()), 2 * rows


def states_kept(key):
    from manifold_dl.engines.worker import _sessions

    return sum(len(session.states.get(key, {})) for session in _sessions.values())


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


def test_an_update_problem_runs_on_the_cluster(client):
    Y, options = problem_data()
    D = mdl.manifolds.Spheres(16, 32).random_point(np.random.default_rng(0))
    X = options["coder"].encode(Y, D)
    results = [mdl.SimCO(mu=0.1, engine=engine)(Y, D, X) for engine in (Threads(1), Dask(client))]
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1].data, results[1][1].data)


def test_a_run_is_resumed_on_the_cluster_from_a_checkpoint_of_it(client, tmp_path):
    Y, options = problem_data()
    file = tmp_path / "run.npz"
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    stop = [Checkpoint(file), lambda step: step.iteration == 1]
    mdl.learn_dictionary(Y, 32, engine=Dask(client), **options | {"callbacks": stop})
    found = mdl.learn_dictionary(Y, 32, engine=Dask(client), resume=file, **options)
    assert_same_bits(found, expected)


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
        lambda columns: columns.rechunk((16, 9000)),
        lambda columns: columns.astype(">f8"),
        lambda columns: columns.map_blocks(scipy.sparse.csc_array),
        lambda columns: (columns * 2) / 2,
    ],
    ids=["tiny chunks", "one chunk", "big-endian", "sparse chunks", "a computation"],
)
def test_odd_arrays_give_the_bits_of_an_array(client, make):
    Y, options = problem_data()
    options |= {"max_iter": 1}
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    assert_same_bits(mdl.learn_dictionary(make(da.from_array(Y, chunks=(16, 2500))), 32, **options), expected)


def test_integers_and_single_precision_have_codes_of_their_type(client):
    Y, options = problem_data()
    for signals in (np.rint(100 * Y).astype(np.int16), Y.astype(np.float32)):
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


def test_two_runs_share_a_client(client):
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    columns = da.from_array(Y, chunks=(16, 2500))
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(mdl.learn_dictionary, columns, 32, engine=Dask(client), **options) for _ in "12"]
        for run in runs:
            assert_same_bits(run.result(), expected)


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


class Correlations:
    def encode(self, signals, dictionary):
        return dictionary.T @ signals


@pytest.mark.parametrize(
    "change, words",
    [
        ({"update": mdl.KSVD()}, "K-SVD .* needs them in memory"),
        ({"update": mdl.SimCO(schedule=OneAtATime())}, "moves single atoms"),
        ({"update": lambda Y, D, X: (D, X)}, "update rule .* takes arrays"),
        ({"coder": Correlations()}, "coder .* takes arrays"),
        ({"replace": lambda Y, D, X: (D, [])}, "replacement policy .* takes arrays"),
    ],
    ids=["K-SVD", "single atoms", "own update", "own coder", "own replacement"],
)
def test_parts_without_a_block_form_are_refused_with_a_sentence(client, change, words):
    Y, options = problem_data()
    with pytest.raises((ValueError, TypeError), match=words):
        mdl.learn_dictionary(Y, 32, engine=Dask(client), **options | change)


def test_signals_that_are_not_finite_are_refused_by_number(client):
    Y, options = problem_data()
    Y[3, 7777] = np.nan
    with pytest.raises(ValueError, match="signal 7777"):
        mdl.learn_dictionary(da.from_array(Y, chunks=(16, 3000)), 32, engine=Dask(client), **options)


def test_an_error_in_a_block_is_raised_as_it_is(client):
    engine = Dask(client)
    blocks = engine.open([1.0, 0.0, 2.0])
    with pytest.raises(ZeroDivisionError):
        engine.total(BlockMap(inverse_block, (blocks,)))


def inverse_block(number):
    return 1 / number, None


@pytest.mark.parametrize("engine", [{"client": 3}, {"patience": 0.0}, {"timeout": -1.0}])
def test_arguments_are_refused_with_a_sentence(engine):
    with pytest.raises((TypeError, ValueError), match=next(iter(engine))):
        Dask(**engine).open([1])


def test_blocks_move_only_where_workers_came_or_went():
    before = assigned([""] * 8, {"a": 1, "b": 1})
    assert before == ["a"] * 4 + ["b"] * 4
    after = assigned(before, {"b": 1})
    assert after == ["b"] * 8
    with_new = assigned(after, {"b": 1, "c": 3})
    assert with_new.count("c") == 6 and with_new.count("b") == 2
    assert assigned(["x"] * 2, {"a": 1, "b": 1, "c": 1}).count("a") <= 1
    assert neighbours([1, 2, 5]) == [[1, 2], [5]]
