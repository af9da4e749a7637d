"""Where codes that follow by a penalty begin: at those of an earlier dictionary, which takes half the time.

A solver that ends at the minimiser finds the same codes from any start, except where an atom joins within its
tolerance: there the start decides. So every engine begins at the same codes, and where states are lost they
can be computed again. `PenalizedCodes` (`penalized.py`) calls `Starts.next` before every pass over the data.
"""

from typing import Any, NamedTuple

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.protocol import partition
from manifold_dl.kernels.coding import StartingCodes
from manifold_dl.kernels.reduced import Solutions
from manifold_dl.problem.support import Support

# So many passes begin with the codes of the first of them. In `presets.recover` (16×32, n = 300 and 1,500)
# 4, 8 and 16 take the same time, and none of them more than starts from the last pass.
PASSES = 8


class PenalizedBlock(NamedTuple):
    """The codes of one block, and the factorisations on their supports where Hessian products need them."""

    codes: StartingCodes | None  # None for a start from nothing
    solutions: Solutions | None = None
    batches: Any = None


class Starts:
    """The codes of the first of so many passes, which itself began with the codes that were given.

    Those of the last pass would be nearer. But to compute them again, after a worker was lost, one would
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
        """Take notice of a pass, whose states are `PenalizedBlock`s: the first one is kept."""
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
    return Starts(engine.open([PenalizedBlock(start) for start in starts]))
