"""Why an optimizer fails, does not move or leaves the manifold: a check of the user's components.

A manifold or a line searcher that returns NaN raises nothing: optimizers reject costs that are not finite, so
that the atoms do not move. `running.py` calls `require_sound_components` if a run ended at its start, or at a
point that is not finite; `returned.py` calls `component_off_manifold`. Components of Pymanopt and of this
package are not checked.
"""

from copy import deepcopy
from typing import Any

import numpy as np
from pymanopt.manifolds.manifold import RetrAsExpMixin

from manifold_dl.components.errors import ComponentError, is_users, naming
from manifold_dl.optimizers.protocol import members_of_problem

# Short against the curvature of any manifold of unit atoms, and far above rounding.
_STEP = 1e-3


def require_sound_components(problem: Any, searcher: Any, start: np.ndarray) -> None:
    """Raise a `ComponentError` if the user's manifold or line searcher cannot move from `start`.

    A start with zero gradient is no fault.

    Parameters
    ----------
    problem : pymanopt.Problem
    searcher : object or None
        The line searcher, if the optimizer has one.
    start : ndarray
        The point where the optimizer started.
    """
    manifold = problem.manifold
    with naming(manifold, "manifold"):
        gradient = np.asarray(problem.riemannian_gradient(start))
        length = float(manifold.norm(start, gradient))
    if is_users(manifold):
        _require_moves(manifold, start, gradient, length)
        counts = members_of_problem(problem).counts
        if counts is not None and counts.hessian > 0:
            _require_hessian(problem, start, gradient)
    if searcher is not None and is_users(searcher) and 0 < length < np.inf:
        _require_search(searcher, problem, start, gradient, length)


def component_off_manifold(
    optimizer: Any, searcher: Any, problem: Any, start: np.ndarray
) -> tuple[Any, str, str]:
    """Find the component by which an optimizer left the manifold.

    The user's manifold and line searcher are tried from the start. If neither leaves the manifold there, the
    first of the user's components is returned.

    Parameters
    ----------
    optimizer, searcher : object
        The optimizer, and its line searcher or None.
    problem : pymanopt.Problem
        With the attribute `feasible`, a `FeasibleSet`.
    start : ndarray
        The point where the optimizer started.

    Returns
    -------
    component, role, remedy
        The component, its role, and what it should do instead.
    """
    move = "it has to move by the manifold's retraction or exp"
    candidates = {
        "optimizer": (optimizer, "optimizer", move),
        "line searcher": (searcher, "line searcher", move),
        "manifold": (problem.manifold, "manifold", "see its methods retraction and exp"),
    }
    users = [role for role, (one, *_) in candidates.items() if one is not None and is_users(one)]
    gradient = np.asarray(problem.riemannian_gradient(start))
    length = float(problem.manifold.norm(start, gradient))
    if 0 < length < np.inf:
        if "manifold" in users and _moves_off(problem, start, gradient * (-_STEP / length)):
            return candidates["manifold"]
        if "line searcher" in users:
            _, point = _search_from(searcher, problem, start, gradient, length)
            if not problem.feasible.contains(np.asarray(point, start.dtype)):
                return candidates["line searcher"]
    return candidates[users[0] if users else "optimizer"]


def _moves_off(problem: Any, start: np.ndarray, step: np.ndarray) -> bool:
    """Whether a short step by one of the manifold's own methods leads off it."""
    for name in ("retraction", "exp"):
        if name == "exp" and isinstance(problem.manifold, RetrAsExpMixin):
            continue  # it is the retraction, with a warning
        try:
            point = getattr(problem.manifold, name)(start, step)
        except NotImplementedError:  # a method that this manifold does not have
            continue
        if not problem.feasible.contains(np.asarray(point, start.dtype)):
            return True
    return False


def _require_moves(manifold: Any, start: np.ndarray, gradient: np.ndarray, length: float) -> None:
    if not (np.isfinite(length) and np.isfinite(gradient).all()):
        fault = "has no finite Riemannian gradient where that of the objective is finite"
        raise ComponentError(manifold, "manifold", f"{fault}: see its projection, inner_product and norm")
    if length == 0:
        return
    step = gradient * (-_STEP / length)
    calls: dict[str, tuple[np.ndarray, ...]] = {
        "retraction": (start, step),
        "exp": (start, step),
        "projection": (start, step),
        "transport": (start, start, step),
    }
    if isinstance(manifold, RetrAsExpMixin):
        del calls["exp"]  # it is the retraction, with a warning
    for name, arguments in calls.items():
        with naming(manifold, "manifold"):
            try:
                array = np.asarray(getattr(manifold, name)(*arguments))
            except NotImplementedError:  # a method that this manifold does not have
                continue
        if not np.isfinite(array).all():
            fault = f"returned NaN or infinity from its method {name} for a step of length {_STEP}"
            raise ComponentError(manifold, "manifold", fault)
        if name in ("retraction", "exp") and array.shape != start.shape:
            fault = f"returned shape {array.shape} from its method {name}, where points have {start.shape}"
            raise ComponentError(manifold, "manifold", fault)


def _require_hessian(problem: Any, start: np.ndarray, gradient: np.ndarray) -> None:
    with naming(problem.manifold, "manifold"):
        product = problem.riemannian_hessian(start, gradient)
    if not np.isfinite(product).all():
        fault = "has no finite Riemannian Hessian where that of the objective is finite"
        raise ComponentError(problem.manifold, "manifold", f"{fault}: see euclidean_to_riemannian_hessian")


def _require_search(
    searcher: Any, problem: Any, start: np.ndarray, gradient: np.ndarray, length: float
) -> None:
    step, point = _search_from(searcher, problem, start, gradient, length)
    if not np.isscalar(step) or not np.isfinite(step):
        found = str(step) if np.isscalar(step) else described(step)
        fault = f"returned {found} as the length of its step, where a pair (step size, new point) is expected"
        raise ComponentError(searcher, "line searcher", fault)
    point = np.asarray(point)
    if point.shape != start.shape or not np.isfinite(point).all():
        fault = f"returned a point of shape {point.shape}" if point.shape != start.shape else "returned NaN"
        raise ComponentError(searcher, "line searcher", f"{fault}, where a point of the manifold is expected")


def _search_from(
    searcher: Any, problem: Any, start: np.ndarray, gradient: np.ndarray, length: float
) -> tuple[Any, Any]:
    """The pair that the user's line searcher returns for steepest descent from the start."""
    with naming(searcher, "line searcher"):
        answer = deepcopy(searcher).search(
            problem.cost, problem.manifold, start, -gradient, problem.cost(start), -(length**2)
        )
    if not (isinstance(answer, tuple | list) and len(answer) == 2):
        fault = f"returned {described(answer)}, where a pair (step size, new point) is expected"
        raise ComponentError(searcher, "line searcher", fault)
    return answer[0], answer[1]


def described(value: Any) -> str:
    """Describe a returned value in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return "None" if value is None else f"a {type(value).__name__}"
