"""The engine of one machine: threads share the blocks of signals, and the sums have the same bits for any
number.

`Threads` keeps the states of a `BlockMap` in a list, one item per block. A thread that is done takes the next
block, and partial results are added in the order of the blocks.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial
from numbers import Real
from threading import Lock
from typing import Any, NamedTuple

from manifold_dl._validation import require_count
from manifold_dl.engines.ordered_map import available_threads, drop_pool, ordered_map_reduce
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
        The number of threads; all processors by default. No more work than there are processors (or eight).
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
        if isinstance(self.memory, bool) or not isinstance(self.memory, Real) or not self.memory >= 0:
            raise ValueError(f"memory={self.memory!r}: a number of bytes is needed, such as 2**29.")
        if self.scratch is not None and not os.path.isdir(self.scratch):
            raise FileNotFoundError(f"scratch={str(self.scratch)!r}: there is no such folder.")

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
                raise ValueError("this map has been run, and its sums were returned: make a new BlockMap.")
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
    """Whether a map that has not been run has one block: there the seam must cost next to nothing."""
    parents = block_map.parents
    while parents:
        states, parents = parents[0].states, parents[0].parents
        if states is not None:
            return len(states) == 1
    return False


def _run_small(block_map: BlockMap) -> Any:
    """Run a map on its one block, keep the state, return the partial; None if another thread just did."""
    parents, common = block_map.parents, block_map.common  # first: they are released when it has been run
    if block_map.states is not None:
        return None
    arguments = []
    for parent in parents:
        if parent.states is None:
            _run_small(parent)
        arguments.append(parent.states[0])
    partial_sum, state = block_map.function(*arguments, *common)
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
    require_count("threads", threads, "give how many, or None for all processors")
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
        return _threads(as_threads(threads))
    if threads is not None:
        raise ValueError(f"threads={threads} is short for engine=Threads({threads}): give one of them.")
    return engine


@lru_cache(maxsize=16)
def _threads(n: int) -> Threads:
    """An engine that is checked already: every update stage takes one."""
    return Threads(n)


def _begin_child() -> None:
    """After a fork there are no threads, and a lock that one of them held stays locked: make new ones."""
    global _lock
    _lock = Lock()
    drop_pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
