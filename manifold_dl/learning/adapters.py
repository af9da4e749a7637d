"""Objects that the user chose, with all methods that the learning loop calls.

One adapter for each kind: `CallbackAdapter` and, for all callbacks of a run, `CallbackGroup`; `UpdateAdapter`
for an update rule at work. A method that the user's object does not have gets the default that its protocol
documents, here and nowhere else; an error in it names the object.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from manifold_dl.components.errors import naming
from manifold_dl.learning.history import History, Step
from manifold_dl.learning.outcomes import Pair, requests_stop, run_update
from manifold_dl.learning.protocols import Callback
from manifold_dl.problem.regularization import penalty_of
from manifold_dl.updates.feasibility import replaced_onto_manifold
from manifold_dl.updates.protocol import DictionaryUpdate, begin, regularizers_of, ridge_of


class UpdateAdapter:
    """An update rule at work in one run.

    What changes in the course of a run (step lengths, a ridge schedule bound to its length) belongs to the
    object that `updates.begin` returns, so that one rule may serve several runs.

    Parameters
    ----------
    rule : DictionaryUpdate
    max_iter : int
        The number of iterations that its ridge schedule is bound to.
    memory : dict, optional
        That of an earlier run, to continue from.
    """

    def __init__(
        self, rule: DictionaryUpdate, max_iter: int, memory: dict[str, float | None] | None = None
    ) -> None:
        self.rule = rule
        self._run = begin(rule, max_iter, memory)
        self._regularizers = regularizers_of(rule)

    def __call__(
        self,
        signals: np.ndarray,
        dictionary: np.ndarray,
        codes: Any,
        iteration: int,
        rng: np.random.Generator | int | None,
        weights: np.ndarray | None = None,
    ) -> Pair:
        """One update stage: the new dictionary and codes."""
        arguments = self.rule, self._run, signals, dictionary, codes
        return run_update(*arguments, iteration=iteration, rng=rng, weights=weights)

    @property
    def memory(self) -> dict[str, float | None]:
        """What the next iteration reads besides its arguments; nothing by default."""
        return getattr(self._run, "memory", {})

    def ridge(self, iteration: int) -> float:
        """μ of an iteration: `mu_at`, or the number `mu`, or 0."""
        with naming(self.rule, "update rule"):
            return ridge_of(self._run, iteration)

    @property
    def objective(self) -> float | None:
        """The objective of the last call, where it is not that of codes on supports."""
        return getattr(self._run, "objective", None)

    @property
    def settled(self) -> bool:
        """Whether the rule has come to its last phase; it has, by default."""
        return bool(getattr(self._run, "settled", True))

    def penalty(self, dictionary: np.ndarray) -> float:
        """Σ R(D) over the regularizers of the rule; 0 by default."""
        return penalty_of(self._regularizers, dictionary)

    def onto_manifold(self, dictionary: np.ndarray, replaced: np.ndarray) -> np.ndarray:
        """The dictionary on the manifold of the rule again, after some atoms were replaced."""
        return replaced_onto_manifold(self.rule, dictionary, replaced)


class CallbackAdapter:
    """A callback with all the methods of `CallbackMethods`."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback

    def begin(self, total: int) -> None:
        """Call the method `begin`, if there is one."""
        self._call("begin", total)

    def resume(self, history: History) -> None:
        """Call the method `resume`, if there is one."""
        self._call("resume", history)

    def __call__(self, step: Step) -> bool:
        """Whether the callback stops the learning."""
        return requests_stop(self.callback, step)

    def end(self) -> None:
        """Call the method `end`, if there is one."""
        self._call("end")

    def reconstructed(self, done: int, total: int) -> None:
        """Call the method `reconstructed`, if there is one."""
        self._call("reconstructed", done, total)

    def _call(self, method: str, *arguments: Any) -> None:
        if hasattr(self.callback, method):
            with naming(self.callback, "callback"):
                getattr(self.callback, method)(*arguments)


class CallbackGroup:
    """The callbacks of a run. The first `History` among them, or a new one, is that of the result."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        found = next((one for one in callbacks if isinstance(one, History)), None)
        self.history = History() if found is None else found
        self._others = [CallbackAdapter(one) for one in callbacks if one is not self.history]

    def begin_history(self, total: int, columns: dict[str, np.ndarray] | None) -> None:
        """Begin the history, with the columns of the run that is resumed, if it is."""
        with naming(self.history, "callback"):
            self.history.begin(total)
            if columns is not None:
                self.history.restore(columns)

    @contextmanager
    def at_work(self, total: int, is_resumed: bool) -> Iterator[None]:
        """Begin the callbacks, and end those that have begun, also after an error inside the block."""
        begun: list[CallbackAdapter] = []
        try:
            for callback in self._others:
                callback.begin(total)
                begun.append(callback)
                if is_resumed:
                    callback.resume(self.history)
            yield
        except BaseException as error:
            for fault in _end(begun):
                error.add_note(f"Afterwards: {fault}")
            raise
        for fault in _end(begun):
            raise fault

    def stop_after(self, step: Step) -> bool:
        """Whether a callback stops the learning; all of them are called."""
        with naming(self.history, "callback"):
            self.history(step)
        stops = [callback(step) for callback in self._others]
        return any(stops)


def _end(callbacks: list[CallbackAdapter]) -> list[Exception]:
    """End the callbacks, the last one first; what they raise."""
    faults: list[Exception] = []
    for callback in reversed(callbacks):
        try:
            callback.end()
        except Exception as fault:
            faults.append(fault)
    return faults
