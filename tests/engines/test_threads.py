"""Blocks of signals: the same bits for any number of threads, in order, and nothing left behind."""

import multiprocessing
import threading
import warnings

import numpy as np
import pytest

from manifold_dl import update_problem
from manifold_dl.engines import BlockMap, Threads
from manifold_dl.engines.ordered_map import (
    _pool,
    available_threads,
    most_threads,
    ordered_map,
    ordered_map_reduce,
)
from manifold_dl.engines.protocol import SMALLEST_BLOCK
from manifold_dl.engines.threads import as_engine, as_threads
from manifold_dl.manifolds import Spheres
from manifold_dl.regularizers import Coherence

N = 5000  # three blocks, the last one shorter


@pytest.fixture(scope="module", params=[np.float64, np.float32], ids=["float64", "float32"])
def data(request):
    rng = np.random.default_rng(0)
    spheres = Spheres(12, 30)
    D = spheres.random_point(rng)
    D[:, 1] = D[:, 0]  # some supports without full rank, so that they take part too
    U = spheres.random_tangent_vector(D, rng)
    Y = rng.standard_normal((12, N))
    mask = rng.random((30, N)) < 0.12
    dtype = request.param
    return Y.astype(dtype), mask, D.astype(dtype), U.astype(dtype)


def everything(Y, mask, D, U, threads, **options):
    """All that one problem can be asked for, as a flat list of arrays."""
    problem = update_problem(Y, mask, threads=threads, **options)
    phi = problem.restrict(D, U)
    return [
        problem.cost(D),
        problem.euclidean_gradient(D),
        problem.riemannian_gradient(D),
        problem.riemannian_hessian(D, U),
        problem.preconditioner(D, U),
        problem.codes(D).data,
        *(f(t) for t in (0.0, 0.1, 1.5) for f in (phi, phi.derivative)),
        problem.counts.rank_deficient,
    ]


