"""The engine of one machine: threads share the blocks of signals, and the sums have the same bits for any
number.

`Threads` keeps the states of a `BlockMap` in a list, one item per block. A thread that is done takes the next
block, and partial results are added in the order of the blocks.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import lru_cache, partial
from numbers import Integral
from threading import Condition, Lock
from typing import Any, NamedTuple

from manifold_dl.engines.protocol import BlockFunction, BlockMap, Engine, TreeSum, in_order
from manifold_dl.engines.scratch import MappedBlocks, StoredStates

_chosen: ContextVar[int | None] = ContextVar("threads chosen for a with block", default=None)
_engine: ContextVar[Engine | None] = ContextVar("engine chosen for a with block", default=None)


@dataclass(frozen=True)
class Threads:
    """Blocks of signals in memory, shared by `n` threads.

    Parameters
    ----------
    n : int, optional
        The number of threads; all processors by default.
    memory : int
        Bytes of signals that are read from a file into memory; larger files stay where they are, and what is
        computed from their signals may take so many bytes, too, before it goes to scratch files.
    scratch : path, optional
        The folder of scratch files; that of `tempfile` by default.

    Examples
    --------
    >>> engine = Threads(2)
    >>> numbers = engine.open([1.0, 2.0, 3.0])
    >>> squares = BlockMap(lambda x: (x**2, None), parents=(numbers,))
    >>> engine.total(squares)
    [14.0]
    """

    n: int | None = None
    memory: int = field(default=2**29, repr=False)
    scratch: str | os.PathLike[str] | None = field(default=None, repr=False)

    is_remote = False

    def __post_init__(self) -> None:
        as_threads(self.n)

    def open(self, source: Sequence[Any]) -> BlockMap:
        """The items of `source`, one per block, as the states of a map."""
        blocks = BlockMap(_no_function)
        blocks.states = source if isinstance(source, MappedBlocks) else list(source)
        return blocks

    def total(self, *maps: BlockMap) -> list[Any]:
        """The sum of the partials of each map over all blocks, in one round.

        States of parents that are not there yet are computed on the way. A map is run once: its partials are
        not kept.
        """
        for one in maps:
            if one.states is not None:
                raise ValueError(
                    "this map has been run, and its sums were returned then: make a new BlockMap."
                )
        if len(maps) == 1 and _is_small(maps[0]):
            return [_run_small(maps[0])]
        with _lock:  # two threads may need the states of one parent at a time
            tasks = [Task(one, one.function, one.parents, one.common) for one in in_order(maps)]
            n_blocks, new_states = _new_states(tasks)
        states = {id(task.map): new_states() for task in tasks}
        places = [next(p for p, task in enumerate(tasks) if task.map is one) for one in maps]
        sums = [TreeSum() for _ in maps]

        def take(partials: list[Any]) -> None:
            for total, place in zip(sums, places, strict=True):
                total.add(partials[place])

        run = partial(_run_block, tasks, states)
        ordered_map_reduce(run, range(n_blocks), take, as_threads(self.n))
        with _lock:
            for task in tasks:
                task.map.states = states[id(task.map)]
                _release(task.map)
        return [total.result() for total in sums]

    def states(self, block_map: BlockMap) -> list[Any]:
        """The states of all blocks."""
        if block_map.states is None:
            self.total(block_map)
        return list(block_map.states)


def _no_function(*arguments: Any) -> tuple[None, None]:
    return None, None


class Task(NamedTuple):
    """A map to be run, as it is when a round begins."""

    map: BlockMap
    function: BlockFunction
    parents: tuple[BlockMap, ...]
    common: tuple[Any, ...]


_lock = Lock()


def _is_small(block_map: BlockMap) -> bool:
    """Whether a map has one block, and can be run at once: there the seam must cost next to nothing."""
    for parent in block_map.parents:
        if parent.states is None or len(parent.states) != 1:
            return False
    return bool(block_map.parents)


def _run_small(block_map: BlockMap) -> Any:
    """Run a map on its one block, keep the state, return the partial."""
    states = [parent.states[0] for parent in block_map.parents]
    partial_sum, state = block_map.function(*states, *block_map.common)
    block_map.states = [state]
    _release(block_map)
    return partial_sum


def _new_states(tasks: Sequence[Task]) -> tuple[int, Callable[[], Any]]:
    """The number of blocks, and what makes lists for the states of maps: in memory, or as their parents'."""
    known = [parent.states for task in tasks for parent in task.parents if parent.states is not None]
    for states in known:
        if isinstance(states, MappedBlocks | StoredStates):
            return len(states), states.new_states
    return len(known[0]), lambda: [None] * len(known[0])


def _run_block(tasks: Sequence[Task], states: dict[int, list[Any]], block: int) -> list[Any]:
    """Run every task on one block, keep the states, return the partials."""
    partials = []
    for task in tasks:
        parents = [states.get(id(parent), parent.states)[block] for parent in task.parents]
        partial_sum, states[id(task.map)][block] = task.function(*parents, *task.common)
        partials.append(partial_sum)
    return partials


def _release(block_map: BlockMap) -> None:
    """Threads lose no states, so what they were computed from is not needed for them any more."""
    block_map.parents = block_map.common = ()


def available_threads() -> int:
    """The processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def using_threads(threads: int | None) -> Iterator[None]:
    """Inside the block this is the number of threads wherever none is given (None: no change)."""
    token = _chosen.set(_chosen.get() if threads is None else as_threads(threads))
    try:
        yield
    finally:
        _chosen.reset(token)


@contextmanager
def using_engine(engine: Engine | None) -> Iterator[None]:
    """Inside the block this is the engine wherever neither engine nor threads are given (None: no change)."""
    token = _engine.set(_engine.get() if engine is None else engine)
    try:
        yield
    finally:
        _engine.reset(token)


def as_threads(threads: int | None) -> int:
    """The number of threads; None means the number of `using_threads`, or all processors there are."""
    if threads is None:
        return _chosen.get() or available_threads()
    if isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1:
        raise ValueError(
            f"threads={threads!r}: give a whole number of at least 1, or None for all processors."
        )
    return int(threads)


def as_engine(threads: int | None = None, engine: Engine | None = None) -> Engine:
    """The engine, or `Threads(threads)` if none is given.

    Examples
    --------
    >>> as_engine(threads=2)
    Threads(n=2)
    """
    if engine is None and threads is None:
        engine = _engine.get()
    if engine is None:
        return Threads(as_threads(threads))
    if threads is not None:
        raise ValueError(f"threads={threads} is short for engine=Threads({threads}): give one of them.")
    return engine


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
    n_helpers = min(threads, len(items)) - 1
    helpers = [_pool(threads).submit(copy_context().run, work) for _ in range(n_helpers)]
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


@lru_cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="manifold_dl")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork: the child makes its own
    os.register_at_fork(after_in_child=_pool.cache_clear)
