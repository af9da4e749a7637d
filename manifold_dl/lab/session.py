"""The state of one page: its runs, the user's file and regularizer, and the missions that are done.

The page (`app.py`) only shows this object and calls its methods; all of it works without a browser.
"""

import weakref
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from manifold_dl.components.entry_points import metadata_read_once
from manifold_dl.lab.compatibility import Own, fault, reasons
from manifold_dl.lab.data import Upload
from manifold_dl.lab.job import make_job, make_problem
from manifold_dl.lab.missions import MISSIONS
from manifold_dl.lab.numbers import Numbers, glance, measure
from manifold_dl.lab.own_code import Typed, check_text
from manifold_dl.lab.parts import takes_line_searcher
from manifold_dl.lab.run import Run, State
from manifold_dl.lab.settings import OWN, Refused, Settings
from manifold_dl.line_search import SearchRecord

MOST_RUNS = 8
MOST_WHILE_RUNNING = 400  # signals; with more, κ and φ are computed when the run waits or ends


class Session:
    """The state of one page.

    Parameters
    ----------
    allow_code : bool
        Whether the user may type a regularizer; False with ``--no-code``.

    Attributes
    ----------
    runs : list of Run
        The last one is the current one.
    solved : dict of str
        The sentence of every mission that is done, by its key.
    typed : Typed or None
        What became of the text of the user's regularizer.

    Examples
    --------
    >>> session = Session()
    >>> session.run(Settings(m=4, d=6, n=50, sparsity=2, iterations=5))
    >>> session.current.wait(60)
    <State.FINISHED: 'finished'>
    >>> session.names()
    ['SteepestDescent, GoldenSection']
    """

    def __init__(self, allow_code: bool = True) -> None:
        self.allow_code = allow_code
        self.runs: list[Run] = []
        weakref.finalize(self, _stop_all, self.runs)  # once the page is closed, nothing else could stop them
        self.numbers: list[int] = []  # which colour each run has
        self.solved: dict[str, str] = {}
        self.typed: Typed | None = None
        self.text = ""
        self.chosen: Settings | None = None  # what the controls show, if it can be run
        self.upload: Upload | None = None
        self._checked: tuple[str, int, int] | None = None  # the text of `typed`, and for which atoms
        self._made = 0
        self._made_from: tuple[Any, ...] | None = None  # settings, file and regularizer of the current run
        self._reasons: tuple[Any, dict[str, dict[str, str]]] | None = None
        self._measured: dict[tuple[int, int], Numbers] = {}

    @property
    def current(self) -> Run | None:
        """The last run, if there is one."""
        return self.runs[-1] if self.runs else None

    @property
    def is_active(self) -> bool:
        """Whether the last run is computing."""
        return self.current is not None and self.current.state is State.RUNNING

    @property
    def shown(self) -> tuple[int, int] | None:
        """The number of the last run and its steps, any of which can be chosen; None while it computes."""
        if self.current is None or self.is_active:
            return None
        return self.numbers[-1], len(self.current.iterates) - 1

    @property
    def own(self) -> Own:
        """The user's file and regularizer."""
        regularizer = self.typed.regularizer if self.typed else None
        return Own(self.upload, regularizer, self.allow_code)

    def fault(self, settings: Settings) -> Refused | None:
        """Why these settings cannot be run; None if they can."""
        return fault(settings, self.own)

    def reasons(self, settings: Settings) -> dict[str, dict[str, str]]:
        """The options that do not go with the settings, and why."""
        key = (settings, self.upload, self.typed.regularizer if self.typed else None)
        if self._reasons is None or self._reasons[0] != key:  # 0.1 s, and every step shows them
            self._reasons = (key, reasons(settings, self.own))
        return self._reasons[1]

    def type(self, text: str, settings: Settings) -> Typed:
        """Compile and check the text of a regularizer; nothing is executed with ``--no-code``."""
        if not self.allow_code:
            raise PermissionError("This page was opened with --no-code: no text is executed.")
        asked = (text, min(settings.length, 16), min(settings.d, 16))
        if self.typed is None or asked != self._checked:
            self._checked, self.text, self.typed = asked, text, check_text(*asked)
        self.check_missions()
        return self.typed

    def run(self, settings: Settings) -> None:
        """Run to the end: a run of the same settings that is not over continues, else a new one begins."""
        self._active_or_new(settings).resume()

    def step(self, settings: Settings) -> None:
        """One accepted iterate more; a run that computes waits after it."""
        self._active_or_new(settings).step()

    def stop(self) -> None:
        """End the current run, and keep what there is."""
        if self.current is not None:
            self.current.stop()

    def delete(self, number: int) -> None:
        """Remove a run by its number."""
        if number in self.numbers:
            index = self.numbers.index(number)
            self.runs[index].stop()
            del self.runs[index], self.numbers[index]

    @metadata_read_once()
    def names(self) -> list[str]:
        """A name for every run: what differs among them."""
        settings = [run.job.settings for run in self.runs]
        differing = [f.name for f in fields(Settings) if len({getattr(s, f.name) for s in settings}) > 1]
        names = [", ".join(_called(s, name) for name in differing) for s in settings]
        if not differing:
            names = [_called(s, "optimizer") + ", " + _called(s, "line_searcher") for s in settings]
        doubles = [names[:k].count(name) for k, name in enumerate(names)]
        return [
            f"{name} ({again + 1})" if again else name for name, again in zip(names, doubles, strict=True)
        ]

    def measure(self, index: int = -1) -> Numbers | None:
        """The numbers of an iterate of the current run."""
        run = self.current
        if run is None or not run.iterates:
            return None
        if self.is_active and run.job.data.signals.shape[1] > MOST_WHILE_RUNNING:
            return glance(run)
        key = (self.numbers[-1], index % len(run.iterates))
        if key not in self._measured:
            self._measured = {key: measure(run, key[1])}
        return self._measured[key]

    def search(self, index: int) -> tuple[SearchRecord, Callable[[float], float]] | None:
        """The line search that led to an iterate of the current run, and φ; None where there is none."""
        run = self.current
        if run is None or not 0 < index < len(run.iterates):
            return None
        if self.is_active and run.job.data.signals.shape[1] > MOST_WHILE_RUNNING:
            return None
        before, iterate = run.iterates[index - 1], run.iterates[index]
        stage = run.stages.get(iterate.stage)
        if stage is None or before.stage != iterate.stage:
            return None
        problem = make_problem(run.job, stage, threads=1)
        if iterate.search is not None:
            search = iterate.search
            return search.record, _along(problem, search.point, search.direction)
        return _step_without_search(problem, before, iterate)

    def check_missions(self) -> None:
        """Tick the missions that are done by now."""
        for mission in MISSIONS:
            if mission.key in self.solved or not (self.runs or mission.key == "gradient"):
                continue
            found = mission.check(self.runs, self.typed)
            if found is not None:
                self.solved[mission.key] = found

    @metadata_read_once()
    def _active_or_new(self, settings: Settings) -> Run:
        run, made_from = self.current, (settings, self.upload, self._own_of(settings))
        if run is not None and not (run.state.is_over or run.is_stopping) and self._made_from == made_from:
            return run
        job = make_job(settings, self.upload, self.own.regularizer)
        self.stop()
        self._made_from = made_from
        self.runs.append(Run(job))
        self.numbers.append(self._made)
        self._made += 1
        if len(self.runs) > MOST_RUNS:
            self.delete(self.numbers[0])
        return self.runs[-1]

    def _own_of(self, settings: Settings) -> Any:
        return self.own.regularizer if settings.regularizer == OWN else None


