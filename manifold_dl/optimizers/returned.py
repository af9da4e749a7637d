"""Validation of what an optimizer returns. `running.py` calls `returned_point`."""

from typing import Any

import numpy as np

from manifold_dl.components.errors import ComponentError
from manifold_dl.optimizers.faults import component_off_manifold, described
from manifold_dl.optimizers.protocol import members_of_problem


def returned_point(
    optimizer: Any, result: Any, problem: Any, start: np.ndarray, searcher: Any = None
) -> np.ndarray:
    """Return the point that an optimizer ended at, in the dtype of its start.

    It may contain NaN, as that of Pymanopt's own optimizers may where a cost overflows: the update rule
    warns of such a point, refuses it and leaves the atoms unchanged.

    Parameters
    ----------
    optimizer : object
        The optimizer, for the message.
    result : object
        What its method `run` returned.
    problem : pymanopt.Problem
        The problem it was run on.
    start : ndarray
        The initial point.
    searcher : object, optional
        The line searcher, if the optimizer has one.

    Returns
    -------
    ndarray
        A point of the manifold, or an array that is not finite.

    Raises
    ------
    ComponentError
        If there is no point, or not one of the problem's manifold. It names the user's manifold or line
        searcher if that was what left the manifold.
    """
    if not hasattr(result, "point"):
        raise ComponentError(
            optimizer,
            "optimizer",
            f"returned {described(result)} instead of an object with the attribute point, such as "
            "pymanopt.optimizers.optimizer.OptimizerResult",
        )
    point = np.asarray(result.point)
    if point.shape != start.shape or point.dtype.kind not in "fiu":
        raise ComponentError(
            optimizer,
            "optimizer",
            f"returned {described(result.point)} as its point, and a real array of shape {start.shape} is "
            "needed",
        )
    point = point.astype(start.dtype, copy=False)
    feasible = members_of_problem(problem).feasible
    if feasible is None or not np.isfinite(point).all():
        return point
    settled = feasible.settled(point)
    if settled is None:
        component, role, remedy = component_off_manifold(optimizer, searcher, problem, start)
        norms = _range(np.linalg.norm(point, axis=0))
        fault = f"led to a point that is not on {problem.manifold}, its norms being {norms}; {remedy}"
        raise ComponentError(component, role, fault)
    return settled


def _range(norms: np.ndarray) -> str:
    return f"{norms.min():.4g} to {norms.max():.4g}"
