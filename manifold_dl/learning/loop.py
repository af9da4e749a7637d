"""One run of the outer loop, Algorithm 1 of the paper, from one start.

`learn_dictionary` makes a `LearningRun` for each of its restarts. A run owns what changes in the course of
learning: the dictionary, the codes, the best of them so far and the history. The coder, the update rule, the
replacement policy and the callbacks are objects that the caller chose; where one of them fails, the error
has the result until then as its attribute `partial`.
"""

import math
import os
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._validation import each_warning_once
from manifold_dl.coders.calling import run_coder
from manifold_dl.components.errors import ComponentError, naming
from manifold_dl.engines import Engine
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals
from manifold_dl.engines.rounds import ClusterError
from manifold_dl.engines.threads import using_engine, using_threads
from manifold_dl.engines.units import times_square
from manifold_dl.learning.adapters import CallbackGroup, UpdateAdapter
from manifold_dl.learning.checkpoint import RunState, fingerprint, load_checkpoint
from manifold_dl.learning.distant_codes import codes_of_result
from manifold_dl.learning.history import Step
from manifold_dl.learning.initialization import initial_dictionary, start_on_manifold
from manifold_dl.learning.outcomes import run_replacement
from manifold_dl.learning.result import Reason, Result, warn_if_refused
from manifold_dl.learning.signal_sums import LossScale, code_energies, explained_fraction, squared_error
from manifold_dl.learning.stagnation import Stagnation
from manifold_dl.problem.counts import Counts, count_evaluations


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
    record: dict[str, Any]  # all of it as JSON, for the result

    @property
    def end_of_replacement(self) -> int:
        """No atom is replaced from this iteration on: new atoms need time to settle."""
        return self.max_iter - max(1, self.max_iter // 10)


class Best(NamedTuple):
    """The best iteration so far; at first the start, which has no codes yet."""

    loss: float  # relative: ‖Y − DX‖²/‖Y‖²
    dictionary: np.ndarray
    codes: scipy.sparse.csc_array | None


class LearningRun:
    """Sparse coding and dictionary update in turn, from one start.

    Parameters
    ----------
    signals : m×n array or BlockedSignals
    n_atoms : int
    settings : Settings
    rng : Generator
    resume : path, optional
        A checkpoint to continue from.
    """

    def __init__(
        self,
        signals: Any,
        n_atoms: int,
        settings: Settings,
        rng: np.random.Generator,
        resume: str | os.PathLike[str] | None = None,
    ) -> None:
        self.signals, self.settings = signals, settings
        self.callbacks = CallbackGroup(settings.callbacks)
        self.history = self.callbacks.history
        if resume is None:
            with naming(settings.init, "initial dictionary"):
                start = initial_dictionary(signals, n_atoms, settings.init, rng)
            self.state = RunState.initial(start, rng)
        else:
            self.state = load_checkpoint(resume, signals, n_atoms)
        self.rng, self.seconds = self.state.rng, self.state.seconds
        self.dictionary, self.codes = self.state.dictionary, self.state.codes
        self.best = Best(self.state.best_loss, self.state.best_dictionary, self.state.best_codes)
        self.iteration: int | None = None  # the one at work
        self.initial_codes: Any = None  # the coder's codes for the start

    def learn(self) -> Result:
        """Run the loop to its end.

        Returns
        -------
        Result

        Raises
        ------
        ComponentError, or an error of input validation
            Its attribute `partial` is a `Result` with the best dictionary until then.
        """
        settings = self.settings
        with using_threads(settings.threads), using_engine(settings.engine), each_warning_once():
            try:
                self._begin()
                with self.callbacks.at_work(settings.max_iter, is_resumed=self.state.has_begun):
                    return self._finish(self._iterate())
            except Exception as error:
                self._add_partial(error)
                raise

    def _begin(self) -> None:
        """What may fail before the first iteration, and needs a dictionary for the partial result."""
        settings, state = self.settings, self.state
        self.callbacks.begin_history(settings.max_iter, state.columns if state.has_begun else None)
        last_loss = float(self.history.relative_loss[-1]) if len(self.history) else None
        self.stagnation = Stagnation(settings.tol, state.stagnation, last_loss)
        self.scale = LossScale.of(self.signals)
        if not state.has_begun:
            self.dictionary = start_on_manifold(self.dictionary, settings.init, settings.update)
            self.best = self.best._replace(dictionary=self.dictionary)
        self.update = UpdateAdapter(settings.update, settings.max_iter, state.memory)
        self.last_ridge = self.update.ridge(settings.max_iter - 1)
        self.start = time.perf_counter() - self.seconds

    def _iterate(self) -> Reason:
        """All iterations, and why they ended."""
        if self.stagnation.has_converged:  # as it was when the checkpoint was written
            return Reason.CONVERGED
        try:
            for iteration in range(self.state.iteration + 1, self.settings.max_iter):
                self.iteration = iteration
                step = self._iterate_once(iteration)
                stopped = self.callbacks.stop_after(step)
                if stopped or self.stagnation.has_converged:
                    self.dictionary = self.fitted
                    return Reason.STOPPED if stopped else Reason.CONVERGED
        except KeyboardInterrupt:
            _, self.dictionary, self.codes = self.best
            return Reason.INTERRUPTED
        return Reason.ITERATION_LIMIT

    def _iterate_once(self, iteration: int) -> Step:
        """Sparse coding, dictionary update, replacement of atoms."""
        with count_evaluations() as counts:
            codes = self._encode(self.dictionary, self.codes, iteration)
            if self.dictionary is self.best.dictionary:
                self.initial_codes = codes
            self.fitted, self.codes = self.update(self.signals, self.dictionary, codes, iteration, self.rng)
        error = squared_error(self.signals, self.fitted, self.codes, self.scale.exponent)
        loss = self.scale.relative(error)
        if loss < self.best.loss:
            self.best = Best(loss, self.fitted, self.codes)
        self.dictionary, replaced = self._replace(iteration)
        ridge = self.update.ridge(iteration)
        is_settled = self.update.settled and ridge == self.last_ridge and len(replaced) == 0
        self.stagnation.observe(loss, is_settled=is_settled)
        self.seconds = time.perf_counter() - self.start
        return self._step(iteration, error, ridge, counts, replaced)

    def _encode(self, dictionary: np.ndarray, codes: Any, iteration: int | None = None) -> Any:
        options = {"threads": self.settings.threads, "codes": codes, "iteration": iteration}
        return run_coder(self.settings.coder, self.signals, dictionary, **options)

    def _replace(self, iteration: int) -> tuple[np.ndarray, np.ndarray]:
        """The dictionary of the next iteration, and the atoms that were replaced for it."""
        settings = self.settings
        if settings.replace is None or iteration >= settings.end_of_replacement:
            return self.fitted, np.zeros(0, np.intp)
        D, replaced = run_replacement(settings.replace, self.signals, self.fitted, self.codes)
        return self.update.onto_manifold(D, replaced), replaced

    def _step(self, iteration: int, error: float, ridge: float, counts: Counts, replaced: np.ndarray) -> Step:
        scale, codes = self.scale, self.codes
        ridge_penalty = ridge * float(code_energies(codes, scale.exponent).sum()) if ridge else 0.0
        shown = self.fitted.view()
        shown.flags.writeable = False  # what a callback changed would go into the next iteration
        scale.warn_if_out_of_range(error)
        return Step(
            iteration,
            shown,
            codes,
            loss=scale.per_signal(error),
            objective=times_square(error + ridge_penalty, scale.exponent) + self.update.penalty(self.fitted),
            seconds=self.seconds,
            counts=counts,
            replaced=replaced,
            snapshot=partial(self._snapshot, self._now(iteration)),
            relative_loss=scale.relative(error),
        )

    def _now(self, iteration: int) -> RunState:
        """What the next iteration reads of the arrays and numbers of this one."""
        best, codes = self.best, self.codes
        if isinstance(codes, BlockedCodes):  # the coder makes them again, with the same bits
            best, codes = best._replace(codes=None), None
        return RunState(
            iteration, self.dictionary, codes, self.stagnation.count, self.seconds, self.rng, *best
        )

    def _snapshot(self, state: RunState) -> RunState:
        """Everything that the next iteration reads, for a checkpoint."""
        state.columns, state.memory = self.history.to_dict(), self.update.memory
        state.fingerprint = fingerprint(self.signals)
        return state

    def _finish(self, reason: Reason) -> Result:
        """The result, with the coder's own codes for its dictionary."""
        D, codes = self.dictionary, self.codes
        try:
            codes = self._encode(D, codes)
        except KeyboardInterrupt:  # a second time: the codes of the update will do
            if codes is None:
                raise
        except Exception as error:
            error.add_note("It happened in the coding after the last iteration.")
            raise
        warn_if_refused(self.history)
        return self._result(D, codes, reason)

    def _result(self, D: np.ndarray, codes: Any, reason: Reason, is_lost: bool = False) -> Result:
        # Codes of zero, for want of others, take the place of codes that a lost cluster has.
        is_unknown = is_lost or isinstance(self.signals, BlockedSignals) > isinstance(codes, BlockedCodes)
        explained = math.nan if is_unknown else explained_fraction(self.signals, D, codes)
        if isinstance(codes, BlockedCodes):
            codes = codes_of_result(self.signals, self.settings.coder, D, codes, is_lost)
        # A copy, so that the next run with the same History does not take this one's columns away.
        return Result(D, codes, self.history.copy(), reason, explained, self.settings.record)

    def _add_partial(self, error: Exception) -> None:
        """Give an error the iteration where it happened, and the best result until then."""
        if isinstance(error, ComponentError) and error.iteration is None:
            error.iteration = self.iteration
        elif self.iteration is not None:
            error.add_note(f"It happened in iteration {self.iteration} of learn_dictionary.")
        _, D, codes = self.best
        if codes is None:
            codes = self._codes_of_start(error)
        is_lost = isinstance(error, ClusterError)
        error.partial = self._result(D, codes, Reason.FAILED, is_lost)  # type: ignore[attr-defined]
        error.add_note("Its attribute `partial` is the result until then, with the best dictionary.")

    def _codes_of_start(self, error: Exception) -> scipy.sparse.csc_array:
        """Codes for the dictionary of the start; none at all if it is the coder that failed."""
        if self.initial_codes is not None:
            return self.initial_codes
        D, n_signals = self.best.dictionary, self.signals.shape[1]
        if not (isinstance(error, ComponentError) and error.component is self.settings.coder):
            try:
                return self._encode(D, None)
            except Exception as another:
                error.add_note(f"Afterwards: {another}")
        return scipy.sparse.csc_array((D.shape[1], n_signals), dtype=self.signals.dtype)
