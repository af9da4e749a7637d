"""Checks of the gradient and the Hessian of any Pymanopt problem, by the Taylor remainders of its cost.

`check_gradient` and `check_hessian` choose a path on the manifold; `taylor.py` measures remainders along it.
Both test also that derivatives are tangent and the Hessian symmetric. `check_manifold` calls them.
"""

import math
from typing import Any, Protocol

import numpy as np
import pymanopt
from pymanopt.manifolds.manifold import Manifold

from manifold_dl.diagnostics.paths import path, random_direction, random_point, tangent_part
from manifold_dl.diagnostics.report import CheckFailed
from manifold_dl.diagnostics.taylor import TaylorReport, taylor_report
from manifold_dl.optimizers.protocol import members_of_problem


class PiecewiseSmooth(Protocol):
    """A problem that is smooth piece by piece, such as that of `lasso_problem`, and says where pieces end."""

    def piece(self, point: Any) -> object:
        """What differs between the points of two pieces, such as the signs of all codes."""


# A random direction may leave a piece before remainders exceed rounding: then another one is tried.
DIRECTIONS = 50


def check_gradient(
    problem: pymanopt.Problem,
    point: Any = None,
    direction: Any = None,
    rng: np.random.Generator | int | None = 0,
) -> TaylorReport:
    """Check the gradient of a Pymanopt problem against its cost.

    Parameters
    ----------
    problem : pymanopt.Problem
        On any manifold, with any backend.
    point : point of the manifold, optional
        Where to check; a random point by default.
    direction : tangent vector at `point`, optional
        Along which to check; random by default. Its length does not matter.
    rng : Generator or seed
        For the random point and direction.

    Returns
    -------
    TaylorReport
        With the measured slope, 2 or more, and a `plot`.

    Raises
    ------
    CheckFailed
        If the slope is lower, or the gradient not tangent. The exception has the report.

    Examples
    --------
    >>> import pymanopt
    >>> from manifold_dl.manifolds import Spheres
    >>> spheres, A = Spheres(3, 2), np.arange(6.0).reshape(3, 2)
    >>> cost = pymanopt.function.numpy(spheres)(lambda X: np.sum(A * X**2))
    >>> gradient = pymanopt.function.numpy(spheres)(lambda X: 2 * A * X)
    >>> check_gradient(pymanopt.Problem(spheres, cost, euclidean_gradient=gradient))
    The gradient is right: the first-order remainder falls with slope 2.00, and 2 was expected.
    >>> wrong = pymanopt.function.numpy(spheres)(lambda X: 2.01 * A * X)
    >>> check_gradient(pymanopt.Problem(spheres, cost, euclidean_gradient=wrong))
    Traceback (most recent call last):
    ...
    manifold_dl.diagnostics.report.CheckFailed: The gradient is wrong: the first-order remainder falls with
    slope 1.00, and 2 was expected.
    """
    point, direction = _start(problem.manifold, point, direction, np.random.default_rng(rng))
    gradient = problem.riemannian_gradient(point)
    _require_tangent(problem, point, gradient, "The Riemannian gradient")
    slope = problem.manifold.inner_product(point, gradient, direction)
    return _judged(_measure("gradient", problem, point, direction, [slope]))


def check_hessian(
    problem: pymanopt.Problem,
    point: Any = None,
    direction: Any = None,
    rng: np.random.Generator | int | None = 0,
) -> TaylorReport:
    """Check the Hessian of a Pymanopt problem against its cost and its gradient.

    The gradient is checked first, because the Hessian cannot be judged without it. Then the Hessian must be
    tangent, symmetric, ⟨Hess[u], v⟩ = ⟨u, Hess[v]⟩, and the second-order remainder must fall with slope 3.
    Where a manifold has no `exp`, the path is that of its retraction, and the slope is 3 only if the
    retraction is of second order, which `check_manifold` measures. A problem that is smooth only piece by
    piece (`PiecewiseSmooth`) is checked on the piece of the point; the report says where that ends.

    Parameters
    ----------
    problem : pymanopt.Problem
        On any manifold, with any backend, in double precision.
    point : point of the manifold, optional
        Where to check; a random point by default.
    direction : tangent vector at `point`, optional
        Along which to check; random by default. Its length does not matter.
    rng : Generator or seed
        For the random point and directions.

    Returns
    -------
    TaylorReport
        With the measured slope, 3 or more, and a `plot`.

    Raises
    ------
    CheckFailed
        If the slope is lower, or the Hessian not tangent or not symmetric. The exception has the report.
    ValueError
        If the problem is computed in single precision.

    Examples
    --------
    >>> import pymanopt
    >>> from manifold_dl.manifolds import Spheres
    >>> spheres, A = Spheres(3, 2), np.arange(6.0).reshape(3, 2)
    >>> cost = pymanopt.function.numpy(spheres)(lambda X: np.sum(A * X**3))
    >>> gradient = pymanopt.function.numpy(spheres)(lambda X: 3 * A * X**2)
    >>> hessian = pymanopt.function.numpy(spheres)(lambda X, E: 6 * A * X * E)
    >>> problem = pymanopt.Problem(spheres, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    >>> check_hessian(problem)
    The Hessian is right: the second-order remainder falls with slope 3.00, and 3 was expected.
    """
    manifold = problem.manifold
    rng = np.random.default_rng(rng)
    is_free = direction is None
    point, direction = _start(manifold, point, direction, rng)
    for _ in range(DIRECTIONS if is_free and members_of_problem(problem).piece is not None else 0):
        report = _second_order(problem, point, direction)
        if not math.isnan(report.slope):
            break
        direction = random_direction(manifold, point, rng)
    check_gradient(problem, point, direction)
    _require_double(problem, point, direction)
    product = problem.riemannian_hessian(point, direction)
    _require_tangent(problem, point, product, "The Riemannian Hessian product")
    _require_symmetric(problem, point, direction, product, random_direction(manifold, point, rng))
    return _judged(_second_order(problem, point, direction))


