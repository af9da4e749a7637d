"""`MiniBatches`: how `learn_dictionary` begins where there are many signals, and when it does by default.

`batch_passes.py` makes the passes that are chosen here.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manifold_dl._validation import require_count
from manifold_dl.coders.protocol import properties_of
from manifold_dl.engines.protocol import MULTIPLE
from manifold_dl.optimizers.shortcuts import default_optimizer
from manifold_dl.regularizers.algebra import Scaled
from manifold_dl.schedules import AllAtoms
from manifold_dl.updates import SimCO

# From so many signals on, `learn_dictionary` begins with mini-batches if it is not told otherwise: a dozen
# batches of the usual size.
MANY_SIGNALS = 50_000


@dataclass(frozen=True)
class MiniBatches:
    """How `learn_dictionary` begins where there are many signals: passes over mini-batches.

    A mini-batch consists of blocks of 1,024 signals that follow each other; `rng` draws for every pass which
    blocks are taken together. All but the last `full` of the outer iterations are such passes. The ridge in
    them is the one that the update's schedule ends with, an atom is replaced in full iterations only, and
    regularizers count in a batch by its fraction of the signals.

    Parameters
    ----------
    size : int
        Signals in a mini-batch: a multiple of 1,024.
    full : float
        The fraction of the outer iterations, the last ones, that are full; at least one is.
    steps : int
        Conjugate-gradient steps in a mini-batch. An optimizer that the update was given is used as it is.
    memory : float
        How much of a pass counts at the end of all passes. In early passes it is less, and the steps are
        larger: ρ of `partial_fit`, (N/(N+b))^ρ, is the number of passes over this, minus 1.

    Notes
    -----
    The loss of such a pass in the history is that of every mini-batch before the dictionary saw it. By
    default mini-batches are used from 50,000 signals on, with a `SimCO` that moves all atoms together while
    the codes follow or stay on their supports. With an object of this class they are used for any number of
    signals and any update rule, each of whose stages then sees one mini-batch.

    Examples
    --------
    >>> MiniBatches(full=0.2).n_passes(max_iter=10)
    8
    >>> [blocks.tolist() for blocks in MiniBatches(size=2048).order(n_signals=5000, rng=0)]
    [[2, 4], [0, 3], [1]]
    """

    size: int = 4096
    full: float = 0.2
    steps: int = 2
    memory: float = 0.15

    def __post_init__(self) -> None:
        require_count("size", self.size, minimum=MULTIPLE)
        if self.size % MULTIPLE:
            raise ValueError(
                f"size={self.size}: mini-batches consist of blocks of {MULTIPLE} signals; give a multiple."
            )
        if not 0 <= self.full <= 1:
            raise ValueError(f"full={self.full}: a fraction of the iterations lies between 0 and 1.")
        require_count("steps", self.steps)
        if not 0 < self.memory < math.inf:
            raise ValueError(f"memory={self.memory}: a positive, finite fraction of a pass.")

    def n_passes(self, max_iter: int) -> int:
        """How many of the outer iterations are passes over mini-batches.

        Parameters
        ----------
        max_iter : int

        Returns
        -------
        int
        """
        return max_iter - max(1, round(self.full * max_iter))

    def forgetting(self, max_iter: int) -> float:
        """ρ, which says how fast old signals are forgotten (`minibatch.online_step`).

        Parameters
        ----------
        max_iter : int

        Returns
        -------
        float
        """
        return max(0.0, self.n_passes(max_iter) / self.memory - 1)

    def order(self, n_signals: int, rng: np.random.Generator | int | None) -> Iterator[np.ndarray]:
        """The mini-batches of one pass: the numbers of their blocks of 1,024 signals, ascending.

        Parameters
        ----------
        n_signals : int
        rng : Generator or int, optional

        Yields
        ------
        array of int
        """
        n_blocks = -(-n_signals // MULTIPLE)
        drawn = np.random.default_rng(rng).permutation(n_blocks)
        for batch in np.split(drawn, range(self.size // MULTIPLE, n_blocks, self.size // MULTIPLE)):
            yield np.sort(batch)

    def rule(self, update: Any, ridge: float, n_signals: int) -> Any:
        """The update rule for a mini-batch: `SimCO` with fewer steps and its last ridge; others as they are.

        Parameters
        ----------
        update : DictionaryUpdate
        ridge : float
            The one that its schedule ends with.
        n_signals : int
            All of them: a regularizer counts by the fraction of them in a batch.

        Returns
        -------
        DictionaryUpdate
        """
        if not isinstance(update, SimCO):
            return update
        fraction = min(1.0, self.size / n_signals)
        return replace(
            update,
            optimizer=default_optimizer(self.steps) if update.optimizer is None else update.optimizer,
            mu=ridge,
            regularizers=[Scaled(fraction, one) for one in update.regularizers],
        )


def as_minibatches(minibatches: Any, coder: Any, update: Any, n_signals: int) -> MiniBatches | None:
    """What the argument of `learn_dictionary` means: an object; False for none; None for the usual rule.

    Examples
    --------
    >>> from manifold_dl import OMP
    >>> as_minibatches(None, OMP(sparsity=3), SimCO(), n_signals=10_000) is None
    True
    >>> as_minibatches(None, OMP(sparsity=3), SimCO(), n_signals=100_000)
    MiniBatches(size=4096, full=0.2, steps=2, memory=0.15)
    """
    if minibatches is False:
        return None
    if minibatches is not None and not isinstance(minibatches, MiniBatches):
        raise TypeError(
            f"minibatches={minibatches!r}: give MiniBatches(), False for none, or None for those that are "
            f"usual from {MANY_SIGNALS:,} signals on."
        )
    is_of_all_signals = properties_of(coder).numbers_atoms
    if minibatches is not None and is_of_all_signals:
        raise ValueError(f"coder={coder!r} codes all signals together: it has no codes for mini-batches.")
    if minibatches is not None:
        return minibatches
    is_usual_rule = (
        isinstance(update, SimCO) and update.keeps_supports and isinstance(update.schedule, AllAtoms)
    )
    is_usual = is_usual_rule and not is_of_all_signals and n_signals >= MANY_SIGNALS
    return MiniBatches() if is_usual else None
