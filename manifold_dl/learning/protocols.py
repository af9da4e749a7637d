"""What the learning loop calls: callbacks and replacement policies, with all their methods.

Nothing needs to be inherited: an object that has the first method will do, and `adapters.py` adds the others
with their defaults. The protocols of update rules and coders are in `updates/protocol.py` and
`coders/protocol.py`.
"""

from typing import Any, Protocol

import numpy as np

from manifold_dl.learning.history import History, Step


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
