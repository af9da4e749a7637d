"""One run of the outer loop, Algorithm 1 of the paper, from one start.

`learn_dictionary` makes a `LearningRun` for each of its restarts. A run owns what changes in the course of
learning: the dictionary, the codes, the best of them so far and the history. The components are objects that
the caller chose; where one of them fails, the error has the result until then as its attribute `partial`.
"""

import math
import time
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._validation import each_warning_once
from manifold_dl._weights import by_signal
from manifold_dl.coders.calling import run_coder
from manifold_dl.components.errors import ComponentError, naming, naming_nested
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals
from manifold_dl.engines.threads import using_engine, using_threads
from manifold_dl.engines.units import times_square
from manifold_dl.learning.adapters import CallbackGroup, UpdateAdapter
from manifold_dl.learning.batch_passes import pass_over_batches
from manifold_dl.learning.checkpoint import RunState
from manifold_dl.learning.distant_codes import CodesAhead, codes_of_result
from manifold_dl.learning.fingerprint import fingerprint
from manifold_dl.learning.history import Step
from manifold_dl.learning.initialization import initial_dictionary, start_on_manifold
from manifold_dl.learning.minibatch import OnlineState
from manifold_dl.learning.outcomes import run_replacement
from manifold_dl.learning.result import Reason, Result, warn_if_refused
from manifold_dl.learning.run_settings import Best, Restart, Settings
from manifold_dl.learning.signal_sums import LossScale, code_energies, squared_error, unexplained_fraction
from manifold_dl.learning.stagnation import Stagnation
from manifold_dl.learning.validation import validation_loss
from manifold_dl.problem.counts import Counts, count_evaluations


