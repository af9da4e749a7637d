"""What a line searcher is, and what it uses of a cost beyond calling it and of its restriction to a geodesic.

Any line searcher and any cost of a Pymanopt problem will do: all members but the first are optional. The cost
of a dictionary problem has all of them (`problem/dictionary_problem.py`), with which a probe takes a fraction
of an evaluation. The functions below are the one place where the members are looked up and where their
defaults stand.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np


class FullLineSearcher(Protocol):
    """A line searcher with all members that an update rule uses. Those other than `search` are optional.

    Attributes
    ----------
    keeps_step : bool
        Whether its memory is valid for the next problem, too. Then `SimCO` uses one searcher for all
        sets of atoms and all outer iterations. False by default: every problem begins with a new copy, as
        Pymanopt's searchers need, which predict a step from the costs of the last problem.
    memory : dict of str to float or None
        What the next search reads of the earlier ones. Checkpoints store it, if `keeps_step` is true. Empty
        by default.
    """

    keeps_step: bool

    @property
    def memory(self) -> dict[str, float | None]: ...

    def search(
        self, objective: Callable[[Any], float], manifold: Any, x: Any, d: Any, f0: float, df0: float
    ) -> tuple[float, Any]:
        """The length of a step from `x` along `d`, and the point where it ends.

        Parameters
        ----------
        objective : callable
            Point → cost; a `SearchedCost`, or any other.
        manifold : pymanopt.manifolds.manifold.Manifold
        x, d
            A point and a tangent vector there.
        f0, df0 : float
            The cost at `x` and its directional derivative along `d`.

        Returns
        -------
        step_size : float
        new_x
        """

    def restore(self, memory: dict[str, float | None]) -> None:
        """Continue as the searcher did whose `memory` this is; names of others may be among it.

        By default nothing is restored.

        Parameters
        ----------
        memory : dict
        """


def keeps_step(searcher: Any) -> bool:
    """Whether any line searcher, or None, declares that its memory is valid for the next problem."""
    return bool(getattr(searcher, "keeps_step", False))


def memory_of(searcher: Any) -> dict[str, float | None]:
    """What a line searcher keeps for the next problem; empty if it keeps nothing, or declares no memory."""
    memory = getattr(searcher, "memory", {}) if keeps_step(searcher) else {}
    return {name: None if value is None else float(value) for name, value in memory.items()}


def restore_memory(searcher: Any, memory: dict[str, float | None]) -> None:
    """Give a line searcher the memory of another one, if it can take it."""
    getattr(searcher, "restore", _restore_nothing)(memory)


def _restore_nothing(memory: dict[str, float | None]) -> None:
    """For searchers without `restore`."""


class Restriction(Protocol):
    """An objective restricted to a geodesic, φ(t) = f(exp(x, t d))."""

    def __call__(self, t: float) -> float:
        """φ(t)."""

    def derivative(self, t: float) -> float:
        """φ′(t); optional. Without it a search estimates slopes from values."""

    def commit(self, t: float, point: Any) -> None:
        """The search has ended at `point`, the one at t; optional. What is known of it may be kept."""


class SearchedCost(Protocol):
    """A cost with all members that a line searcher may use. Those other than ``__call__`` are optional.

    Attributes
    ----------
    scale : float
        Against which values and gradients are large or small. By default |f| at the start of the search.
    """

    scale: float

    def __call__(self, point: Any, /) -> float:
        """The cost of a point."""

    def restrict(self, point: Any, direction: Any) -> Restriction | None:
        """φ along the geodesic that leaves `point` in `direction`; None where there is none.

        By default φ(t) is the cost at the point of the curve.

        Parameters
        ----------
        point : array
            A point of the manifold.
        direction : array
            A tangent vector there.

        Returns
        -------
        Restriction or None
        """

    def gradient_norms(self, point: Any) -> np.ndarray:
        """The length of the Riemannian gradient, atom by atom: a search ends where all are negligible.

        By default the slope φ′(0) decides.

        Parameters
        ----------
        point : array

        Returns
        -------
        array
        """


class CostMembers(NamedTuple):
    """The optional members of a `SearchedCost`; None for those that it does not have."""

    restrict: Callable[[Any, Any], Restriction | None] | None
    scale: float | None
    gradient_norms: Callable[[Any], np.ndarray] | None


def members_of_cost(cost: Any) -> CostMembers:
    """The optional members of any cost.

    Parameters
    ----------
    cost : callable
        Point → cost.

    Returns
    -------
    CostMembers

    Examples
    --------
    >>> members_of_cost(lambda x: x @ x)
    CostMembers(restrict=None, scale=None, gradient_norms=None)
    """
    return CostMembers(
        getattr(cost, "restrict", None), getattr(cost, "scale", None), getattr(cost, "gradient_norms", None)
    )


class RestrictionMembers(NamedTuple):
    """The optional members of a `Restriction`."""

    derivative: Callable[[float], float] | None
    commit: Callable[[float, Any], None]


def members_of_restriction(phi: Any) -> RestrictionMembers:
    """The optional members of any φ, or of None.

    Parameters
    ----------
    phi : Restriction or None

    Returns
    -------
    RestrictionMembers
        With a `commit` that does nothing, if there is none.
    """
    return RestrictionMembers(getattr(phi, "derivative", None), getattr(phi, "commit", _keep_nothing))


def _keep_nothing(t: float, point: Any) -> None:
    """For restrictions without `commit`."""
