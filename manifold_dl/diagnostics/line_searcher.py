"""The contract of a line searcher: a step that never raises the cost, on any manifold."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from pymanopt.manifolds import Euclidean, Sphere
from pymanopt.manifolds.manifold import Manifold

from manifold_dl.diagnostics.report import Inspection, Report, require_object


def check_line_searcher(searcher: Any, rng: np.random.Generator | int | None = 0) -> Report:
    """Check that ``searcher.search(objective, manifold, x, d, f0, df0)`` does what optimizers rely on.

    On a sphere and in flat space, with short and long directions: it returns the length of the step and the
    point after it, the two agree, the cost is not above that at x, and lower along a descent direction. For a
    zero direction, an ascent direction and a cost that is not a number it returns x and a step of length 0.
    Optimizers copy a searcher for every run, so it must be possible to copy it.

    Parameters
    ----------
    searcher : Pymanopt line searcher
        An object with the method ``search``.
    rng : Generator or seed
        For the random problems.

    Returns
    -------
    Report
        What holds.

    Raises
    ------
    CheckFailed
        An `AssertionError` that names the first fault found.

    Examples
    --------
    >>> from manifold_dl.line_search import GoldenSection
    >>> bool(check_line_searcher(GoldenSection()))
    True
    """
    require_object(searcher, "search", "GoldenSection()")
    inspection = Inspection(searcher)
    rng = np.random.default_rng(rng)
    A = rng.standard_normal((5, 5))
    A = A @ A.T
    x = rng.standard_normal(5)
    x /= np.linalg.norm(x)

    def cost(y: np.ndarray) -> float:
        return float(y @ A @ y)

    with inspection.calling():
        for manifold in (Sphere(5), Euclidean(5)):
            gradient = manifold.projection(x, 2 * A @ x)
            for length in (1e-3, 0.1, 10.0):
                d = -length * gradient
                slope = manifold.inner_product(x, gradient, d)
                _check_descent(inspection, searcher, manifold, cost, x, d, slope)
            _check_refusals(inspection, searcher, manifold, cost, x, gradient)
    return inspection.report()


def _check_descent(
    inspection: Inspection,
    searcher: Any,
    manifold: Manifold,
    cost: Callable[[np.ndarray], float],
    x: np.ndarray,
    d: np.ndarray,
    slope: float,
) -> None:
    before = x.copy(), d.copy()
    result = copy.deepcopy(searcher).search(cost, manifold, x, d, cost(x), slope)
    pair = isinstance(result, tuple) and len(result) == 2
    fault = f"returned {type(result).__name__}, where a pair (step size, new point) is expected"
    inspection.require(pair, "returns a step size and a point", fault)
    step, y = result
    in_order = np.ndim(step) == 0 and np.shape(y) == x.shape
    found = f"({type(step).__name__}, {type(y).__name__})"
    fault = (
        f"returned {found} of shapes {np.shape(step)} and {np.shape(y)}: the step size, one number, comes "
    )
    fault += f"first, and then the new point, of shape {x.shape}"
    inspection.require(in_order, "returns a step size and a point", fault)
    unchanged = np.array_equal(before[0], x) and np.array_equal(before[1], d)
    inspection.require(unchanged, "leaves its arguments alone", "changed the point or the direction")
    fault = f"went from {cost(x):.6g} up to {cost(y):.6g}"
    inspection.require(cost(y) <= cost(x), "is never for the worse", fault)
    inspection.require(
        cost(y) < cost(x), "uses a descent direction", "found nothing better along a descent direction"
    )
    t = step / np.linalg.norm(d)
    # The point by exp or by retraction, which agree to third order; half of the digits for exp itself.
    near = min(np.linalg.norm(move(x, t * d) - y) for move in (manifold.exp, manifold.retraction))
    fault = f"says that the step has length {step:.6g}, which does not lead to the point it returns"
    inspection.require(near <= 1e-6, "step size and point agree", fault)


def _check_refusals(
    inspection: Inspection,
    searcher: Any,
    manifold: Manifold,
    cost: Callable[[np.ndarray], float],
    x: np.ndarray,
    gradient: np.ndarray,
) -> None:
    slope = manifold.inner_product(x, gradient, gradient)
    nan = lambda y: float("nan")
    cases = {
        "a zero direction": (cost, 0 * gradient, 0.0),
        "an ascent direction": (cost, gradient, slope),
        "a cost that is not a number": (nan, -gradient, -slope),
    }
    for case, (function, d, df0) in cases.items():
        with np.errstate(all="ignore"):
            step, y = copy.deepcopy(searcher).search(function, manifold, x, d, cost(x), df0)
        stays = step == 0 and np.array_equal(y, x)
        inspection.require(stays, f"stays for {case}", f"moved by {step} for {case}")
