"""What happens after every outer iteration: histories, progress bars, early stopping, checkpoints.

A callback is called with the `Step` just made; returning True stops the learning. One that needs to
know when a run begins and ends may have the methods ``begin(total)`` and ``end()`` as well, and one that
remembers earlier steps a method ``resume(history)``, called after `begin` where a run is taken up again.
"""

import copy
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from manifold_dl import metrics
from manifold_dl.problem.objective import Counts


@dataclass(frozen=True)
class Step:
    """One outer iteration, after its dictionary update."""

    iteration: int  # from 0
    dictionary: np.ndarray
    codes: Any  # sparse d×n: what the update left
    loss: float  # ‖Y − DX‖²/n
    objective: float  # ‖Y − DX‖² + μ‖X‖² + regularizers: what the update minimised
    seconds: float  # since learning began
    counts: Counts  # evaluations during this step
    replaced: np.ndarray  # atoms exchanged after the update
    snapshot: Any = None  # () → all that the next iteration reads, for a checkpoint
    relative_loss: float = np.nan  # ‖Y − DX‖²/‖Y‖²: the same in all units of Y


class Callback(Protocol):
    """Anything that is called with a `Step`."""

    def __call__(self, step):
        """Look at the step; return True to stop."""


class History:
    """The course of a run, column by column. It begins afresh with every run.

    Parameters
    ----------
    condition : bool
        Also keep κ, the worst condition number of a support (`metrics.condition_number`).
    coherence : bool
        Also keep the largest |⟨dᵢ, dⱼ⟩|.

    Examples
    --------
    >>> history = History()
    >>> history.loss
    array([], dtype=float64)
    >>> list(history.to_dict())[:3]
    ['iteration', 'loss', 'objective']
    """

    def __init__(self, condition=False, coherence=False):
        self.condition, self.coherence_wanted = condition, coherence
        self.begin()

    def begin(self, total=None):
        names = ["iteration", "loss", "objective", "seconds", "replaced", "relative_loss"]
        names += ["value", "gradient", "hessian", "probe", "factorisation", "sets", "improved", "refused"]
        names += ["kappa"] * self.condition + ["coherence"] * self.coherence_wanted
        self._columns = {name: [] for name in names}  # new lists: an earlier result keeps the old ones

    def __call__(self, step):
        row = {
            "iteration": step.iteration,
            "loss": step.loss,
            "objective": step.objective,
            "seconds": step.seconds,
            "replaced": len(step.replaced),
            "relative_loss": step.relative_loss,
        }
        row |= {name: getattr(step.counts, name) for name in self._columns if hasattr(step.counts, name)}
        if self.condition:
            row["kappa"] = metrics.condition_number(step.dictionary, step.codes)
        if self.coherence_wanted:
            row["coherence"] = metrics.coherence(step.dictionary)
        for name, column in self._columns.items():
            column.append(row[name])

    def __getattr__(self, name):
        columns = self.__dict__.get("_columns", {})
        if name in columns:
            return np.asarray(columns[name], dtype=float if not columns[name] else None)
        raise AttributeError(f"the history has no column {name!r}; it has {', '.join(columns)}.")

    def __len__(self):
        return len(self._columns["iteration"])

    def to_dict(self):
        """Column name → array."""
        return {name: getattr(self, name) for name in self._columns}

    def copy(self):
        """The iterations so far, for a result; a row that a subclass did not complete is left out."""
        kept = copy.copy(self)
        rows = min(map(len, self._columns.values()))
        kept._columns = {name: column[:rows] for name, column in self._columns.items()}
        return kept

    def restore(self, columns):
        """Take over the columns of a run that is being resumed; what it did not keep is unknown, NaN."""
        unknown = np.full(len(columns["iteration"]), np.nan)
        for name in self._columns:
            self._columns[name] = np.asarray(columns.get(name, unknown)).tolist()

    def __repr__(self):
        return f"History(condition={self.condition}, coherence={self.coherence_wanted})"


class Progress:
    """A progress bar with the loss and the time left; silent where the output is not a terminal."""

    def __init__(self, description="Learning", console=None):
        self.description, self.console = description, console
        self._bar = None

    def __repr__(self):
        return f"Progress({self.description!r})"

    def begin(self, total):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        console = self.console or Console(stderr=True)
        if not (console.is_terminal or console.is_jupyter):
            return
        columns = ["{task.description}", BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[loss]}")]
        self._bar = Bar(*columns, TimeRemainingColumn(), console=console, transient=False)
        self._bar.start()
        self._task = self._bar.add_task(self.description, total=total, loss="")

    def __call__(self, step):
        if self._bar is not None:
            self._bar.update(self._task, completed=step.iteration + 1, loss=f"loss {step.loss:.4g}")

    def end(self):
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

    def __post_init__(self):
        if self.patience < 1:
            raise ValueError(f"patience={self.patience}: wait for at least one iteration.")
        if not 0 <= self.min_decrease < 1:
            raise ValueError(f"min_decrease={self.min_decrease}: a share of the loss lies in [0, 1).")

    def begin(self, total):
        self._best, self._waited = np.inf, 0

    def resume(self, history):
        for loss in history.relative_loss:
            self._judge(loss)

    def __call__(self, step):
        return self._judge(step.relative_loss)

    def _judge(self, loss):
        if loss < (1 - self.min_decrease) * self._best:
            self._best, self._waited = loss, 0
        else:
            self._waited += 1
        return self._waited >= self.patience


@dataclass
class Checkpoint:
    """Write the run to `path` every so many iterations, for ``learn_dictionary(..., resume=path)``.

    The file is written under another name and then renamed, so an interrupted write loses nothing.
    A resumed run gives the same bits as one that was never stopped.
    """

    path: Any
    every: int = 1

    def __post_init__(self):
        if self.every != int(self.every) or self.every < 1:
            raise ValueError(f"every={self.every}: a checkpoint is written every 1, 2, 3, ... iterations.")

    def __call__(self, step):
        if (step.iteration + 1) % self.every == 0:
            from manifold_dl.learning import storage

            storage.save_checkpoint(step.snapshot(), self.path)
