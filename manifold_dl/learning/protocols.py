"""What the learning loop calls: update rules, callbacks and replacement policies, with all their methods.

Nothing needs to be inherited: an object that has the first methods will do, and `adapters.py` adds the others
with their defaults. The protocol of coders, `FullSparseCoder`, is in `coders/protocol.py`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from manifold_dl.learning.history import History, Step
from manifold_dl.updates.protocol import DictionaryUpdate, UpdateRun


class FullDictionaryUpdate(DictionaryUpdate, Protocol):
    """All that the learning loop uses of an update rule. What it does not have gets the default.

    Attributes
    ----------
    mu : float
        The ridge, where `mu_at` is not defined. 0 by default.
    regularizers : sequence of Regularizer
        Terms of the objective that the history reports. None of them by default.
    coder : FullSparseCoder or None
        By which the codes follow the dictionary; it codes the signals of a loop that is given no coder. None
        by default.
    keeps_supports : bool
        Whether codes stay on the supports that they had. True by default.
    """

    mu: float
    regularizers: Sequence[Any]
    coder: Any
    keeps_supports: bool

    def begin(self, max_iter: int | None = None, memory: dict[str, float | None] | None = None) -> UpdateRun:
        """The rule for one run; by default the rule itself, without a memory.

        Parameters
        ----------
        max_iter : int, optional
            The number of iterations; None for a single update.
        memory : dict, optional
            That of an interrupted run, to continue from.

        Returns
        -------
        UpdateRun
        """

    def mu_at(self, iteration: int) -> float:
        """The ridge of an iteration, for the history and the test of convergence; by default `mu`.

        Parameters
        ----------
        iteration : int

        Returns
        -------
        float
        """


class Callback(Protocol):
    """Anything that is called with a `Step` after every outer iteration.

    `CallbackMethods` lists the methods that it may have besides.
    """

    def __call__(self, step: Step, /) -> bool | None:
        """Look at the step; return True to stop the learning."""


class CallbackMethods(Callback, Protocol):
    """All methods of a callback. Those other than ``__call__`` are optional and do nothing by default."""

    def begin(self, total: int) -> None:
        """Called before the first iteration of every run.

        Parameters
        ----------
        total : int
            The number of iterations, if nothing stops them.
        """

    def resume(self, history: History) -> None:
        """Called after `begin` where a run is resumed from a checkpoint.

        Parameters
        ----------
        history : History
            The iterations before the checkpoint.
        """

    def end(self) -> None:
        """Called when the run has ended, also by an error."""

    def reconstructed(self, done: int, total: int) -> None:
        """Called by `images.denoise` after every strip of the reconstruction.

        Parameters
        ----------
        done, total : int
            Rows of patches.
        """


class ReplacementPolicy(Protocol):
    """Anything that is called with signals, dictionary and codes and returns which atoms it changed.

    Where signals have weights, it is called with the keyword `weights` as well (n or m×n numbers ≥ 0), and
    has to have it.
    """

    def __call__(
        self, signals: np.ndarray, dictionary: np.ndarray, codes: Any, /
    ) -> tuple[np.ndarray, np.ndarray]:
        """Replace atoms: (m×n, m×d, sparse d×n) → (dictionary, indices of the replaced atoms)."""
