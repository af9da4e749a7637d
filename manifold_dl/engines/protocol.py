"""The seam between mathematics and machines: blocks of signals, rounds over them, sums over a fixed tree.

Everything that is a sum over signals (the objective, a coder's pass, norms, errors) is written once, as a
named function of one block, and run by an engine:

    function(*states of the parents, *common) → (partial, state)

The partials of all blocks are added over a pairwise tree that depends on the number of blocks alone. So one
thread, eight threads and a cluster add the same numbers in the same order, and give the same bits. The states
(codes, factorisations, products) stay beside their blocks for later functions; they are a cache, and can be
computed again from the signals.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

# Block sizes are multiples of this many signals. A small block must outweigh the hundred microseconds of
# handing it to a thread; there are eight blocks from 16,384 signals on, and with more signals the number of
# blocks grows.
MULTIPLE = 1024
SMALLEST_BLOCK = 2 * MULTIPLE
LARGEST_BLOCK = 8 * MULTIPLE
USUAL_BLOCKS = 8

BlockFunction = Callable[..., tuple[Any, Any]]


def partition(n_signals: int) -> list[slice]:
    """The blocks of `n_signals` signals: the one partition for coders, objective and norms.

    It depends on the number of signals alone, never on the number of threads or machines.

    Examples
    --------
    >>> [block.stop - block.start for block in partition(5000)]
    [2048, 2048, 904]
    """
    size = -(-n_signals // (USUAL_BLOCKS * MULTIPLE)) * MULTIPLE
    size = min(max(size, SMALLEST_BLOCK), LARGEST_BLOCK)
    return [slice(start, min(start + size, n_signals)) for start in range(0, n_signals, size)]


class BlockMap:
    """A function of one block, to be run on every block of signals by an engine.

    Making one computes nothing. An engine fills in `states` when a total needs them.

    Parameters
    ----------
    function : callable
        ``function(*states of the parents, *common) -> (partial, state)``: a function of a module, without a
        closure, so that another process can run it. A partial is a number, an array, a tuple of these, or
        None.
    parents : tuple of BlockMap
        Their states of the same block come first among the arguments.
    common : tuple
        Arguments that are the same for every block: the dictionary, the ridge, ...
    """

    __slots__ = ("common", "function", "parents", "states")

    def __init__(
        self, function: BlockFunction, parents: tuple["BlockMap", ...] = (), common: tuple[Any, ...] = ()
    ) -> None:
        self.function = function
        self.parents = parents
        self.common = common
        self.states: Any = None  # of the engine's own kind; None before they are computed


@runtime_checkable
class SharedArgument(Protocol):
    """A common argument, or a part of one, of several maps: sent to a worker once. It is not changed."""

    def for_blocks(self) -> Any:
        """What functions of a block read of it."""


class Engine(Protocol):
    """Where the blocks are and what runs the computation. `Threads` is the default."""

    @property
    def is_remote(self) -> bool:
        """Whether a round takes milliseconds before it computes anything."""

    def open(self, source: Sequence[Any]) -> BlockMap:
        """The blocks of a source, as a map whose states they are.

        Parameters
        ----------
        source : sequence
            One item per block.

        Returns
        -------
        BlockMap
        """

    def total(self, *maps: BlockMap) -> list[Any]:
        """The sums of the partials of each map over all blocks, in one round.

        Parameters
        ----------
        *maps : BlockMap

        Returns
        -------
        list
            A sum for every map; None if there are no blocks.
        """

    def states(self, block_map: BlockMap) -> list[Any]:
        """The states of all blocks, collected for the caller, such as the codes at the end.

        Parameters
        ----------
        block_map : BlockMap

        Returns
        -------
        list
        """


class FullEngine(Engine, Protocol):
    """An engine with all attributes that reading files may use. These are optional.

    Attributes
    ----------
    memory : float
        How many bytes of signals may be read into memory; larger files stay where they are. 0 by default.
    scratch : path or None
        The folder for temporary files. None, the default, for that of the system.
    """

    memory: float
    scratch: Any


class EngineStorage(NamedTuple):
    """The attributes of a `FullEngine`, with their defaults."""

    memory: float = 0
    scratch: Any = None


def storage_of(engine: Any) -> EngineStorage:
    """How much any engine may read into memory, and where it puts temporary files."""
    default = EngineStorage()
    return EngineStorage(*(getattr(engine, name, getattr(default, name)) for name in default._fields))


def in_order(maps: Sequence[BlockMap]) -> list[BlockMap]:
    """The maps to run, parents first: those asked for, and parents without states."""
    order: list[BlockMap] = []
    for one in maps:
        if one not in order:
            missing = [parent for parent in one.parents if parent.states is None]
            order += [parent for parent in in_order(missing) if parent not in order] if missing else []
            order.append(one)
    return order


class TreeSum:
    """A sum over a fixed pairwise tree, formed from its leaves in order with one partial sum per level.

    Parameters
    ----------
    first : int
        The number of the first leaf. A worker that has the leaves from there on forms the largest subtrees of
        the whole tree among them, and all of these added give the same bits.

    Examples
    --------
    >>> total = TreeSum()
    >>> for leaf in ["a", "b", "c", "d", "e"]:
    ...     total.add(f"{leaf}")
    >>> total.result()  # ((a b)(c d)) e
    'abcde'
    """

    def __init__(self, first: int = 0) -> None:
        self._levels: list[tuple[int, Any]] = []  # (leaves, sum) of subtrees, in order
        self._next = first

    def add(self, partial: Any, leaves: int = 1) -> None:
        """Append a leaf, or a subtree of so many leaves. Its arrays are taken over, and may be changed."""
        start = self._next
        self._next += leaves
        # Two subtrees of one size are siblings if the left one begins at a multiple of both together.
        while self._levels and self._levels[-1][0] == leaves and (start - leaves) % (2 * leaves) == 0:
            partial = add(self._levels.pop()[1], partial)
            start -= leaves
            leaves *= 2
        self._levels.append((leaves, partial))

    def subtrees(self) -> list[tuple[int, Any]]:
        """The largest subtrees of the leaves so far, in order: (leaves, sum)."""
        return self._levels

    def result(self) -> Any:
        """The sum of all leaves; None if there are none."""
        if not self._levels:
            return None
        *larger, (_, total) = self._levels
        for _, partial in reversed(larger):
            total = add(partial, total)
        return total


def tuple_like(value: tuple, items: Iterable[Any]) -> Any:
    """A tuple of other items; a named one where `value` is."""
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def add(left: Any, right: Any) -> Any:
    """left + right for two partials of one kind. Arrays are added in place of `left`.

    Examples
    --------
    >>> add((1.0, None), (2.0, None))
    (3.0, None)
    """
    if left is None:
        return None
    if isinstance(left, tuple):
        return tuple_like(left, (add(one, other) for one, other in zip(left, right, strict=True)))
    if isinstance(left, np.ndarray):
        left += right
        return left
    return left + right
