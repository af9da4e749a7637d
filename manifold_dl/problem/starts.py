"""Where codes that follow by a penalty begin: at those of an earlier dictionary, which takes half the time.

A solver that ends at the minimiser finds the same codes from any start, except where an atom joins within its
tolerance: there the start decides. So on an engine that may lose its states a start has to be something that
can be computed again. `PenalizedCodes` (`penalized.py`) asks a `Starts` before every pass over the signals.
"""

from typing import Any, NamedTuple, Protocol

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.protocol import partition
from manifold_dl.kernels.coding import StartingCodes
from manifold_dl.kernels.reduced import Solutions
from manifold_dl.problem.support import Support

# So many passes begin with the codes of the first of them.
PASSES = 8


class WarmStart:
    """The last codes of one block of signals in this process; None before the first."""

    __slots__ = ("codes",)

    def __init__(self, codes: StartingCodes | None = None) -> None:
        self.codes = codes


class PenalizedBlock(NamedTuple):
    """The codes of one block, and the factorisations on their supports where Hessian products need them."""

    codes: StartingCodes | None  # None for a start from nothing
    solutions: Solutions | None = None
    batches: Any = None


class Starts(Protocol):
    """Where the next pass over the signals begins."""

    def next(self) -> BlockMap:
        """A map whose states have an attribute `codes`: those to start from, or None."""

    def solved(self, fit: BlockMap) -> None:
        """Take notice of a pass; the states of `fit` are `PenalizedBlock`s."""


class LastCodes:
    """The codes of the last dictionary, which a function of a block leaves in a `WarmStart`.

    Parameters
    ----------
    starts : BlockMap
        Its states are `WarmStart`s of this process.
    """

    def __init__(self, starts: BlockMap) -> None:
        self._starts = starts

    def next(self) -> BlockMap:
        """The same for every pass: its states change."""
        return self._starts

    def solved(self, fit: BlockMap) -> None:
        """Nothing: the function of a block has kept the codes."""


class EarlierCodes:
    """The codes of the first of so many passes, which itself began with the codes that were given.

    Those of the last pass would be nearer. But whoever computes them again, after a worker was lost, would
    need all dictionaries since the first; of these, one is enough.

    Parameters
    ----------
    given : BlockMap
        Its states are `PenalizedBlock`s with the codes that a stage begins with, or with None.
    """

    def __init__(self, given: BlockMap) -> None:
        self._given, self._first, self._count = given, given, 0

    def next(self) -> BlockMap:
        """The codes that were given for the first of `PASSES` passes, and then those of that pass."""
        return self._given if self._count % PASSES == 0 else self._first

    def solved(self, fit: BlockMap) -> None:
        """Keep the first pass."""
        if self._count % PASSES == 0:
            self._first = fit
        self._count += 1


def open_starts(engine: Engine, n_signals: int, codes: Support | None = None) -> Starts:
    """Where the signals of an array begin: at their codes, where these are given."""
    starts: list[StartingCodes | None] = []
    for part in partition(n_signals):
        if codes is None or codes.values is None:
            starts.append(None)
            continue
        indptr = codes.indptr[part.start : part.stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        starts.append(StartingCodes(indptr - indptr[0], codes.indices[entries], codes.values[entries]))
    if engine.is_remote:
        return EarlierCodes(engine.open([PenalizedBlock(start) for start in starts]))
    return LastCodes(engine.open([WarmStart(start) for start in starts]))