def _second_order(problem: pymanopt.Problem, point: Any, direction: Any) -> TaylorReport:
    inner = problem.manifold.inner_product
    slope = inner(point, problem.riemannian_gradient(point), direction)
    curvature = inner(point, problem.riemannian_hessian(point, direction), direction)
    return _measure("Hessian", problem, point, direction, [slope, curvature])


def _measure(
    subject: str,
    problem: pymanopt.Problem,
    point: Any,
    direction: Any,
    derivatives: list[float],
) -> TaylorReport:
    move = path(problem.manifold, point, direction)
    at = lambda t: move(t) if t else point
    size = np.abs(point).max() if isinstance(point, np.ndarray) else 1.0
    # The gradient is continuous where pieces meet: its remainder falls like t² across them, too.
    piece = members_of_problem(problem).piece if len(derivatives) > 1 else None
    return taylor_report(
        subject,
        lambda t: problem.cost(at(t)),
        derivatives,
        size=size,
        noise=_noise(problem, point),
        eps=_precision(point),
        piece=None if piece is None else lambda t: piece(at(t)),
    )


def _judged(report: TaylorReport) -> TaylorReport:
    if not report:
        raise CheckFailed(report.verdict, report)
    return report


def _start(manifold: Manifold, point: Any, direction: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    if point is None:
        if direction is not None:
            raise ValueError("direction is tangent at a point: give the point as well.")
        point = random_point(manifold, rng)
    if direction is None:
        return point, random_direction(manifold, point, rng)
    length = manifold.norm(point, direction)
    if not (math.isfinite(length) and length > 0):
        raise ValueError(f"direction has length {length}: nothing changes along it.")
    return point, direction / length


def _require_double(problem: pymanopt.Problem, point: Any, direction: Any) -> None:
    value = float(problem.cost(point))
    change = float(problem.cost(path(problem.manifold, point, direction)(0.5))) - value
    noise = _noise(problem, point, along_manifold=True)  # across it, a gradient need not be right
    if _precision(point) > 1e-10 or noise > 1e-10 * (abs(value) + abs(change)):
        raise ValueError(
            "The problem is computed in single precision, where rounding hides a slope of 3; "
            "check the Hessian on the same data in double precision."
        )


def _precision(point: Any) -> float:
    is_float = isinstance(point, np.ndarray) and point.dtype.kind in "fc"
    return float(np.finfo(point.dtype if is_float else float).eps)


def _noise(problem: pymanopt.Problem, point: Any, along_manifold: bool = False) -> float:
    """Return the error of a cost that is computed in float32 at a point in float64, by its gradient.

    The error of a wrong gradient is included, but only that of a step of 1e-8: longer steps show it.
    """
    gradient = _euclidean_gradient(problem, point)
    if not isinstance(gradient, np.ndarray):
        return 0.0
    with np.errstate(all="ignore"):
        single = point.astype(np.complex64 if np.iscomplexobj(point) else np.float32)
        step = single.astype(point.dtype) - point
        if along_manifold and np.array_equal(problem.manifold.embedding(point, step), step):
            step = problem.manifold.projection(point, step)
        expected = float(np.real(np.vdot(gradient, step)))
        noise = abs(float(problem.cost(point + step)) - float(problem.cost(point)) - expected)
    return noise if math.isfinite(noise) else 0.0


def _euclidean_gradient(problem: pymanopt.Problem, point: Any) -> Any:
    try:
        return problem.euclidean_gradient(point)
    except Exception:  # a problem may have a Riemannian gradient only; Pymanopt then raises
        return None


def _require_tangent(problem: pymanopt.Problem, point: Any, vector: Any, name: str) -> None:
    if not isinstance(vector, np.ndarray):  # products and factored points have other kinds of vectors
        return
    manifold = problem.manifold
    off = float(np.linalg.norm(vector - tangent_part(manifold, point, vector)))
    # Near a minimum the tangent component is small, but its rounding error that of the Euclidean gradient.
    euclidean = _euclidean_gradient(problem, point)
    scale = float(np.linalg.norm(vector) + (0 if euclidean is None else np.linalg.norm(euclidean)))
    # Sums of a few thousand products, each rounded, keep at least half of the digits.
    if not off <= math.sqrt(_precision(point)) * scale:
        raise CheckFailed(f"{name} is not tangent: {off:.2g} of it points off the manifold.")


def _require_symmetric(problem: pymanopt.Problem, point: Any, u: Any, hessian_u: Any, v: Any) -> None:
    inner = problem.manifold.inner_product
    hessian_v = problem.riemannian_hessian(point, v)
    left, right = inner(point, hessian_u, v), inner(point, u, hessian_v)
    scale = max(problem.manifold.norm(point, hessian_u), problem.manifold.norm(point, hessian_v))
    if not abs(left - right) <= math.sqrt(_precision(point)) * scale:
        raise CheckFailed(
            f"The Hessian is not symmetric: ⟨Hess[u], v⟩ = {left:.6g}, ⟨u, Hess[v]⟩ = {right:.6g}."
        )
