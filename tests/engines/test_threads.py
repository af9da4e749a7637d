"""Blocks of signals: the same bits for any number of threads, in order, and nothing left behind."""

import multiprocessing
import threading
import warnings

import numpy as np
import pytest

from manifold_dl import update_problem
from manifold_dl.engines.threads import (
    BLOCK_SIZE,
    _pool,
    as_threads,
    available_threads,
    gather,
    share_out,
    split,
)
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
        problem.counts.deficient,
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


def test_blocks_are_views_that_cover_everything_once():
    rng = np.random.default_rng(0)
    signals = rng.standard_normal((N, 3))
    sizes = rng.integers(0, 4, N)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    indices = rng.integers(0, 9, indptr[-1]).astype(np.int32)
    blocks = split(signals, indptr, indices)
    assert [len(block.signals) for block in blocks] == [BLOCK_SIZE, BLOCK_SIZE, N - 2 * BLOCK_SIZE]
    assert all(np.shares_memory(block.signals, signals) for block in blocks)
    np.testing.assert_array_equal(np.concatenate([block.signals for block in blocks]), signals)
    np.testing.assert_array_equal(np.concatenate([np.diff(block.indptr) for block in blocks]), sizes)
    np.testing.assert_array_equal(np.concatenate([block.indices for block in blocks]), indices)
    np.testing.assert_array_equal(np.concatenate([indices[block.entries] for block in blocks]), indices)


def test_results_come_in_order_even_if_the_first_is_the_last_to_be_done():
    others_done = threading.Event()

    def slow_first(i):
        if i == 0:
            assert others_done.wait(timeout=30)  # the second worker finishes item 1 meanwhile
        else:
            others_done.set()
        return i

    assert gather(slow_first, range(20), threads=2) == list(range(20))


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_results_are_taken_one_at_a_time_and_in_order(threads):
    under_way, taken = 0, []

    def take(i):
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        taken.append(i)
        under_way -= 1

    share_out(lambda i: i, range(2000), take, threads)
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

    share_out(slow_first, range(1000), taken.append, threads)
    assert taken == list(range(1000))


def test_gather_shares_the_work_with_the_caller():
    both_busy, caller = threading.Barrier(2, timeout=30), threading.get_ident()

    def who(i):
        if i < 2:
            both_busy.wait()  # neither goes on before the other has taken an item, too
        return i, threading.get_ident()

    results = gather(who, range(50), threads=2)
    assert [i for i, _ in results] == list(range(50))
    assert len({thread for _, thread in results}) == 2 and caller in {thread for _, thread in results}


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_gather_passes_on_an_exception_and_stops(threads):
    done = []

    def fail_at_five(i):
        if i == 5:
            raise KeyError("five")
        done.append(i)

    with pytest.raises(KeyError, match="five"):
        gather(fail_at_five, range(1_000_000), threads)
    assert len(done) < 500_000
    assert gather(abs, range(10), threads) == list(range(10))


def test_gather_inside_gather_does_not_wait_for_ever():
    # All threads of the pool are busy with the outer items: the inner ones are done by whoever asks.
    inner = lambda i: sum(gather(abs, range(i), threads=2))
    assert gather(inner, range(20), threads=2) == [i * (i - 1) // 2 for i in range(20)]


def test_one_block_runs_inline():
    before = _pool.cache_info()
    caller = threading.get_ident()
    assert gather(lambda _: threading.get_ident(), ["only"], threads=8) == [caller]
    assert gather(lambda _: threading.get_ident(), [1, 2, 3], threads=1) == [caller] * 3
    rng = np.random.default_rng(0)
    problem = update_problem(rng.standard_normal((4, BLOCK_SIZE)), np.ones((2, BLOCK_SIZE), bool), threads=8)
    problem.cost(problem.manifold.random_point(rng))
    after = _pool.cache_info()
    assert (after.hits, after.misses) == (before.hits, before.misses)  # no pool was made, none was asked for


def total_of_squares(queue):
    queue.put(sum(gather(lambda i: i * i, range(100), threads=2)))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
def test_works_after_a_fork():
    # The parent's threads do not exist in the child; a pool inherited from it would wait for ever.
    assert sum(gather(abs, range(100), threads=2)) == 4950
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
