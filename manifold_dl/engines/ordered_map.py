"""Functions of many items on the threads of this process, with results in the order of the items.

`threads.py` runs its rounds through `ordered_map_reduce`, and so does every worker of a cluster.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import lru_cache
from threading import Condition
from typing import Any


def available_threads() -> int:
    """The processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map_reduce(
    function: Callable[[Any], Any], items: Sequence[Any], take: Callable[[Any], Any], threads: int = 1
) -> None:
    """Call take(function(item)) for every item, in order; `threads` threads compute, the caller among them.

    A thread that is done takes the next item. A result is handed to `take` as soon as all those before it
    have been, by the thread that computed it: never two at a time. No thread begins an item that is more than
    two items per thread ahead of the one to be taken next, so memory does not grow with the number of items.

    Examples
    --------
    >>> totals = []
    >>> ordered_map_reduce(abs, [-1, 2, -3], totals.append, threads=2)
    >>> totals
    [1, 2, 3]
    """
    if threads == 1 or len(items) < 2:
        for item in items:
            take(function(item))
        return
    turns, waiting, changed, taken, failed = iter(range(len(items))), {}, Condition(), 0, False

    def work() -> None:
        nonlocal taken, failed
        try:
            for turn in turns:  # one iterator for all threads: each turn comes up once
                with changed:  # the thread with the item to be taken next never waits here
                    while turn - taken > 2 * threads and not failed:
                        changed.wait()
                if failed:
                    return
                result = function(items[turn])
                with changed:
                    waiting[turn] = result
                    while taken in waiting:
                        take(waiting.pop(taken))
                        taken += 1
                    changed.notify_all()
        except BaseException:  # an error in one item: no thread begins another
            with changed:
                failed = True
                changed.notify_all()
            raise

    # Each with a copy of the caller's context: np.errstate holds in all threads.
    n_helpers = min(threads, len(items), most_threads()) - 1
    helpers = [_pool().submit(copy_context().run, work) for _ in range(n_helpers)]
    try:
        work()
    finally:  # a helper that has not begun by now would find nothing left to do
        helpers = [helper for helper in helpers if not helper.cancel()]
        wait(helpers)
    for helper in helpers:
        helper.result()


def ordered_map(function: Callable[[Any], Any], items: Sequence[Any], threads: int = 1) -> list[Any]:
    """[function(item) for every item], computed by `threads` threads.

    Examples
    --------
    >>> ordered_map(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    results: list[Any] = []
    ordered_map_reduce(function, items, results.append, threads)
    return results


def most_threads() -> int:
    """The most threads that compute at a time: more than there are processors make nothing faster.

    Eight on small machines, where a program may be tried that will run on a larger one.
    """
    return max(available_threads(), 8)


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """The one pool of this process, for all numbers of threads and all callers."""
    return ThreadPoolExecutor(max_workers=most_threads(), thread_name_prefix="manifold_dl")


def drop_pool() -> None:
    """In the child of a fork, where its threads do not exist: the next caller makes a new pool."""
    _pool.cache_clear()