def _stop_all(runs: list[Run]) -> None:
    for run in runs:
        run.stop()


def _called(settings: Settings, name: str) -> str:
    """A setting in the name of a run."""
    value = getattr(settings, name)
    if name == "line_searcher" and not takes_line_searcher(settings.optimizer):
        return "no line search"
    if name == "mu":
        return f"μ = {value}"
    if name == "ridge":
        return f"μ {value}"
    if name == "regularizer":
        return {OWN: "own R", "none": "no R"}.get(value, value)
    return value if isinstance(value, str) else f"{name} = {value:g}"


def _along(problem: Any, point: np.ndarray, direction: np.ndarray) -> Callable[[float], float]:
    """φ: cheap on the spheres, else the cost at points of the retraction."""
    try:
        return problem.restrict(point, direction)
    except (AttributeError, ValueError):
        return lambda t: problem.cost(problem.manifold.retraction(point, t * direction))


@np.errstate(all="ignore")  # Oblique's logarithm of an atom that did not move is NaN
def _step_without_search(
    problem: Any, before: Any, after: Any
) -> tuple[SearchRecord, Callable[[float], float]] | None:
    """The geodesic between two iterates, for optimizers that take whole steps."""
    try:
        direction = problem.manifold.log(before.point, after.point)
        norm = float(problem.manifold.norm(before.point, direction))
    except (NotImplementedError, ArithmeticError, np.linalg.LinAlgError):
        return None
    if not 0 < norm < np.inf:
        return None
    gradient = problem.riemannian_gradient(before.point)
    slope = float(problem.manifold.inner_product(before.point, gradient, direction))
    record = SearchRecord("no line search", float(problem.cost(before.point)), slope, norm, [], 1.0)
    return record, _along(problem, before.point, direction)
