"""Training data in column blocks, and map-reduce over them.

The blocks have a size that does not depend on the number of threads, and partial results come
back in block order. So one thread and eight threads add the same numbers in the same order, and give
the same bits. Called by `objective.py` and by the sparse coders.
"""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral
from threading import Condition

import numpy as np

from manifold_dl.kernels import reduced as kernels

# Large enough that a block outweighs the hundred microseconds of handing it to a thread. With more signals
# the blocks grow to eight of them, and then no further: their number grows instead.
BLOCK_SIZE = 2048
LARGEST_BLOCK = 4 * BLOCK_SIZE


@dataclass(frozen=True)
class Block:
    """Some consecutive signals with their part of the support."""

    signals: np.ndarray  # n×m rows
    indptr: np.ndarray
    indices: np.ndarray
    entries: slice  # where the support's entries stand among those of all blocks

    @property
    def data(self):
        return self.signals, self.indptr, self.indices

    @cached_property
    def packs(self):
        """The support as the kernels like it, arranged once."""
        return kernels.arrange(self.indptr, self.indices)


def split(signals, indptr, indices, size=None):
    """Views of the rows of `signals` and of their support, `size` signals at a time.

    The size depends on the number of signals alone, never on that of the threads.

    Examples
    --------
    >>> blocks = split(np.ones((5, 2)), np.arange(6), np.zeros(5, np.int32), size=2)
    >>> [(len(block.signals), block.entries) for block in blocks]
    [(2, slice(0, 2, None)), (2, slice(2, 4, None)), (1, slice(4, 5, None))]
    """
    blocks = []
    size = size or min(max(BLOCK_SIZE, -(-len(signals) // 8)), LARGEST_BLOCK)
    for start in range(0, len(signals), size):
        part = indptr[start : start + size + 1]
        entries = slice(int(part[0]), int(part[-1]))
        blocks.append(Block(signals[start : start + size], part - part[0], indices[entries], entries))
    return blocks


def available_threads():
    """The processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_chosen = ContextVar("threads chosen for everything inside a with block", default=None)


@contextmanager
def using_threads(threads):
    """Inside the block, whoever leaves the number of threads open gets this one (None: no change)."""
    token = _chosen.set(_chosen.get() if threads is None else as_threads(threads))
    try:
        yield
    finally:
        _chosen.reset(token)


def as_threads(threads):
    """The number of threads; None means the number of `using_threads`, or all processors there are."""
    if threads is None:
        return _chosen.get() or available_threads()
    if isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1:
        raise ValueError(
            f"threads={threads!r}: give a whole number of at least 1, or None for all processors."
        )
    return int(threads)


def share_out(function, items, take, threads=1):
    """Call take(function(item)) for every item, in order; `threads` threads compute, the caller's among them.

    A thread that is done takes the next item by itself. A result is handed to `take` as soon as all those
    before it have been, by whoever brings it: never two at a time. Nobody begins an item that is more than
    two a thread ahead of the one to be taken next, so memory does not grow with the number of items.

    Examples
    --------
    >>> totals = []
    >>> share_out(abs, [-1, 2, -3], totals.append, threads=2)
    >>> totals
    [1, 2, 3]
    """
    if threads == 1 or len(items) < 2:
        for item in items:
            take(function(item))
        return
    turns, waiting, changed, taken, failed = iter(range(len(items))), {}, Condition(), 0, False

    def work():
        nonlocal taken, failed
        try:
            for turn in turns:  # one iterator for all of them: each turn comes up once
                with changed:  # whoever has the item to be taken next is not held up here
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
        except BaseException:  # an error in one item: nobody begins another
            with changed:
                failed = True
                changed.notify_all()
            raise

    helpers = [_pool(threads).submit(work) for _ in range(min(threads, len(items)) - 1)]
    try:
        work()
    finally:  # who has not begun by now would find nothing left to do
        helpers = [helper for helper in helpers if not helper.cancel()]
        wait(helpers)
    for helper in helpers:
        helper.result()


def gather(function, items, threads=1):
    """[function(item) for every item], computed by `threads` threads.

    Examples
    --------
    >>> gather(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    if threads == 1 or len(items) < 2:  # a search asks for many such lists, and each takes microseconds
        return [function(item) for item in items]
    results = []
    share_out(function, items, results.append, threads)
    return results


class Total:
    """A sum of arrays, formed in the first of them."""

    def __init__(self):
        self.sum = None

    def add(self, part):
        if self.sum is None:
            self.sum = part
        else:
            self.sum += part

    def like(self, array):
        """The sum; zeros like `array` if there was nothing to add."""
        return np.zeros_like(array) if self.sum is None else self.sum


@lru_cache
def _pool(threads):
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="manifold_dl")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork: the child makes its own
    os.register_at_fork(after_in_child=_pool.cache_clear)