class LearningRun:
    """Sparse coding and dictionary update in turn, from one start.

    Parameters
    ----------
    signals : m×n array or BlockedSignals
    n_atoms : int
    settings : Settings
    rng : Generator
    restart : Restart, optional
    weights : array of length n, m×n array or BlockedWeights, optional
        Of the signals, or of their entries; the signals are zero where these are.
    """

    def __init__(
        self,
        signals: Any,
        n_atoms: int,
        settings: Settings,
        rng: np.random.Generator,
        restart: Restart = Restart(),  # noqa: B008 - a tuple: one for all calls
        weights: Any = None,
    ) -> None:
        self.signals, self.settings, self.weights, self.restart = signals, settings, weights, restart
        self.callbacks = CallbackGroup(settings.callbacks)
        self.history = self.callbacks.history
        if restart.state is None:
            with naming(settings.init, "initial dictionary"):
                start = initial_dictionary(signals, n_atoms, settings.init, rng, weights)
            self.state = RunState.initial(start, rng)
        else:
            self.state = restart.state
        self.rng, self.seconds = self.state.rng, self.state.seconds
        self.dictionary, self.codes = self.state.dictionary, self.state.codes
        self.best = Best(self.state.best_loss, self.state.best_dictionary, self.state.best_codes)
        self.online = self.state.online or OnlineState(np.zeros(n_atoms))
        self.iteration: int | None = None  # the one at work
        self.ahead, self.unexplained = CodesAhead(signals), math.nan  # ‖Y − DX‖²/‖Y‖² of the result

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
        total, has_begun = self.settings.max_iter, self.state.has_begun
        with using_threads(self.settings.threads), using_engine(self.settings.engine), each_warning_once():
            try:
                with naming_nested():
                    self._begin()
                    with self.callbacks.at_work(total, is_resumed=has_begun):
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
        self.scale = LossScale.of(self.signals, self.weights)
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
                is_full = iteration >= self.settings.n_batch_passes
                iterate = self._iterate_once if is_full else self._pass_over_batches
                stopped = self.callbacks.stop_after(iterate(iteration))  # no name: a step holds all codes
                if stopped or self.stagnation.has_converged:
                    self.dictionary = self.fitted
                    return Reason.STOPPED if stopped else Reason.CONVERGED
        except KeyboardInterrupt:
            self.dictionary = self.best.dictionary
            self.codes = self.codes if self.best.codes is None else self.best.codes
            return Reason.INTERRUPTED
        return Reason.ITERATION_LIMIT

    def _iterate_once(self, iteration: int) -> Step:
        """Sparse coding, dictionary update, replacement of atoms."""
        settings = self.settings
        with count_evaluations() as counts:
            self.codes = self._encode(self.dictionary, self.codes, iteration)
            if self.best.codes is None and self.dictionary is self.best.dictionary:
                self.best = self.best._replace(codes=self.codes)
            self.fitted, self.codes = self.update(
                self.signals, self.dictionary, self.codes, iteration, self.rng, self.weights
            )
        fit, ahead = (self.signals, self.fitted, self.codes), self.ahead.begin(self.fitted, self._encode)
        error = squared_error(*fit, self.scale.exponent, weights=self.weights, ahead=ahead)
        loss = self.scale.relative(error)
        # The loss of a pass over mini-batches, in which the dictionary moves, is no measure for its last one.
        if loss < self.best.loss or iteration == settings.n_batch_passes:
            self.best = Best(loss, self.fitted, self.codes)
        self.dictionary, replaced = self._replace(iteration)
        ridge = self.update.ridge(iteration)
        is_settled = self.update.settled and ridge == self.last_ridge and len(replaced) == 0
        self.stagnation.observe(loss, is_settled=is_settled)
        self.seconds = time.perf_counter() - self.start
        return self._step(iteration, error, self._ridge_penalty(ridge), counts, replaced)

    def _pass_over_batches(self, iteration: int) -> Step:
        """All signals once, batch by batch: the dictionary moves after each of them."""
        settings = self.settings
        assert settings.minibatches is not None  # there are none otherwise
        rule = settings.minibatches.rule(settings.update, self.last_ridge, self.signals.shape[1])
        known = self.signals, self.dictionary, self.online
        with count_evaluations() as counts:
            found = pass_over_batches(
                settings.minibatches,
                *known,
                coder=settings.coder,
                rule=rule,
                scale=self.scale,
                at=(iteration, settings.max_iter),
                rng=self.rng,
                weights=self.weights,
            )
        self.fitted, self.online, self.codes, error, energy = found
        self.dictionary = self.fitted
        # Its codes are those of the dictionaries on the way: where it is asked for, it is coded anew.
        self.best = Best(self.scale.relative(error), self.fitted, None)
        self.stagnation.observe(self.best.loss, is_settled=False)
        self.seconds = time.perf_counter() - self.start
        return self._step(iteration, error, self.last_ridge * energy, counts, np.zeros(0, np.intp))

    def _encode(self, dictionary: np.ndarray, codes: Any, iteration: int | None = None) -> Any:
        if self.ahead.are_of(dictionary):
            return self.ahead.codes
        options = {"threads": self.settings.threads, "codes": codes, "iteration": iteration}
        return run_coder(self.settings.coder, self.signals, dictionary, weights=self.weights, **options)

    def _replace(self, iteration: int) -> tuple[np.ndarray, np.ndarray]:
        """The dictionary of the next iteration, and the atoms that were replaced for it."""
        settings = self.settings
        if settings.replace is None or iteration >= settings.end_of_replacement:
            return self.fitted, np.zeros(0, np.intp)
        fit = self.signals, self.fitted, self.codes
        D, replaced = run_replacement(settings.replace, *fit, self.weights)
        return self.update.onto_manifold(D, replaced), replaced

    def _ridge_penalty(self, ridge: float) -> float:
        """μ‖X‖². A weight per signal multiplies its ridge; weights of entries do not."""
        if not ridge:
            return 0.0
        energies = code_energies(self.codes, self.scale.exponent, weights=by_signal(self.weights))
        return ridge * float(energies.sum())

    def _step(
        self, iteration: int, error: float, ridge_penalty: float, counts: Counts, replaced: np.ndarray
    ) -> Step:
        scale, codes = self.scale, self.codes
        objective = self.update.objective if codes is not None else None
        if objective is None:
            minimised = times_square(error + ridge_penalty, scale.exponent)
            objective = minimised + self.update.penalty(self.fitted)
        shown = self.fitted.view()
        shown.flags.writeable = False  # what a callback changed would go into the next iteration
        scale.warn_if_out_of_range(error)
        begin = time.perf_counter()
        validation = validation_loss(self.settings, self.fitted, self.signals)
        self.start += time.perf_counter() - begin  # it does not count as time of the run
        return Step(
            iteration,
            shown,
            codes,
            loss=scale.per_signal(error),
            objective=objective,
            seconds=self.seconds,
            counts=counts,
            replaced=replaced,
            snapshot=partial(self._snapshot, self._now(iteration)),
            relative_loss=scale.relative(error),
            validation=validation,
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
        state.fingerprint = fingerprint(self.signals, self.weights)
        state.settings = self.settings.record
        state.run, state.earlier = self.restart.number, self.restart.earlier
        state.online = self.online if self.settings.minibatches is not None else None
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
        if not is_unknown:
            self.unexplained = unexplained_fraction(self.signals, D, codes, weights=self.weights)
        if isinstance(codes, BlockedCodes):
            codes = codes_of_result(self.signals, self.weights, self.settings.coder, D, codes, is_lost)
        # A copy, so that the next run with the same History does not take this one's columns away.
        return Result(D, codes, self.history.copy(), reason, 1 - self.unexplained, self.settings.record)

    def _add_partial(self, error: Exception) -> None:
        """Give an error the iteration where it happened, and the best result until then."""
        if isinstance(error, ComponentError) and error.iteration is None:
            error.iteration = self.iteration
        elif self.iteration is not None:
            error.add_note(f"It happened in iteration {self.iteration} of learn_dictionary.")
        _, D, codes = self.best
        if codes is None:
            codes = self._codes_of_best(error)
        # A lost cluster, a full disk: nothing more can be computed there. A `ClusterError` is an OSError.
        is_lost = isinstance(error, OSError | MemoryError)
        try:
            error.partial = self._result(D, codes, Reason.FAILED, is_lost)  # type: ignore[attr-defined]
        except Exception:  # a file is gone: what is known here has to do
            error.partial = self._result(D, codes, Reason.FAILED, True)  # type: ignore[attr-defined]
        error.add_note("Its attribute `partial` is the result until then, with the best dictionary.")

    def _codes_of_best(self, error: Exception) -> scipy.sparse.csc_array:
        """Codes for the best dictionary, where it has none yet; of zero if it is the coder that failed."""
        D, n = self.best.dictionary, self.signals.shape[1]
        if not (isinstance(error, ComponentError) and error.component is self.settings.coder):
            try:
                return self._encode(D, None)
            except Exception as another:
                error.add_note(f"Afterwards: {another}")
        return scipy.sparse.csc_array((D.shape[1], n), dtype=self.signals.dtype)
