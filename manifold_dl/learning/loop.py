"""One run of the outer loop, Algorithm 1 of the paper, from one start.

`learn_dictionary` makes a `LearningRun` for each of its restarts. A run owns what changes in the course of
learning: the dictionary, the codes, the best of them so far and the history. The coder, the update rule, the
replacement of atoms and what happens after every iteration are objects that the caller chose; where one of
them fails, the error carries what was learned until then.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._validation import each_warning_once, warn_once
from manifold_dl.coders.calling import run_coder
from manifold_dl.components.errors import ComponentError, naming
from manifold_dl.engines.sources import as_signals
from manifold_dl.engines.threads import using_threads
from manifold_dl.engines.units import code_energies, times_square
from manifold_dl.learning.callbacks import History, Step
from manifold_dl.learning.initialization import initial_dictionary, start_on_manifold
from manifold_dl.learning.outcomes import run_replacement, run_update, wants_to_stop
from manifold_dl.learning.result import Reason, Result, explained_fraction, squared_error, warn_if_refused
from manifold_dl.learning.storage import RunState, fingerprint, load_checkpoint
from manifold_dl.problem.objective import Counts, tally
from manifold_dl.problem.regularization import penalty_of
from manifold_dl.updates.feasibility import replaced_onto_manifold
from manifold_dl.updates.simco import begin

STAGNATION = 3  # so many iterations without change in a row mean convergence


@dataclass(frozen=True)
class Settings:
    """What the caller of `learn_dictionary` chose: the same for every restart."""

    coder: Any
    update: Any
    max_iter: int
    init: Any
    tol: float
    callbacks: list
    threads: int | None
    replace: Any
    record: dict[str, Any]  # all of it as JSON, for the result


class Best(NamedTuple):
    """The best iteration so far; at first the start, which has no codes yet."""

    loss: float  # relative: ‖Y − DX‖²/‖Y‖²
    dictionary: np.ndarray
    codes: scipy.sparse.csc_array | None


class LearningRun:
    """Sparse coding and dictionary update in turn, from one start.

    Parameters
    ----------
    signals : m×n array
    n_atoms : int
    settings : Settings
    rng : Generator
    resume : path, optional
        A checkpoint to go on from.
    """

    def __init__(
        self,
        signals: np.ndarray,
        n_atoms: int,
        settings: Settings,
        rng: np.random.Generator,
        resume: Any = None,
    ) -> None:
        self.signals, self.settings = signals, settings
        callbacks = settings.callbacks
        self.history = next((c for c in callbacks if isinstance(c, History)), History())
        self.others = [callback for callback in callbacks if callback is not self.history]
        self.iteration: int | None = None  # the one at work
        self.initial_codes = None  # the coder's codes for the start
        self.state: RunState | None = None  # what is resumed
        if resume is None:
            self.rng, self.codes, self.stagnation, self.seconds = rng, None, 0, 0.0
            with naming(settings.init, "initial dictionary"):
                self.dictionary = initial_dictionary(signals, n_atoms, settings.init, rng)
            self.best = Best(np.inf, self.dictionary, None)
        else:
            self.state = state = load_checkpoint(resume, signals, n_atoms)
            self.rng, self.codes, self.stagnation = state.rng, state.codes, state.calm
            self.dictionary, self.seconds = state.dictionary, state.seconds
            self.best = Best(state.best_loss, state.best_dictionary, None)

    def learn(self) -> Result:
        """Run the loop to its end.

        Raises
        ------
        ComponentError, or a refusal of one of our parts
            Its attribute `partial` is a `Result` with the best dictionary until then.
        """
        with using_threads(self.settings.threads), each_warning_once():
            try:
                self._begin()
                with self._callbacks_at_work():
                    return self._finish(self._iterate())
            except Exception as error:
                self._add_partial(error)
                raise

    def _begin(self) -> None:
        settings, state = self.settings, self.state
        with naming(self.history, "callback"):
            self.history.begin(settings.max_iter)
            if state is not None:
                self.history.restore(state.columns)
            self.last_loss = float(self.history.relative_loss[-1]) if len(self.history) else None
        _, self.energy, self.exponent = as_signals(self.signals)
        if state is None:
            self.dictionary = start_on_manifold(self.dictionary, settings.init, settings.update)
            self.best = self.best._replace(dictionary=self.dictionary)
        # What changes in the course of a run is the run's own: the rule may be at work in another one, too.
        self.update = begin(settings.update, settings.max_iter, None if state is None else state.memory)
        self.start = time.perf_counter() - self.seconds
        self.last_ridge = self._ridge(settings.max_iter - 1)

    @contextmanager
    def _callbacks_at_work(self) -> Iterator[None]:
        """Tell the callbacks that the run begins, and, whatever happens, that it ends."""
        begun: list[Any] = []
        try:
            for callback in self.others:
                with naming(callback, "callback"):
                    if hasattr(callback, "begin"):
                        callback.begin(self.settings.max_iter)
                    begun.append(callback)
                    if self.state is not None and hasattr(callback, "resume"):
                        callback.resume(self.history)
            yield
        except BaseException as error:
            for fault in _end(begun):
                error.add_note(f"Afterwards: {fault}")
            raise
        for fault in _end(begun):
            raise fault

    def _iterate(self) -> Reason:
        """All iterations, and why they ended."""
        if self.stagnation >= STAGNATION:  # as it was when the checkpoint was written
            return Reason.CONVERGED
        first = 0 if self.state is None else self.state.iteration + 1
        try:
            for iteration in range(first, self.settings.max_iter):
                self.iteration = iteration
                reason = self._iterate_once(iteration)
                if reason is not None:
                    return reason
        except KeyboardInterrupt:
            _, self.dictionary, self.codes = self.best
            return Reason.INTERRUPTED
        return Reason.ITERATION_LIMIT

    def _iterate_once(self, iteration: int) -> Reason | None:
        """Code, update, replace, and tell the callbacks; a reason to stop, or None."""
        Y, settings = self.signals, self.settings
        with tally() as counts:
            codes = self._encode(self.dictionary, self.codes, iteration)
            if self.dictionary is self.best.dictionary:
                self.initial_codes = codes
            fitted, self.codes = run_update(
                settings.update, self.update, Y, self.dictionary, codes, iteration=iteration, rng=self.rng
            )
        self.dictionary, replaced = fitted, np.zeros(0, np.intp)
        error = squared_error(Y, fitted, self.codes, self.exponent)
        loss = error / self.energy if self.energy > 0 else 0.0  # relative, so that it exists at any scale
        if loss < self.best.loss:
            self.best = Best(loss, fitted, self.codes)
        # New atoms need time to settle.
        if settings.replace is not None and iteration < settings.max_iter - max(1, settings.max_iter // 10):
            D, replaced = run_replacement(settings.replace, Y, fitted, self.codes)
            self.dictionary = replaced_onto_manifold(settings.update, D, replaced)
        ridge = self._ridge(iteration)
        is_calm = ridge == self.last_ridge and len(replaced) == 0 and self._has_stagnated(loss)
        self.stagnation, self.last_loss = self.stagnation + 1 if is_calm else 0, loss
        self.seconds = time.perf_counter() - self.start
        if self._tell(self._step(iteration, fitted, error, ridge, counts, replaced)):
            self.dictionary = fitted
            return Reason.STOPPED
        if self.stagnation >= STAGNATION:
            self.dictionary = fitted
            return Reason.CONVERGED
        return None

    def _step(
        self,
        iteration: int,
        fitted: np.ndarray,
        error: float,
        ridge: float,
        counts: Counts,
        replaced: np.ndarray,
    ) -> Step:
        codes, now = self.codes, (self.dictionary, self.codes, self.stagnation, self.seconds)
        ridge_penalty = ridge * float(code_energies(codes, self.exponent).sum())
        penalties = penalty_of(getattr(self.settings.update, "regularizers", ()), fitted)
        shown = fitted.view()
        shown.flags.writeable = False  # a callback looks on; what it changed would go into the next iteration
        return Step(
            iteration,
            shown,
            codes,
            loss=self._in_data_units(error / self.signals.shape[1]),
            objective=times_square(error + ridge_penalty, self.exponent) + penalties,
            seconds=self.seconds,
            counts=counts,
            replaced=replaced,
            snapshot=partial(self._snapshot, iteration, now, self.best),
            relative_loss=self.last_loss,
        )

    def _in_data_units(self, loss: float) -> float:
        reported = times_square(loss, self.exponent)
        if loss > 0 and not np.finfo(float).tiny <= reported < np.inf:
            warn_once(
                f"history.loss is {reported:.1g}, because the squares of signals of about 2^{self.exponent} "
                "are no numbers of double precision. Dictionary, codes and history.relative_loss are right; "
                f"divide the signals by 2.0**{self.exponent} for a loss that can be read.",
                "loss out of range",
            )
        return reported

    def _tell(self, step: Step) -> bool:
        """Whether a callback wants to stop; all of them are told."""
        with naming(self.history, "callback"):
            self.history(step)
        answers = [wants_to_stop(callback, step) for callback in self.others]
        return any(answers)

    def _has_stagnated(self, loss: float) -> bool:
        tol, before = self.settings.tol, self.last_loss
        return tol > 0 and before is not None and abs(before - loss) <= tol * before

    def _ridge(self, iteration: int) -> float:
        """μ of one iteration, as far as the update rule has one."""
        with naming(self.settings.update, "update rule"):
            if hasattr(self.update, "mu_at"):
                return self.update.mu_at(iteration)
            mu = getattr(self.update, "mu", 0.0)
            return float(mu) if isinstance(mu, Real) else 0.0

    def _encode(self, dictionary: np.ndarray, codes: Any, iteration: int | None = None) -> Any:
        settings = self.settings
        options = {"threads": settings.threads, "codes": codes, "iteration": iteration}
        return run_coder(settings.coder, self.signals, dictionary, **options)

    def _snapshot(self, iteration: int, now: tuple, best: Best) -> RunState:
        """Everything that the next iteration reads, for a checkpoint."""
        memory, data = getattr(self.update, "memory", {}), fingerprint(self.signals)
        return RunState(iteration, *now, self.rng, self.history.to_dict(), memory, data, *best[:2])

    def _finish(self, reason: Reason) -> Result:
        """The result, with the coder's own codes for its dictionary."""
        D, codes = self.dictionary, self.codes
        try:
            codes = self._encode(D, codes)
        except KeyboardInterrupt:  # a second time: whoever is in such a hurry gets the codes of the update
            if codes is None:
                raise
        except Exception as error:
            error.add_note("It happened in the coding after the last iteration.")
            raise
        warn_if_refused(self.history)
        return self._result(D, codes, reason)

    def _result(self, D: np.ndarray, codes: scipy.sparse.csc_array, reason: Reason) -> Result:
        explained = explained_fraction(self.signals, D, codes)
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
        error.partial = self._result(D, codes, Reason.FAILED)
        error.add_note("Its attribute `partial` is the result until then, with the best dictionary.")

    def _codes_of_start(self, error: Exception) -> scipy.sparse.csc_array:
        """Codes for the dictionary of the start; none at all if it is the coder that failed."""
        if self.initial_codes is not None:
            return self.initial_codes
        D, n_signals = self.best.dictionary, self.signals.shape[1]
        if getattr(error, "component", None) is not self.settings.coder:
            try:
                return self._encode(D, None)
            except Exception as another:
                error.add_note(f"Afterwards: {another}")
        return scipy.sparse.csc_array((D.shape[1], n_signals), dtype=self.signals.dtype)


def _end(callbacks: list[Any]) -> list[Exception]:
    """Tell the callbacks, the last one first, that the run has ended; what they raise."""
    faults = []
    for callback in reversed(callbacks):
        if hasattr(callback, "end"):
            try:
                with naming(callback, "callback"):
                    callback.end()
            except Exception as fault:
                faults.append(fault)
    return faults
