"""Numbers that fall in the course of learning: for the ridge μ, or for the penalty of a coder.

A schedule is a function of the outer iteration. One that depends on how many iterations there will be offers
`bind` as well (see `RidgeSchedule`): a learning loop binds it to its length before the first iteration.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from manifold_dl._validation import as_ridge, require_count
from manifold_dl.components.errors import ComponentError, naming

__all__ = ["RidgeSchedule", "Sawtooth", "TwoStep"]


class RidgeSchedule(Protocol):
    """The ridge μ of every outer iteration: any function of the iteration, or an object such as `TwoStep`.

    ``schedule(iteration)`` is the ridge of that iteration, counted from 0. The method `bind` of
    `FullRidgeSchedule` is optional: ``schedule.bind(max_iter)`` returns the schedule for a loop of `max_iter`
    iterations (or a number, or a sequence with a ridge for every iteration). In a single update, outside of a
    loop, `bind` is not called, and the schedule itself is evaluated: it should then return the value that it
    ends with. A stream, which has no length, binds it to its first 50 batches
    (`learning.minibatch.online_step`).

    Examples
    --------
    A ridge that falls in proportion to the iterations that are left:

    >>> class Linear:
    ...     def __call__(self, iteration):
    ...         return 0.0
    ...     def bind(self, max_iter):
    ...         return [0.2 * (1 - t / max_iter) for t in range(max_iter)] + [0.0]
    >>> from manifold_dl import SimCO
    >>> rule = SimCO(mu=Linear())
    >>> rule.mu_at(0), rule.begin(max_iter=4).mu_at(0)
    (0.0, 0.2)
    """

    def __call__(self, iteration: int) -> float: ...


class FullRidgeSchedule(RidgeSchedule, Protocol):
    """A schedule of the ridge with the method that it may have. It is optional."""

    def bind(self, max_iter: int) -> Any:
        """The schedule for a loop of some length: a number, a sequence, or a function of the iteration.

        By default the schedule itself.

        Parameters
        ----------
        max_iter : int
            The number of iterations.

        Returns
        -------
        float, sequence of float or RidgeSchedule
        """


@dataclass(frozen=True)
class TwoStep:
    """The paper's two-step procedure: a ridge for the first part of the outer iterations, then none.

    Parameters
    ----------
    ridge : float
        μ of the first part.
    fraction : float
        The first part's fraction of the iterations, between 0 and 1; rounded down to whole iterations.
    max_iter : int, optional
        The length of the loop. None, the default, leaves it to the loop; where there is none, μ is 0.

    Notes
    -----
    ``python benchmarks/peers.py --task recovery`` measures what learning with it, the default, finds.

    Examples
    --------
    >>> TwoStep()(0)
    0.0
    >>> bound = TwoStep().bind(5)
    >>> [bound(t) for t in range(6)]
    [0.2, 0.2, 0.2, 0.0, 0.0, 0.0]
    """

    ridge: float = 0.2
    fraction: float = 0.6
    max_iter: int | None = None

    def __post_init__(self) -> None:
        as_ridge(self.ridge)
        if not 0 <= self.fraction <= 1:
            raise ValueError(f"fraction={self.fraction}: a fraction of the iterations lies between 0 and 1.")

    def __call__(self, iteration: int) -> float:
        return float(self.ridge) if iteration < self._iterations_with_ridge() else 0.0

    def bind(self, max_iter: int) -> "TwoStep":
        """The schedule for a loop of `max_iter` iterations; itself, if it has been given a length."""
        return self if self.max_iter is not None else replace(self, max_iter=max_iter)

    def _iterations_with_ridge(self) -> int:
        # 0.6 · 5 must not become 2 by a rounding error of the product.
        return 0 if self.max_iter is None else int(self.fraction * self.max_iter * (1 + 1e-12))


@dataclass(frozen=True)
class Sawtooth:
    """From `start` down to `end` by a constant factor, again and again, and zero in the end.

    In each tooth wrong atoms move far, while those that are right come back to where they were. It counts
    iterations from the first one, however many there will be: choose `until` below the `max_iter` of the
    loop.

    Parameters
    ----------
    start, end : float
        The first and the last value of a tooth.
    period : int
        Outer iterations of a tooth.
    until : int
        From this iteration on the value is zero.

    Examples
    --------
    >>> mu = Sawtooth(start=0.4, end=0.1, period=3, until=5)
    >>> [round(mu(t), 2) for t in range(7)]
    [0.4, 0.2, 0.1, 0.4, 0.2, 0.0, 0.0]
    """

    start: float
    end: float
    period: int
    until: int

    def __post_init__(self) -> None:
        if not 0 < self.end <= self.start < float("inf"):
            raise ValueError(f"start={self.start}, end={self.end}: a tooth falls from start to end, above 0.")
        require_count("period", self.period, "a tooth has at least two iterations", minimum=2)

    def __call__(self, iteration: int) -> float:
        if iteration >= self.until:
            return 0.0
        return self.start * (self.end / self.start) ** (iteration % self.period / (self.period - 1))


Ridge = float | Sequence[float] | Callable[[int], float]


def check_ridge(mu: Ridge) -> None:
    """Refuse what is neither a ridge nor a sequence of them; a function is judged by what it returns."""
    if isinstance(mu, type):
        raise TypeError(f"mu={mu!r}: pass an object, such as TwoStep(), not its class.")
    if callable(mu):
        return
    values = _as_sequence(mu)
    if not values:
        raise ValueError("mu is an empty sequence: name at least one ridge.")
    for value in values:
        as_ridge(value)


def ridge_at(mu: Ridge, iteration: int | None) -> float:
    """μ of one iteration; None, outside of a loop, is the first. The last entry of a sequence holds on."""
    iteration = iteration or 0
    if not callable(mu):
        values = _as_sequence(mu)
        return float(values[min(iteration, len(values) - 1)])
    with naming(mu, "schedule of mu"):
        value = mu(iteration)
    try:
        return as_ridge(value)
    except (TypeError, ValueError) as error:
        fault = f"returned {value!r}, and the ridge is one finite number of at least 0"
        raise ComponentError(mu, "schedule of mu", fault) from error


def bound(mu: Ridge, max_iter: int | None) -> Ridge:
    """The schedule bound to a loop of `max_iter` iterations, where it can be bound and there is a loop."""
    if max_iter is None or not hasattr(mu, "bind"):
        return mu
    with naming(mu, "schedule of mu"):
        values = mu.bind(max_iter)
    values = values.tolist() if isinstance(values, np.ndarray) else values
    try:
        check_ridge(values)
    except (TypeError, ValueError) as error:
        fault = (
            f"returned {values!r} from its method bind, where a ridge, a sequence of them or a function of "
            f"the iteration is expected ({str(error).rstrip('.')})"
        )
        raise ComponentError(mu, "schedule of mu", fault) from error
    return values


def _as_sequence(mu: Any) -> Sequence[float]:
    return mu if isinstance(mu, Sequence) and not isinstance(mu, str) else (mu,)
