"""The engine of a cluster: the bits of threads on real processes, few rounds, and what it refuses."""

from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import dask.array as da
import numpy as np
import pytest
from clusters import assert_same_bits, local_cluster, problem_data

import manifold_dl as mdl
from manifold_dl.engines import BlockMap, Dask, Threads, rounds
from manifold_dl.engines.cluster import assigned
from manifold_dl.engines.dask import as_client
from manifold_dl.engines.sources import squared_norm_block
from manifold_dl.engines.worker import neighbours
from manifold_dl.kernels.reduced import Block
from manifold_dl.learning.callbacks import Checkpoint
from manifold_dl.problem.pairs import share_products
from manifold_dl.schedules import Blocks, OneAtATime


@pytest.fixture(scope="module", params=[1, 2, 4])
def workers(request):
    if request.param == 2:
        yield request.getfixturevalue("client")
    else:
        with local_cluster(request.param) as client:
            yield client


@pytest.mark.parametrize(
    "change, dtype",
    [
        ({}, np.float64),
        ({}, np.float32),
        ({"minibatches": mdl.MiniBatches(size=2048, full=0.4)}, np.float32),
        ({"weights": np.random.default_rng(1).integers(0, 3, 9000) * 0.3}, np.float64),
        ({"weights": np.random.default_rng(1).integers(0, 3, (16, 9000)) * 0.3}, np.float32),
    ],
    ids=[
        "float64",
        "float32",
        "mini-batches-float32",
        "weights of signals-float64",
        "weights of entries-float32",
    ],
)
def test_any_number_of_workers_gives_the_bits_of_threads(workers, change, dtype):
    Y, options = problem_data(dtype)
    options |= change
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    assert_same_bits(mdl.learn_dictionary(Y, 32, threads=2, **options), expected)
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


@pytest.mark.parametrize("mu, n_atoms", [(0.05, 32), (0.0, 32), (0.05, 300)])
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


def test_separate_products_give_the_bits_of_threads(client):
    Y, options = problem_data()
    assert not share_products(300, few_pairs(Y), Threads(1))  # 9,000 supports of 3 have 81,000 pairs
    options |= {"max_iter": 2}
    expected = mdl.learn_dictionary(Y, 300, threads=1, **options)
    assert_same_bits(mdl.learn_dictionary(Y, 300, engine=Dask(client), **options), expected)


def few_pairs(Y):
    """Blocks of signals with the supports of random codes."""
    n = Y.shape[1]
    block = Block(Y.T, np.arange(0, 3 * n + 1, 3), np.tile(np.arange(300, dtype=np.int32), n // 100), None)
    return Threads(1).open([block])


def test_a_cluster_is_found_by_its_address(client):
    Y, options = problem_data()
    options |= {"max_iter": 1}
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    address = client.scheduler.address
    try:
        assert_same_bits(mdl.learn_dictionary(Y, 32, engine=Dask(address), **options), expected)
    finally:
        as_client(address).close()


ERROR_AND_NEXT_CODES = (
    "codes_block codes_block on_codes_block usage_block code_energies_block encode_codes_block usage_block"
)


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
        ERROR_AND_NEXT_CODES: 3 * md + dd,  # D for the error; D by row and by tile, and DᵀD for the coder
    }
    # Besides: names of functions, cosines, angles and slopes, keys of what was released.
    for name, size in expected.items():
        assert size < min(sizes[name]) and max(sizes[name]) < size + 12_000, name


def test_large_messages_and_many_workers_change_no_bit(workers, monkeypatch):
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    monkeypatch.setattr(rounds, "INLINE", 0)  # every message is sent from worker to worker
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


def test_two_runs_share_a_client(client):
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    columns = da.from_array(Y, chunks=(16, 2500))
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(mdl.learn_dictionary, columns, 32, engine=Dask(client), **options) for _ in "12"]
        for run in runs:
            assert_same_bits(run.result(), expected)


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
        ({"coder": mdl.RmsLasso(0.1)}, "coder .* needs all signals at a time"),
        (
            {"coder": mdl.BestOf([mdl.OMP(sparsity=3), mdl.IHT(sparsity=3)])},
            "coder .* needs all signals at a time",
        ),
        ({"replace": lambda Y, D, X: (D, [])}, "replacement policy .* takes arrays"),
    ],
    ids=["K-SVD", "single atoms", "own update", "own coder", "RmsLasso", "BestOf", "own replacement"],
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
