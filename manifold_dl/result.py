"""What learning returns, and why it ended."""

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl.callbacks import History


class Reason(enum.Enum):
    """Why the learning ended."""

    CONVERGED = "The loss stopped falling: converged."
    ITERATION_LIMIT = "The iteration limit was reached."
    STOPPED = "A callback stopped it."
    INTERRUPTED = "It was interrupted; this is the best dictionary until then."

    def __str__(self):
        return self.value


@dataclass(repr=False, eq=False)  # arrays neither print nor compare well
class Result:
    """What was learned.

    Attributes
    ----------
    dictionary : m×d array with unit columns
    codes : sparse d×n array, the coder's codes for that dictionary
    history : History
    reason : Reason
    """

    dictionary: np.ndarray
    codes: Any
    history: History
    reason: Reason

    @property
    def n_iter(self):
        return len(self.history)

    def __str__(self):
        (m, d), n = self.dictionary.shape, self.codes.shape[1]
        lines = [
            f"{d} atoms of length {m} learned from {n} signals in {self.n_iter} iterations. {self.reason}"
        ]
        if self.n_iter:
            first, last = self.history.loss[0], self.history.loss[-1]
            lines.append(f"Loss ‖Y − DX‖²/n: {first:.4g} → {last:.4g}, {self.history.seconds[-1]:.1f} s.")
        lines.append(f"Codes: {self.codes.nnz / n:.2f} atoms a signal.")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax=None):
        """Draw the loss against the iterations."""
        from manifold_dl.plotting import plot_convergence

        return plot_convergence(self.history, ax=ax)
