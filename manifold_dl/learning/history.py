"""The course of a run: `Step`, one outer iteration, and `History`, the columns of numbers it leaves.

The learning loop and `minibatch.py` make the steps; a `Result` keeps the history.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl import metrics
from manifold_dl.problem.counts import Counts

# Numbers of evaluations, and what became of the sets of atoms: the fields of `Counts`.
COUNTS = (
    *("value", "gradient", "hessian", "probe", "factorisation"),
    *("sets", "improved", "refused", "rank_deficient"),
)


@dataclass(frozen=True)
class Step:
    """One outer iteration, after its dictionary update: what callbacks are called with.

    Attributes
    ----------
    iteration : int
        Counted from 0.
    dictionary : m×d array
        What the update returned, before any atom was replaced. It cannot be written to.
    codes : sparse d×n array
        What the update returned.
    loss : float
        ‖Y − DX‖²/n. With weights Σ w (Y − DX)²/Σ_j w̄_j, where w̄_j is the mean weight of signal j: integer
        weights of signals give the loss of repeated signals, and missing entries do not lower it.
    objective : float
        What the update minimised, with weights if there are any: ‖Y − DX‖² + μ‖X‖² + regularizers, or where
        codes follow by a penalty p ½‖Y − DX‖² + Σ p(x) + (μ/2)‖X‖² + regularizers.
    seconds : float
        Since learning began.
    counts : Counts
        Evaluations during this step.
    replaced : array of int
        The atoms replaced after the update.
    snapshot : callable
        Returns everything that the next iteration reads, for a checkpoint. None outside of a loop.
    relative_loss : float
        ‖Y − DX‖²/‖Y‖², with weights Σ w (Y − DX)²/Σ w Y²: the same in all units of Y.
    validation : float
        The loss of the signals given as `validation`, coded with this dictionary; NaN without any.

    Notes
    -----
    After a pass over mini-batches (`MiniBatches`) the dictionary is that of its end. Codes, loss and
    objective are those of every batch before the dictionary saw it; where an engine has the signals, the
    codes are None.
    """

    iteration: int
    dictionary: np.ndarray
    codes: Any
    loss: float
    objective: float
    seconds: float
    counts: Counts
    replaced: np.ndarray
    snapshot: Callable[[], Any] | None = None
    relative_loss: float = np.nan
    validation: float = np.nan


class History:
    """The course of a run, column by column. It begins afresh with every run.

    The columns are attributes: `iteration`, `loss`, `objective`, `seconds`, `replaced` (a number of atoms),
    `relative_loss`, `validation` (NaN without such signals), and the counts of evaluations; `rank_deficient`
    is the number of signals whose atoms were linearly dependent, or nearly so.

    Parameters
    ----------
    condition : bool
        Also keep κ, the worst condition number of a support (`metrics.condition_number`), as `kappa`.
    coherence : bool
        Also keep the largest |⟨dᵢ, dⱼ⟩|, as `coherence`.

    Examples
    --------
    >>> history = History()
    >>> history.loss
    array([], dtype=float64)
    >>> list(history.to_dict())[:3]
    ['iteration', 'loss', 'objective']
    """

    def __init__(self, condition: bool = False, coherence: bool = False) -> None:
        self.condition, self.coherence_wanted = condition, coherence
        self.begin()

    def begin(self, total: int | None = None) -> None:
        """Forget what an earlier run left.

        Parameters
        ----------
        total : int, optional
            The number of iterations to come; not used.
        """
        names = ["iteration", "loss", "objective", "seconds", "replaced", "relative_loss"]
        names += ["validation", *COUNTS]
        names += ["kappa"] * self.condition + ["coherence"] * self.coherence_wanted
        # New lists: an earlier result keeps the old ones.
        self._columns: dict[str, list[Any]] = {name: [] for name in names}

    def __call__(self, step: Step) -> None:
        """Append a row.

        Parameters
        ----------
        step : Step
        """
        row = {
            "iteration": step.iteration,
            "loss": step.loss,
            "objective": step.objective,
            "seconds": step.seconds,
            "replaced": len(step.replaced),
            "relative_loss": step.relative_loss,
            "validation": step.validation,
        }
        row |= {name: getattr(step.counts, name) for name in COUNTS}
        if self.condition:
            known = step.codes is not None
            row["kappa"] = metrics.condition_number(step.dictionary, step.codes) if known else np.nan
        if self.coherence_wanted:
            row["coherence"] = metrics.coherence(step.dictionary)
        for name, column in self._columns.items():
            column.append(row[name])

    def __getattr__(self, name: str) -> np.ndarray:
        columns = self.__dict__.get("_columns", {})
        if name in columns:
            return np.asarray(columns[name], dtype=float if not columns[name] else None)
        raise AttributeError(f"the history has no column {name!r}; it has {', '.join(columns)}.")

    def __len__(self) -> int:
        return len(self._columns["iteration"])

    def to_dict(self) -> dict[str, np.ndarray]:
        """All columns.

        Returns
        -------
        dict of str to array
        """
        return {name: getattr(self, name) for name in self._columns}

    def copy(self) -> "History":
        """The iterations so far, for a result; a row that a subclass did not complete is left out.

        Returns
        -------
        History
        """
        kept = copy.copy(self)
        rows = min(map(len, self._columns.values()))
        kept._columns = {name: column[:rows] for name, column in self._columns.items()}
        return kept

    def restore(self, columns: Mapping[str, Any]) -> None:
        """Take over the columns of a run that is being resumed; those that it did not keep become NaN.

        Parameters
        ----------
        columns : mapping of str to array
            As `to_dict` returns them.
        """
        unknown = np.full(len(columns["iteration"]), np.nan)
        for name in self._columns:
            self._columns[name] = np.asarray(columns.get(name, unknown)).tolist()

    def __repr__(self) -> str:
        return f"History(condition={self.condition}, coherence={self.coherence_wanted})"
