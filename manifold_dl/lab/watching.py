"""A problem and a line searcher that are observed: what the page shows of a run comes from here.

Neither changes a number: `WatchedProblem` passes everything on to a problem and reports every accepted point
and every evaluation, and a `watched_searcher` reports the probes of its searches. The one is given to an
optimizer in the place of the problem, the other in the place of its line searcher.
"""

import functools
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl.line_search import SearchRecord, trace


class WatchedProblem:
    """A Pymanopt problem that reports.

    Parameters
    ----------
    problem : DictionaryProblem
        What is solved; it has a `record` of accepted points.
    on_evaluation : callable
        Called before every value and every gradient; what it raises ends the run.
    on_iterate : callable
        Called with every accepted point and its `Iterate`.
    """

    def __init__(
        self, problem: Any, on_evaluation: Callable[[], None], on_iterate: Callable[[np.ndarray, Any], None]
    ) -> None:
        self._problem, self._on_evaluation, self._on_iterate = problem, on_evaluation, on_iterate

        @functools.wraps(problem.cost)  # with its attributes: a line searcher looks for `restrict`
        def cost(point: np.ndarray) -> float:
            on_evaluation()
            return problem.cost(point)

        self.cost = cost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    @property
    def riemannian_gradient(self) -> Callable[[np.ndarray], np.ndarray]:
        """The gradient, which an optimizer evaluates at every point that it accepts."""
        return self._gradient

    def _gradient(self, point: np.ndarray) -> np.ndarray:
        self._on_evaluation()
        known = len(self._problem.record)
        gradient = self._problem.riemannian_gradient(point)
        if len(self._problem.record) > known:
            self._on_iterate(point, self._problem.record[-1])
        return gradient


@dataclass(frozen=True, eq=False)
class Search:
    """One line search, with the curve that it went along.

    Attributes
    ----------
    record : SearchRecord
        Its probes and the accepted t.
    point, direction : array
        Where the curve begins, and its direction.
    """

    record: SearchRecord
    point: np.ndarray
    direction: np.ndarray


def watched_searcher(searcher: Any, on_search: Callable[[Search], None]) -> Any:
    """A copy of a line searcher that reports its searches.

    It is of a subclass of the same name: optimizers look at the fields of a line searcher, copy it for every
    run and replace parameters of it.

    Parameters
    ----------
    searcher : line searcher
        What searches; it stays unchanged.
    on_search : callable
        Called with a `Search` after each.

    Returns
    -------
    line searcher
    """
    kind: Any = type(searcher)

    class Watched(kind):
        def search(
            self, objective: Any, manifold: Any, x: np.ndarray, d: np.ndarray, f0: float, df0: float
        ) -> tuple[float, np.ndarray]:
            curve = _ObservedCurve(objective, manifold, x, d)
            with trace() as records:
                found = super().search(curve.objective, curve, x, d, f0, df0)
            if records:  # a searcher of this package, which records its probes itself
                record = records[-1]
            else:
                norm = float(manifold.norm(x, d))
                t = _probe_at(float(found[0]) / norm if norm > 0 else 0.0, curve.probes)
                record = SearchRecord(kind.__name__, float(f0), float(df0), norm, curve.probes, t)
            on_search(Search(record, np.array(x), np.array(d)))
            return found

    Watched.__name__, Watched.__qualname__, Watched.__module__ = (
        kind.__name__,
        kind.__qualname__,
        kind.__module__,
    )
    watched = deepcopy(searcher)
    watched.__class__ = Watched
    return watched


def _probe_at(t: float, probes: list[tuple[float, float]]) -> float:
    """The t of the probe that was accepted: a step divided by the norm may differ from it in the last bit."""
    near = [probe for probe, _ in probes if abs(probe - t) <= 1e-12 * abs(t)]
    return near[-1] if near else t


class _ObservedCurve:
    """The manifold and the objective of one search, with a list of the t at which values were computed."""

    def __init__(self, objective: Any, manifold: Any, x: np.ndarray, d: np.ndarray) -> None:
        self._manifold, self._x, self._d = manifold, x, d
        self._square, self._t = float(np.vdot(d, d)), 0.0
        self.probes: list[tuple[float, float]] = []

        @functools.wraps(objective)
        def observed(point: np.ndarray) -> float:
            value = objective(point)
            self.probes.append((self._t, float(value)))
            return value

        self.objective = observed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manifold, name)

    def retraction(self, point: np.ndarray, step: np.ndarray) -> np.ndarray:
        """That of the manifold; the step is t d."""
        self._note(step)
        return self._manifold.retraction(point, step)

    def exp(self, point: np.ndarray, step: np.ndarray) -> np.ndarray:
        """That of the manifold; the step is t d."""
        self._note(step)
        return self._manifold.exp(point, step)

    def _note(self, step: np.ndarray) -> None:
        if self._square > 0:
            self._t = float(np.vdot(self._d, step)) / self._square
