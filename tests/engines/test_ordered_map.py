"""Maps over threads: results in order, a bounded pool, errors, and processes that fork."""

import multiprocessing
import threading
import warnings

import numpy as np
import pytest

from manifold_dl import update_problem
from manifold_dl.engines.ordered_map import (
    _pool,
    available_threads,
    most_threads,
    ordered_map,
    ordered_map_reduce,
)
from manifold_dl.engines.protocol import SMALLEST_BLOCK


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
