"""A record of the points that an optimizer accepted, and when.

Pymanopt's own logs hold no evaluations, and those of its trust region are empty. `dictionary_problem.py`
records in its gradient, which every optimizer evaluates once at every point it accepts.
"""

import time
from typing import NamedTuple


class Iterate(NamedTuple):
    """A point that an optimizer accepted."""

    value: float
    gradient_norm: float
    seconds: float  # since the first evaluation
    evaluations: int  # values, gradients, Hessian products and probes, up to here


class IterationRecorder:
    """When the evaluations began, and which point was recorded last."""

    def __init__(self) -> None:
        self._started: float | None = None
        self._last: bytes | None = None

    def begin(self) -> None:
        """Start the clock, at the first call."""
        if self._started is None:
            self._started = time.perf_counter()

    def seconds(self) -> float:
        """Seconds since the first evaluation."""
        return 0.0 if self._started is None else time.perf_counter() - self._started

    def is_new(self, key: bytes) -> bool:
        """Whether this point is another than the last one, which it now is."""
        is_new, self._last = key != self._last, key
        return is_new