@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("threads", [2, 8])
def test_same_bits_for_any_number_of_threads(data, mu, threads):
    one, many = everything(*data, 1, mu=mu), everything(*data, threads, mu=mu)
    assert (one[-1] > 0) == (mu == 0)
    for expected, found in zip(one, many, strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


def test_same_bits_with_fixed_codes_and_some_of_the_atoms(data):
    Y, mask, D, U = data
    codes = mask * np.random.default_rng(1).standard_normal(mask.shape)
    I = np.array([4, 0, 17])
    for options in ({"codes": "fixed"}, {"mu": 0.01, "regularizers": [Coherence(1.0)]}):
        runs = [
            everything(Y, codes, D[:, I], U[:, I], threads, atoms=I, dictionary=D, **options)
            for threads in (1, 2, 8)
        ]
        for many in runs[1:]:
            for expected, found in zip(runs[0], many, strict=True):
                np.testing.assert_array_equal(found, expected, strict=True)


def test_results_come_in_order_even_if_the_first_is_the_last_to_be_done():
    others_done = threading.Event()

    def slow_first(i):
        if i == 0:
            assert others_done.wait(timeout=30)  # the second worker finishes item 1 meanwhile
        else:
            others_done.set()
        return i

    assert ordered_map(slow_first, range(20), threads=2) == list(range(20))


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_results_are_taken_one_at_a_time_and_in_order(threads):
    under_way, taken = 0, []

    def take(i):
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        taken.append(i)
        under_way -= 1

    ordered_map_reduce(lambda i: i, range(2000), take, threads)
    assert taken == list(range(2000))


@pytest.mark.parametrize("threads", [2, 4])
def test_few_results_wait_at_a_time(threads):
    taken, ahead = [], threading.Event()

    def slow_first(i):
        assert i - len(taken) <= 2 * threads
        if i == 2 * threads:
            ahead.set()
        if i == 0:
            assert ahead.wait(timeout=30)  # the others come so far, and no further
        return i

    ordered_map_reduce(slow_first, range(1000), taken.append, threads)
    assert taken == list(range(1000))


def test_the_calling_thread_takes_part_in_the_work():
    both_busy, caller = threading.Barrier(2, timeout=30), threading.get_ident()

    def who(i):
        if i < 2:
            both_busy.wait()  # neither goes on before the other has taken an item, too
        return i, threading.get_ident()

    results = ordered_map(who, range(50), threads=2)
    assert [i for i, _ in results] == list(range(50))
    assert len({thread for _, thread in results}) == 2 and caller in {thread for _, thread in results}


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_an_exception_ends_the_map_and_is_raised(threads):
    done = []

    def fail_at_five(i):
        if i == 5:
            raise KeyError("five")
        done.append(i)

    with pytest.raises(KeyError, match="five"):
        ordered_map(fail_at_five, range(1_000_000), threads)
    assert len(done) < 500_000
    assert ordered_map(abs, range(10), threads) == list(range(10))


def test_a_map_inside_a_map_does_not_wait_for_ever():
    # All threads of the pool are busy with the outer items: the calling thread does the inner ones.
    inner = lambda i: sum(ordered_map(abs, range(i), threads=2))
    assert ordered_map(inner, range(20), threads=2) == [i * (i - 1) // 2 for i in range(20)]


def test_one_block_runs_inline():
    before = _pool.cache_info()
    caller = threading.get_ident()
    assert ordered_map(lambda _: threading.get_ident(), ["only"], threads=8) == [caller]
    assert ordered_map(lambda _: threading.get_ident(), [1, 2, 3], threads=1) == [caller] * 3
    rng = np.random.default_rng(0)
    problem = update_problem(
        rng.standard_normal((4, SMALLEST_BLOCK)), np.ones((2, SMALLEST_BLOCK), bool), threads=8
    )
    problem.cost(problem.manifold.random_point(rng))
    after = _pool.cache_info()
    assert (after.hits, after.misses) == (before.hits, before.misses)  # no pool was made or used


def test_all_numbers_of_threads_share_one_bounded_pool():
    for threads in range(1, 60):
        assert ordered_map(abs, range(100), threads) == list(range(100))
    alive = [thread for thread in threading.enumerate() if thread.name.startswith("manifold_dl")]
    assert len(alive) <= most_threads() == max(8, available_threads())


def total_of_squares(queue):
    queue.put(sum(ordered_map(lambda i: i * i, range(100), threads=2)))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
def test_works_after_a_fork():
    # The parent's threads do not exist in the child; a pool inherited from it would wait for ever.
    assert sum(ordered_map(abs, range(100), threads=2)) == 4950
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=total_of_squares, args=(queue,))
    with warnings.catch_warnings():
        # Python 3.12 warns of any fork in a process that has threads: that is the point here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    try:
        assert queue.get(timeout=30) == 328350
        child.join(timeout=30)
        assert child.exitcode == 0
    finally:
        child.kill()


def test_number_of_threads():
    assert as_threads(None) == available_threads() >= 1
    assert as_threads(3) == as_threads(np.int64(3)) == 3


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2", "two", [2], float("nan"), float("inf")])
def test_a_wrong_number_of_threads_is_refused(threads):
    with pytest.raises(ValueError, match=r"threads=.*whole number"):
        as_threads(threads)


# The engine


def block_sum(rows, factor):
    return factor * rows.sum(), rows * factor


def sum_of_state(state):
    return float(state.sum()), None


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_totals_and_states_of_maps(threads):
    engine, rows = Threads(threads), np.random.default_rng(0).standard_normal((11, 5))
    blocks = engine.open(list(rows))
    scaled = BlockMap(block_sum, (blocks,), (2.0,))
    total = BlockMap(sum_of_state, (scaled,))
    # In one round, although `total` needs the states of `scaled`.
    first, second = engine.total(scaled, total)
    assert first == pytest.approx(2 * rows.sum()) and second == pytest.approx(2 * rows.sum())
    np.testing.assert_array_equal(engine.states(scaled), 2 * rows)


def test_states_of_parents_are_computed_when_they_are_needed():
    engine = Threads(2)
    scaled = BlockMap(block_sum, (engine.open([np.ones(3), np.ones(4)]),), (3.0,))
    assert engine.total(BlockMap(sum_of_state, (scaled,))) == [21.0]
    assert [len(state) for state in engine.states(scaled)] == [3, 4]


def fails_on_the_second(rows):
    if len(rows) == 4:
        raise KeyError("four")
    return 1.0, rows


@pytest.mark.parametrize("threads", [1, 2])
def test_a_map_that_failed_has_no_states(threads):
    engine = Threads(threads)
    blocks = engine.open([np.ones(3), np.ones(4), np.ones(5)])
    broken = BlockMap(fails_on_the_second, (blocks,))
    with pytest.raises(KeyError, match="four"):
        engine.total(broken)
    assert broken.states is None


def test_no_blocks_have_no_total():
    engine = Threads(1)
    assert engine.total(BlockMap(sum_of_state, (engine.open([]),))) == [None]


def test_the_engine_is_given_once():
    assert as_engine(threads=3) == Threads(3)
    assert as_engine(engine=Threads(2)) == Threads(2)
    with pytest.raises(ValueError, match="give one of them"):
        as_engine(threads=2, engine=Threads(2))
    with pytest.raises(ValueError, match=r"threads=0.*whole number"):
        Threads(0)


def test_a_map_is_run_once():
    engine = Threads(2)
    blocks = engine.open([np.ones(3), np.ones(4)])
    scaled = BlockMap(block_sum, (blocks,), (3.0,))
    engine.total(scaled)
    for done in (scaled, blocks):
        with pytest.raises(ValueError, match="make a new BlockMap"):
            engine.total(done)
    np.testing.assert_array_equal(np.concatenate(engine.states(blocks)), np.ones(7))


def overflows(x):
    return float(np.exp(x).sum()), None


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_numpy_errors_are_handled_alike_in_all_threads(threads):
    engine = Threads(threads)
    with np.errstate(over="ignore"):  # a warning would be an error
        total = engine.total(BlockMap(overflows, (engine.open([np.full(3, 1e3)] * 20),)))
    assert total == [np.inf]


def test_one_problem_in_many_threads():
    rng = np.random.default_rng(0)
    Y, mask = rng.standard_normal((6, N)), rng.random((9, N)) < 0.2
    points = [Spheres(6, 9).random_point(seed) for seed in range(8)]
    expected = [update_problem(Y, mask, mu=0.1).cost(point) for point in points]
    for _ in range(5):
        problem = update_problem(Y, mask, mu=0.1, threads=2)
        # The first evaluations all need the supports arranged for the kernels.
        assert ordered_map(problem.cost, points, threads=8) == expected
