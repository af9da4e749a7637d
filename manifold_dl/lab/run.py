"""A run in its own thread: it streams, waits, continues by single steps, and keeps what there is when it is
stopped.

The page reads `Run.iterates` while the thread appends to it; nothing of an entry changes afterwards. The
thread waits and ends only where the optimizer has accepted a point, or evaluates something: the numbers of a
run do not depend on how it was started and stopped.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from manifold_dl.components.entry_points import metadata_read_once
from manifold_dl.lab.job import Job, Stage, initial_point, solve
from manifold_dl.lab.watching import Search, WatchedProblem, watched_searcher
from manifold_dl.optimizers import OptimizerRun

KEPT = 200  # stages whose dictionaries and codes are kept, to draw φ along their steps


class State(Enum):
    """What a run is doing; the value of a member is a word for the page."""

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether the thread has ended."""
        return self in (State.FINISHED, State.STOPPED, State.FAILED)


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point that the optimizer accepted.

    Attributes
    ----------
    value : float
        The objective, of all atoms.
    gradient_norm : float
        Of the atoms that move.
    seconds : float
        Of computing, without the time that the run waited.
    evaluations : int
        Values, gradients, Hessian products and probes up to here.
    point : array (m×|I|)
        The atoms that move.
    stage : int
        Which run of the optimizer it belongs to.
    search : Search or None
        The line search that led to it.
    """

    value: float
    gradient_norm: float
    seconds: float
    evaluations: int
    point: np.ndarray
    stage: int
    search: Search | None


class StopRun(BaseException):
    """Ends a run from inside the optimizer; no ``except Exception`` of a component catches it."""


class Run:
    """One run of a job.

    Parameters
    ----------
    job : Job
        What is solved, and how.
    clock : callable
        Seconds.

    Attributes
    ----------
    iterates : list of Iterate
        What was accepted so far; the first of every stage is its start.
    stages : dict of int to Stage
        The last of them, by number.
    message : str
        Why it failed, else empty.

    Examples
    --------
    >>> from manifold_dl.lab.job import make_job
    >>> from manifold_dl.lab.settings import Settings
    >>> run = Run(make_job(Settings(m=4, d=6, n=50, sparsity=2, iterations=5)))
    >>> run.resume()
    >>> run.wait(60), len(run.iterates)
    (<State.FINISHED: 'finished'>, 6)
    """

    def __init__(self, job: Job, clock: Callable[[], float] = time.perf_counter) -> None:
        self.job, self.message = job, ""
        self.iterates: list[Iterate] = []
        self.stages: dict[int, Stage] = {}
        self.evaluations = 0
        self._dictionary, self._codes = job.start, None
        self._clock, self._waited, self._begun = clock, 0.0, 0.0
        self._base, self._offset, self._stage = 0, 0.0, -1
        self._search: Search | None = None
        self._changed = threading.Condition()
        self._state, self._steps, self._ending = State.PAUSED, 0, False
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> State:
        """What it is doing."""
        return self._state

    @property
    def is_stopping(self) -> bool:
        """Whether it was stopped, and has not ended yet."""
        return self._ending and not self._state.is_over

    @property
    def dictionary(self) -> np.ndarray:
        """The whole dictionary as it is now."""
        return self.dictionary_at(len(self.iterates) - 1)

    def dictionary_at(self, index: int) -> np.ndarray:
        """The whole dictionary at an iterate, as far as its stage is kept."""
        if not self.iterates:
            return self.job.start
        iterate = self.iterates[index]
        stage = self.stages.get(iterate.stage)
        if stage is None or stage.atoms is None:
            return iterate.point
        whole = stage.dictionary.copy()
        whole[:, stage.atoms] = iterate.point
        return whole

    def resume(self) -> None:
        """Run to the end."""
        self._go(None)

    def step(self) -> None:
        """Continue to the next accepted iterate, and wait there; the start counts as none."""
        self._go(1 if self.iterates else 2)

    def stop(self) -> None:
        """End; what there is stays."""
        with self._changed:
            self._ending = True
            if self._thread is None:
                self._state = State.STOPPED
            self._changed.notify_all()

    def wait(self, seconds: float, *, for_pause: bool = False) -> State:
        """Wait until the run is over, or paused; the state when that is so, or when the time has passed."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._state.is_over or (for_pause and self._state is State.PAUSED), seconds
            )
            return self._state

    def progress(self) -> tuple[float, float]:
        """The fraction of the iterations that may be needed at most, and the seconds left at this rate."""
        total = self.job.n_stages * self.job.settings.iterations
        if self._state.is_over:
            return 1.0, 0.0
        recent = self.iterates[-self.job.settings.iterations - 1 :]
        current = sum(iterate.stage == self._stage for iterate in recent) - 1
        done = max(self._stage, 0) * self.job.settings.iterations + max(current, 0)
        fraction = min(done / total, 0.99)
        return fraction, self._seconds() * (1 - fraction) / fraction if fraction > 0 else float("nan")

    @property
    def seconds(self) -> float:
        """Of computing until now."""
        return self._seconds() if self._state is State.RUNNING and self._thread is not None else 0.0

    def _go(self, steps: int | None) -> None:
        with self._changed:
            if self._state.is_over:
                return
            self._steps = -1 if steps is None else steps
            self._state = State.RUNNING
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="manifold-dl lab")
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        self._begun = self._clock()
        try:
            with metadata_read_once():  # every stage looks its optimizer up
                self._solve()
            end, message = State.FINISHED, ""
        except StopRun:
            end, message = State.STOPPED, ""
        except BaseException as error:  # of any component, some of which the user wrote; also SystemExit
            end, message = State.FAILED, str(error) or type(error).__name__
        with self._changed:
            self._state, self.message = end, message
            self._changed.notify_all()

    def _solve(self) -> None:
        job, rng = self.job, np.random.default_rng(self.job.settings.start_rng)
        searcher = None if job.searcher is None else watched_searcher(job.searcher, self._on_search)
        stages, point = solve(job), None
        while True:
            try:
                stage, problem = next(stages) if point is None else stages.send(point)
            except StopIteration:
                return
            self._begin(stage)
            watched = WatchedProblem(problem, self._on_evaluation(problem), self._on_iterate)
            start = initial_point(job, stage, problem)
            if self._stage == 0:
                watched.riemannian_gradient(start)  # records the start, for optimizers without gradients
            point = OptimizerRun(job.optimizer(searcher)).minimize(watched, start, rng)
            watched.riemannian_gradient(point)  # records the last point, where an optimizer did not
            self._base += _total(problem.counts)

    def _begin(self, stage: Stage) -> None:
        self._stage += 1
        self.stages[self._stage] = stage
        self.stages.pop(self._stage - KEPT, None)
        # The problem of a set I has no term for the codes of the other atoms.
        self._offset = 0.0
        if stage.atoms is not None and stage.codes is not None and stage.mu:
            others = np.delete(np.arange(stage.codes.shape[0]), stage.atoms)
            self._offset = stage.mu * float(np.sum(stage.codes.tocsr()[others].data ** 2))

    def _on_evaluation(self, problem: Any) -> Callable[[], None]:
        def check() -> None:
            self.evaluations = self._base + _total(problem.counts)
            if self._ending:
                raise StopRun

        return check

    def _on_search(self, search: Search) -> None:
        self._search = search

    def _on_iterate(self, point: np.ndarray, found: Any) -> None:
        search, self._search = self._search, None
        self.evaluations = self._base + found.evaluations
        self.iterates.append(
            Iterate(
                found.value + self._offset,
                found.gradient_norm,
                self._seconds(),
                self.evaluations,
                np.array(point),
                self._stage,
                search,
            )
        )
        self._wait_for_step()

    def _wait_for_step(self) -> None:
        began = self._clock()
        with self._changed:
            if self._steps > 0:
                self._steps -= 1
            if self._steps == 0 and not self._ending:
                self._state = State.PAUSED
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._steps != 0 or self._ending)
        self._waited += self._clock() - began
        if self._ending:
            raise StopRun

    def _seconds(self) -> float:
        return self._clock() - self._begun - self._waited


def _total(counts: Any) -> int:
    return counts.value + counts.gradient + counts.hessian + counts.probe
