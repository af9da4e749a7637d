"""What a worker of a cluster does in one round: run functions on its blocks, keep their states, add the sums.

The states of a block are a cache, kept in the memory of the process by the keys of their nodes. A node is a
function with its parents and what was broadcast, so a state that is missing (the block came from a worker
that is lost) is computed again from the signals, with the same bits. `dask.py` sends the messages.
"""

import ctypes
import pickle
import sys
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from manifold_dl.engines.ordered_map import ordered_map_reduce
from manifold_dl.engines.protocol import BlockFunction, TreeSum, tuple_like
from manifold_dl.kernels.memory import SMALL, aligned_copy


class Reference(NamedTuple):
    """Stands for an argument that is sent as a node of its own."""

    key: str


class Node(NamedTuple):
    """A function of one block, as a message describes it.

    There is no function where states are loaded (the root), nor where `common` is an argument that several
    nodes share.
    """

    key: str
    function: BlockFunction | None
    parents: tuple[str, ...]
    common: tuple[Any, ...]


class Message(NamedTuple):
    """One round, for one worker."""

    session: str
    nodes: list[Node]  # those that this worker was not sent before
    dropped_nodes: list[str]  # that nothing will be computed with again
    dropped_states: list[str]
    wanted: list[str]  # whose sums are returned
    kept: list[str]  # whose states are kept for later rounds


class Run(NamedTuple):
    """The sums over neighbouring blocks: the largest subtrees of every map that was wanted."""

    first: int
    subtrees: list[list[tuple[int, Any]]]


class Lazy:
    """An item that is loaded by the worker that has its block. Subclasses say how."""

    def load(self) -> Any:
        """The item."""
        raise NotImplementedError


class Missing(Exception):
    """A worker lacks a node, or the signals of a block, because it is new. It never leaves the engine."""


