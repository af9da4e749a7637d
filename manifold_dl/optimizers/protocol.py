"""What optimizers, `OptimizerRun` and the checks of a problem use of it beyond `pymanopt.Problem`.

A `DictionaryProblem` has all of these members, a plain Pymanopt problem has none. `members_of_problem` is the
one place where they are looked up.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from manifold_dl.manifolds.feasible import FeasibleSet


class OptimizedProblem(Protocol):
    """The members that a problem may have besides those of `pymanopt.Problem`; None stands for a missing one.

    Attributes
    ----------
    feasible : FeasibleSet or None
        The test for points of the manifold: with it the methods that an optimizer needs, and
        the point that it returns, are checked.
    counts : Counts or None
        What was evaluated. If Hessian products were, a fault is looked for there too.
    stationary_point : array or None
        A point where the gradient was zero: that is where a run ends at which Pymanopt divides by zero.
    objective : Objective or None
        f_I, for optimizers that use a closed form of its minimum.
    piece : callable or None
        Point → the smooth piece of the cost on which it lies, where second derivatives jump between pieces.
    weights : array or None
        Those of the signals or of their entries, if they have any.
    """

    feasible: FeasibleSet | None
    counts: Any
    stationary_point: np.ndarray | None
    objective: Any
    piece: Callable[[Any], Any] | None
    weights: Any


class ProblemMembers(NamedTuple):
    """The members of `OptimizedProblem` of one problem."""

    feasible: FeasibleSet | None
    counts: Any
    stationary_point: np.ndarray | None
    objective: Any
    piece: Callable[[Any], Any] | None
    weights: Any


def members_of_problem(problem: Any) -> ProblemMembers:
    """The members of `OptimizedProblem` that any problem has now.

    Parameters
    ----------
    problem : pymanopt.Problem

    Returns
    -------
    ProblemMembers
        None for those that it does not have.
    """
    return ProblemMembers(*(getattr(problem, name, None) for name in ProblemMembers._fields))
