"""Validation of what an optimizer returns. `running.py` calls `returned_point`."""

from typing import Any

import numpy as np

from manifold_dl.components.errors import ComponentError


def returned_point(optimizer: Any, result: Any, problem: Any, start: np.ndarray) -> np.ndarray:
    """Return the point that an optimizer ended at, in the dtype of its start.

    It may contain NaN, as that of Pymanopt's own optimizers may where a cost overflows: the update rule
    refuses such a point and leaves the atoms unchanged.

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

    Returns
    -------
    ndarray
        A point of the manifold, or an array that is not finite.

    Raises
    ------
    ComponentError
        If there is no point, or not one of the problem's manifold.
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
    feasible = getattr(problem, "feasible", None)
    if feasible is None or not np.isfinite(point).all():
        return point
    settled = feasible.settled(point)
    if settled is None:
        raise ComponentError(
            optimizer,
            "optimizer",
            f"returned a point that is not on {problem.manifold}, its norms being "
            f"{_range(np.linalg.norm(point, axis=0))}; it has to move by the manifold's retraction or exp",
        )
    return settled


def described(value: Any) -> str:
    """Describe a returned value in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return "None" if value is None else f"a {type(value).__name__}"


def _range(norms: np.ndarray) -> str:
    return f"{norms.min():.4g} to {norms.max():.4g}"