class Session:
    """What a worker keeps for one driver."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.states: dict[str, dict[int, Any]] = {}
        self.items: dict[tuple[str, int], Any] = {}
        self.lock = Lock()

    def receive(self, message: Message, items: dict[tuple[str, int], Any]) -> None:
        """Store what is new, and release what is not needed any more."""
        with self.lock:
            for key in message.dropped_states:
                self.states.pop(key, None)
            for key in message.dropped_nodes:
                self.nodes.pop(key, None)
                for item in [item for item in self.items if item[0] == key]:
                    del self.items[item]
            for node in message.nodes:
                common = self._resolved(_aligned(node.common))
                self.nodes[node.key] = node._replace(common=common)
                if node.function is None and not common:  # signals are loaded once
                    self.states.setdefault(node.key, {})
            for key in message.kept:
                self.states.setdefault(key, {})
            self.items.update(items)

    def sums(self, wanted: Sequence[str], block: int) -> list[Any]:
        """Run the functions that are wanted on one block, and keep the states that are to be kept."""
        known: dict[str, Any] = {}
        partials = []
        for key in wanted:
            node = self._node(key)
            parents = [self.state(parent, block, known) for parent in node.parents]
            assert node.function is not None  # a root has no sums
            partial, state = node.function(*parents, *node.common)
            self._keep(key, block, state, known)
            partials.append(partial)
        return partials

    def state(self, key: str, block: int, known: dict[str, Any]) -> Any:
        """The state of a node on a block: kept, or computed again from those of its parents."""
        kept = self.states.get(key, {})
        if block in kept:
            return kept[block]
        if key in known:
            return known[key]
        node = self._node(key)
        if node.function is None:
            if (key, block) not in self.items:
                raise Missing
            item = self.items[key, block]
            state = item.load() if isinstance(item, Lazy) else item
        else:
            parents = [self.state(parent, block, known) for parent in node.parents]
            _, state = node.function(*parents, *node.common)
        self._keep(key, block, state, known)
        return state

    def _resolved(self, value: Any) -> Any:
        """The value with shared arguments in the places of their references."""
        if isinstance(value, Reference):
            return self._node(value.key).common[0]
        if isinstance(value, tuple):
            return tuple_like(value, (self._resolved(item) for item in value))
        return value

    def _node(self, key: str) -> Node:
        if key not in self.nodes:
            raise Missing
        return self.nodes[key]

    def _keep(self, key: str, block: int, state: Any, known: dict[str, Any]) -> None:
        known[key] = state
        if key in self.states:
            self.states[key][block] = state


_sessions: dict[str, Session] = {}
_lock = Lock()


def run_group(
    message: bytes, blocks: Sequence[int], items: dict[tuple[str, int], Any], threads: int
) -> bytes | None:
    """One round over some blocks, with so many threads; None if the worker lacks what it needs.

    Parameters
    ----------
    message : bytes
        A pickled `Message`.
    blocks : sequence of int
        In ascending order.
    items : dict
        The signals of blocks that are new to this worker, by (key of the root, block).
    threads : int

    Returns
    -------
    bytes or None
        A pickled list of `Run`: the reader may change its arrays.
    """
    received: Message = pickle.loads(message)
    with _lock:
        if received.session not in _sessions:
            _keep_freed_memory()
            _sessions[received.session] = Session()
        session = _sessions[received.session]
    runs = []
    try:
        session.receive(received, items)
        for run in neighbours(blocks):
            sums = [TreeSum(run[0]) for _ in received.wanted]

            def take(partials: list[Any], sums: list[TreeSum] = sums) -> None:
                for total, partial in zip(sums, partials, strict=True):
                    total.add(partial)

            ordered_map_reduce(lambda block: session.sums(received.wanted, block), run, take, threads)
            runs.append(Run(run[0], [total.subtrees() for total in sums]))
    except Missing:
        return None
    return pickle.dumps(runs, protocol=5)


def join(groups: Sequence[bytes | None]) -> bytes | None:
    """The sums of several groups of blocks, added as far as they are neighbours; None if one is missing."""
    found = [group for group in groups if group is not None]
    return pickle.dumps(joined_runs(found), protocol=5) if len(found) == len(groups) else None


def joined_runs(groups: Sequence[bytes]) -> list[Run]:
    """What `join` returns, not pickled."""
    joined: list[Run] = []
    runs = [run for group in groups for run in pickle.loads(group)]
    for run in sorted(runs, key=lambda run: run.first):
        if joined and _end(joined[-1]) == run.first:
            joined[-1] = _joined(joined[-1], run)
        else:
            joined.append(run)
    return joined


def neighbours(blocks: Sequence[int]) -> list[list[int]]:
    """Ascending numbers in runs without gaps.

    Examples
    --------
    >>> neighbours([0, 1, 4, 5, 6])
    [[0, 1], [4, 5, 6]]
    """
    runs: list[list[int]] = []
    for block in blocks:
        if runs and runs[-1][-1] == block - 1:
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs


def _end(run: Run) -> int:
    return run.first + sum(leaves for leaves, _ in run.subtrees[0])


def _joined(left: Run, right: Run) -> Run:
    subtrees = []
    for one, other in zip(left.subtrees, right.subtrees, strict=True):
        total = TreeSum(left.first)
        for leaves, partial in [*one, *other]:
            total.add(partial, leaves)
        subtrees.append(total.subtrees())
    return Run(left.first, subtrees)


def _aligned(value: Any) -> Any:
    """The same with large matrices on lines of the cache: a pass over signals takes a seventh less time."""
    if (
        isinstance(value, np.ndarray)
        and value.ndim > 1
        and value.flags.c_contiguous
        and value.nbytes >= SMALL
    ):
        return aligned_copy(value)
    if isinstance(value, tuple):
        return tuple_like(value, (_aligned(item) for item in value))
    return value


def _keep_freed_memory() -> None:
    """Undo what Dask's nanny sets by MALLOC_TRIM_THRESHOLD_: memory given back after every block.

    With it every array above 128 kB is new memory, which the kernel clears page by page, and a round takes a
    third longer.
    """
    if sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        if hasattr(allocator, "mallopt"):
            allocator.mallopt(-3, 2**28)  # M_MMAP_THRESHOLD
            allocator.mallopt(-1, 2**30)  # M_TRIM_THRESHOLD
