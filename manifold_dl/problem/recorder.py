"""What a problem writes down of an optimizer's run: the points it accepted, and when.

Pymanopt's own logs do not know of evaluations, and those of its trust region are empty. `problem.py` keeps
these books in its gradient, which every optimizer asks for once at every point it accepts.
"""

import time
from typing import NamedTuple


class Iterate(NamedTuple):
    """What is known of a point that an optimizer accepted."""

    value: float
    gradient_norm: float
    seconds: float
    evaluations: int  # values, gradients, Hessian products and probes, up to here


class Books:
    """Since when there are evaluations, and which point was written down last."""

    def __init__(self):
        self.started = self.last = None

    def begin(self):
        if self.started is None:
            self.started = time.perf_counter()

    def seconds(self):
        return time.perf_counter() - self.started

    def is_new(self, key):
        """Whether this point is another than the last one, which it now is."""
        new, self.last = key != self.last, key
        return new
