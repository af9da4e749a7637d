"""What a run of the learning loop is made from: the caller's `Settings`, and which restart it is.

`learn.py` makes them from the arguments of `learn_dictionary`, `loop.py` reads them.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl.engines import Engine
from manifold_dl.learning.batching import MiniBatches
from manifold_dl.learning.checkpoint import RunState
from manifold_dl.learning.result import Result

RECORDED = ("coder", "update", "max_iter", "init", "tol", "replace", "minibatches")


@dataclass(frozen=True)
class Settings:
    """What the caller of `learn_dictionary` chose: the same for every restart."""

    coder: Any
    update: Any
    max_iter: int
    init: Any
    tol: float
    callbacks: list[Any]
    threads: int | None
    engine: Engine | None
    replace: Any
    minibatches: MiniBatches | None  # None: all iterations are full
    validation: np.ndarray | None  # signals that are coded after every iteration
    record: dict[str, Any] = field(default_factory=dict)  # all of it as JSON, for the result

    def recorded(self) -> dict[str, Any]:
        """What results and checkpoints record of it, by the names of the arguments."""
        init = self.init if isinstance(self.init, str) else np.asarray(self.init)
        return {name: getattr(self, name) for name in RECORDED} | {"init": init}

    @property
    def n_batch_passes(self) -> int:
        """How many iterations, the first ones, are passes over mini-batches."""
        return 0 if self.minibatches is None else self.minibatches.n_passes(self.max_iter)

    @property
    def end_of_replacement(self) -> int:
        """No atom is replaced from this iteration on: new atoms need time to settle."""
        return self.max_iter - max(1, self.max_iter // 10)


class Best(NamedTuple):
    """The best iteration so far; at first the start, which has no codes yet."""

    loss: float  # relative: ‖Y − DX‖²/‖Y‖²
    dictionary: np.ndarray
    codes: scipy.sparse.csc_array | None


class Restart(NamedTuple):
    """Which of the runs of `learn_dictionary` this is."""

    number: int = 0
    earlier: Result | None = None  # the best of the runs before, for a checkpoint
    state: RunState | None = None  # of a checkpoint to continue from
