"""The contract of a line searcher: a step that is never for the worse, on any manifold."""

import copy

import numpy as np
from pymanopt.manifolds import Euclidean, Sphere

from manifold_dl.diagnostics.report import Inspection, require_object


def check_line_searcher(searcher, rng=0):
    """Check that ``searcher.search(objective, manifold, x, d, f0, df0)`` can be trusted by an optimizer.

    On a sphere and in flat space, with directions short and long: it returns the length of the step and the
    point after it, the two agree, the point is no worse than x, and a descent direction is used. A zero
    direction, an ascent direction and a cost that is not a number leave x where it is, with a step of
    length 0. Optimizers copy a searcher for every run, so it must survive that.

    Parameters
    ----------
    searcher : Pymanopt line searcher
    rng : Generator or seed

    Returns
    -------
    Report

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

    def cost(y):
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


def _check_descent(inspection, searcher, manifold, cost, x, d, slope):
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
    # The same point by exp or by retraction, to the third order of a step; half the digits for exp itself.
    near = min(np.linalg.norm(move(x, t * d) - y) for move in (manifold.exp, manifold.retraction))
    fault = f"says that the step has length {step:.6g}, which does not lead to the point it returns"
    inspection.require(near <= 1e-6, "step size and point agree", fault)


def _check_refusals(inspection, searcher, manifold, cost, x, gradient):
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
