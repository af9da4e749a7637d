"""Callbacks, called after every outer iteration: progress bars, early stopping, checkpoints.

A callback is called with the `Step` just made; returning True stops the learning. The methods it may have
besides are listed in `protocols.CallbackMethods`. `History` is a callback, too.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manifold_dl._validation import require_count, warn_once
from manifold_dl.learning.checkpoint import save_checkpoint
from manifold_dl.learning.history import History, Step

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Checkpoint", "EarlyStopping", "History", "Progress", "Step"]


class Progress:
    """A progress bar with the loss and the time left; silent where the output is not a terminal.

    Parameters
    ----------
    description : str
        The words before the bar.
    console : rich.console.Console, optional
        Where to draw; standard error by default.
    """

    def __init__(self, description: str = "Learning", console: "Console | None" = None) -> None:
        self.description, self.console = description, console
        self._bar: Any = None

    def __repr__(self) -> str:
        return f"Progress({self.description!r})"

    def begin(self, total: int) -> None:
        """Draw an empty bar.

        Parameters
        ----------
        total : int
            The number of iterations to come.
        """
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        console = self.console or Console(stderr=True)
        if not (console.is_terminal or console.is_jupyter):
            return
        loss = TextColumn("{task.fields[loss]}")
        columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), loss, TimeRemainingColumn())
        self._bar = Bar(*columns, console=console, transient=False)
        self._bar.start()
        self._task = self._bar.add_task(self.description, total=total, loss="")

    def __call__(self, step: Step) -> None:
        """Advance the bar.

        Parameters
        ----------
        step : Step
        """
        if self._bar is not None:
            self._bar.update(self._task, completed=step.iteration + 1, loss=f"loss {step.loss:.4g}")

    def end(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


@dataclass
class EarlyStopping:
    """Stop when the loss has not fallen for a while.

    Parameters
    ----------
    patience : int
        How many iterations to wait for a better loss.
    min_decrease : float
        What counts as better: a loss below (1 − min_decrease) times the best so far.
    """

    patience: int = 5
    min_decrease: float = 1e-3
    _best: float = field(default=np.inf, init=False, repr=False, compare=False)
    _waited: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_count("patience", self.patience, "wait for at least one iteration")
        if not 0 <= self.min_decrease < 1:
            raise ValueError(f"min_decrease={self.min_decrease}: a fraction of the loss lies in [0, 1).")

    def begin(self, total: int) -> None:
        """Forget an earlier run.

        Parameters
        ----------
        total : int
            The number of iterations to come; not used.
        """
        self._best, self._waited = np.inf, 0

    def resume(self, history: History) -> None:
        """Take the losses of the iterations before a checkpoint into account.

        Parameters
        ----------
        history : History
        """
        for loss in history.relative_loss:
            self._observe(loss)

    def __call__(self, step: Step) -> bool:
        """Compare the loss with the best so far.

        Parameters
        ----------
        step : Step

        Returns
        -------
        bool
            Whether to stop.
        """
        return self._observe(step.relative_loss)

    def _observe(self, loss: float) -> bool:
        if loss < (1 - self.min_decrease) * self._best:
            self._best, self._waited = loss, 0
        else:
            self._waited += 1
        return self._waited >= self.patience


@dataclass
class Checkpoint:
    """Write the run to a file every so many iterations, for ``learn_dictionary(..., resume=path)``.

    The file is written under another name and then renamed, so an interrupted write loses nothing.
    A resumed run gives the same bits as one that was never stopped. If the disk is full, or the folder has
    vanished, a warning says so: the learning continues, and the file of the last checkpoint stays as it is.

    Parameters
    ----------
    path : path
        The file; it is replaced by every checkpoint. Its folder must exist when the learning begins.
    every : int
        The number of iterations from one checkpoint to the next.
    """

    path: str | os.PathLike[str]
    every: int = 1
    _folder_existed: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_count("every", self.every)

    def begin(self, total: int) -> None:
        """Refuse a folder that does not exist, before anything is computed.

        Parameters
        ----------
        total : int
            The number of iterations to come; not used.
        """
        folder = Path(self.path).parent
        if not self._folder_existed and not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder} to write {Path(self.path).name} to.")
        self._folder_existed = True  # if it vanishes between two restarts, the second is learned nevertheless

    def __call__(self, step: Step) -> None:
        """Write the file if it is time.

        Parameters
        ----------
        step : Step
        """
        if (step.iteration + 1) % self.every == 0 and step.snapshot is not None:
            try:
                save_checkpoint(step.snapshot(), self.path)
            except OSError as error:
                text = f"the checkpoint {self.path} of iteration {step.iteration} could not be written"
                after = "Learning goes on; a file of an earlier iteration is as it was."
                warn_once(f"{text}: {str(error).rstrip('.')}. {after}", f"checkpoint {self.path}")
