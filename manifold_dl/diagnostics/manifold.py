"""The axioms of a Riemannian manifold, measured at random points and directions of any Pymanopt manifold.

Pymanopt has no test for "is this a point?", so a point that a map returns is recognised by the projection
there: where the point is off the manifold, projecting twice is not the same as projecting once.
"""

from typing import Any

import numpy as np
import pymanopt
from pymanopt.manifolds.manifold import Manifold

from manifold_dl.diagnostics.report import CheckFailed, Inspection, Report
from manifold_dl.diagnostics.scene import ROUNDING, Scene, slope_of
from manifold_dl.diagnostics.taylor import check_gradient, check_hessian, is_right
from manifold_dl.diagnostics.travel import random_point

# An arccos keeps half of the digits only, and fewer for the shortest column of a step of 1e-4.
_HALF_THE_DIGITS = 1e-5


def check_manifold(manifold: Any, rng: Any = 0, retraction_order: int | None = None) -> Report:
    """Check the axioms that optimizers rely on.

    - The projection is linear, changes nothing when repeated, and has rank `manifold.dim`.
    - The inner product is symmetric and positive, and `norm` is its root.
    - `exp` and `retraction` stay on the manifold, begin at the point, and leave it in the direction given;
      `exp` goes as far as the tangent vector is long; the retraction follows it to second order, or the
      report has a remark.
    - `log` undoes `exp`; `dist` is symmetric, and zero from a point to itself; `transport` leads to tangent
      vectors.
    - On submanifolds with the metric of the space around them: the projection is orthogonal, geodesics do not
      accelerate along the manifold, and Riemannian gradients and Hessians of a cubic function are right.

    Maps that the manifold does not have are skipped, and the report lists them.

    Parameters
    ----------
    manifold : pymanopt.manifolds.manifold.Manifold
        An instance, whose points are arrays, with a dimension of at least 1.
    rng : Generator or seed
    retraction_order : 1 or 2, optional
        What the retraction claims, if it does. Order 2 agrees with geodesics to t³, so that the Riemannian
        Hessian is the second derivative along the retraction, at every point. With 2, a retraction of first
        order is a fault; by default it is remarked upon, because optimizers work with it.

    Returns
    -------
    Report

    Examples
    --------
    >>> from manifold_dl.manifolds import Spheres
    >>> bool(check_manifold(Spheres(5, 3)))
    True
    >>> from pymanopt.manifolds import Stiefel
    >>> check_manifold(Stiefel(5, 3)).remarks[0].partition(":")[0]
    'the retraction is of first order'
    """
    if isinstance(manifold, type):
        raise TypeError(f"{manifold.__name__} is a class; pass a manifold, {manifold.__name__}(m, k).")
    if not isinstance(manifold, Manifold):
        raise TypeError(f"{manifold!r}: a subclass of pymanopt.manifolds.manifold.Manifold is needed.")
    if retraction_order not in (None, 1, 2):
        raise ValueError(f"retraction_order={retraction_order!r}: a retraction is of order 1 or 2.")
    inspection = Inspection(manifold)
    with inspection.calling():
        scene = Scene(manifold, np.random.default_rng(rng))
    if not isinstance(scene.x, np.ndarray):
        raise TypeError(
            f"{inspection.subject} has points of type {type(scene.x).__name__}; "
            "the axioms are measured on arrays."
        )
    with inspection.calling():
        _check_projection(inspection, scene)
        _check_metric(inspection, scene)
        _check_moves(inspection, scene)
        order = _check_retraction_order(inspection, scene, retraction_order)
        _check_way_back(inspection, scene)
        _check_transport(inspection, scene)
        _check_derivatives(inspection, scene, order)
    return inspection.report()


def _check_projection(inspection, scene):
    V, W = scene.ambient(), scene.ambient()
    P = scene.project
    fault = "has a projection that is not idempotent: projecting twice is not projecting once"
    inspection.require(scene.is_tangent(P(V)), "the projection is idempotent", fault)
    linear = np.allclose(P(2 * V - 3 * W), 2 * P(V) - 3 * P(W), atol=ROUNDING)
    inspection.require(linear, "the projection is linear", "has a projection that is not linear")
    fault = "draws random tangent vectors that are not tangent: the projection changes them"
    inspection.require(scene.is_tangent(scene.u), "random tangent vectors are tangent", fault)
    zero = scene.manifold.zero_vector(scene.x)
    is_zero = np.shape(zero) == scene.x.shape and not np.any(zero)
    inspection.require(is_zero, "the zero vector is zero", "has a zero_vector that is not zero")
    if scene.is_submanifold:
        normal = V - P(V)
        orthogonal = abs(np.real(np.vdot(normal, scene.u))) <= ROUNDING * np.linalg.norm(V)
        fault = "has a projection that is not orthogonal: what it removes is not orthogonal to tangents"
        inspection.require(orthogonal, "the projection is orthogonal", fault)
    _check_dimension(inspection, scene)


def _check_dimension(inspection, scene):
    if scene.x.size > 400 or np.iscomplexobj(scene.x):  # the rank of a larger matrix would take its time
        inspection.skip("the tangent space has dimension dim (points too large, or complex)")
        return
    basis = np.eye(scene.x.size).reshape(-1, *scene.x.shape)
    rank = int(np.linalg.matrix_rank(np.array([scene.project(e).ravel() for e in basis])))
    fault = f"has tangent spaces of dimension {rank}, but says dim = {scene.manifold.dim}"
    inspection.require(rank == scene.manifold.dim, "the tangent space has dimension dim", fault)


def _check_metric(inspection, scene):
    x, u, v = scene.x, scene.u, scene.v
    inner, norm = scene.manifold.inner_product, scene.manifold.norm
    numbers = np.ndim(inner(x, u, v)) == 0 and np.ndim(norm(x, u)) == 0
    fault = "has an inner product or a norm that is an array, and not one number for the whole m×k matrix"
    inspection.require(numbers, "the inner product and the norm are numbers", fault)
    symmetric = np.isclose(inner(x, u, v), inner(x, v, u), atol=ROUNDING)
    inspection.require(
        symmetric, "the inner product is symmetric", "has an inner product that is not symmetric"
    )
    bilinear = np.isclose(inner(x, 2 * u - v, v), 2 * inner(x, u, v) - inner(x, v, v), atol=ROUNDING)
    inspection.require(bilinear, "the inner product is linear", "has an inner product that is not linear")
    w = 2 * u - 3 * v
    square = inner(x, w, w)
    fault = f"has an inner product that is not positive: ⟨w, w⟩ = {square:.4g} for a tangent vector w ≠ 0"
    inspection.require(square > 0, "the inner product is positive", fault)
    fault = "has a norm that is not the root of its inner product"
    inspection.require(np.isclose(norm(x, w) ** 2, square), "the norm is the root of ⟨v, v⟩", fault)


def _check_moves(inspection, scene):
    x, v = scene.x, scene.v
    for name in ("exp", "retraction"):
        if name == "exp" and not scene.has_exp:
            inspection.skip("exp")
            continue
        move = getattr(scene.manifold, name)
        given = x.copy(), 0.5 * v
        move(*given)
        unchanged = np.array_equal(given[0], x) and np.array_equal(given[1], 0.5 * v)
        fault = f"has {_an(name)} that changes the point or the vector it is given"
        inspection.require(unchanged, "moves leave their arguments alone", fault)
        inspection.require(
            np.allclose(move(x, 0 * v), x, atol=ROUNDING),
            f"{name} begins at the point",
            f"has {_an(name)} that does not begin at the point: {name}(x, 0) is not x",
        )
        inspection.require(
            scene.is_point(move(x, 0.5 * v)),
            f"{name} stays on the manifold",
            f"has {_an(name)} that leaves the manifold",
        )
        velocity = scene.velocity(v)
        slope = slope_of(lambda t, move=move, velocity=velocity: move(x, t * v) - x - t * velocity)
        inspection.require(
            is_right(slope, 2),
            f"{name} leaves in the direction given",
            f"has {_an(name)} that does not leave in the direction given: R(x, tv) − x − tv falls with slope "
            f"{slope:.2f}, where 2 is the least",
        )
    if scene.has_exp and scene.is_submanifold:
        slope = slope_of(lambda t: scene.project(scene.manifold.exp(x, t * v) - x - t * v))
        fault = (
            f"has an exp that is no geodesic: it accelerates along the manifold (slope {slope:.2f}, not 3)"
        )
        inspection.require(is_right(slope, 3), "exp does not accelerate", fault)


def _check_retraction_order(inspection, scene, claimed):
    """The order of the retraction, as far as it can be measured."""
    fact = "the retraction is of order 2"
    if claimed == 1:
        inspection.skip(f"{fact} (not claimed)")
        return 1
    x, v, manifold = scene.x, scene.v, scene.manifold
    # The tangent part decides: on a submanifold it fixes the rest, and on a quotient the rest only changes
    # the representative. Geodesics of a submanifold do not accelerate: a straight line can stand for them.
    if scene.has_exp:
        part = scene.project if scene.speaks_ambient else lambda difference: difference
        slope = slope_of(lambda t: part(manifold.retraction(x, t * v) - manifold.exp(x, t * v)))
    elif scene.is_submanifold:
        slope = slope_of(lambda t: scene.project(manifold.retraction(x, t * v) - x - t * v))
    else:
        inspection.skip(f"{fact} (there is no exp to compare it with)")
        return claimed or 1
    if not is_right(slope, 3) and claimed is None:
        inspection.remark(
            f"the retraction is of first order: it leaves the geodesic with slope {slope:.2f}, where 3 would "
            "be second order. Optimizers converge with it; only at critical points is the Hessian the second "
            "derivative along it"
        )
        return 1
    fault = (
        f"has a retraction that is only of first order: it parts from the geodesic with slope {slope:.2f}, "
        "where 3 is the least; a better retraction, or retraction_order=1, would be right"
    )
    inspection.require(is_right(slope, 3), fact, fault)
    return 2


def _check_way_back(inspection, scene):
    x, y, manifold = scene.x, scene.y, scene.manifold
    v = 1e-4 * scene.v  # within the reach of log, unless a manifold is curved or folded very sharply
    end = manifold.exp(x, v) if scene.has_exp else None
    if end is None or not _exists(manifold.log, x, end):
        inspection.skip("log undoes exp")
    else:
        w = manifold.log(x, end)
        fault = "has a log that is not tangent"
        inspection.require(scene.is_tangent(w), "log is tangent", fault)
        close = manifold.norm(x, w - v) <= _HALF_THE_DIGITS * manifold.norm(x, v)
        inspection.require(close, "log undoes exp", "has a log that does not undo exp")
    if not _exists(manifold.dist, x, y):
        inspection.skip("dist")
        return
    there, back, none = manifold.dist(x, y), manifold.dist(y, x), manifold.dist(x, x)
    symmetric = np.isclose(there, back) and there >= 0
    fault = f"has a dist that is not symmetric: {there:.6g} there and {back:.6g} back"
    inspection.require(symmetric, "dist is symmetric", fault)
    fault = f"has a dist of {none:.2g} from a point to itself"
    inspection.require(abs(none) <= _HALF_THE_DIGITS, "dist is zero from a point to itself", fault)
    _remark_on_equal_points(inspection, scene)
    if end is not None:
        length, dist = manifold.norm(x, v), manifold.dist(x, end)
        fault = f"has an exp that goes {dist:.6g} far for a tangent vector of length {length:.6g}"
        inspection.require(
            abs(dist - length) <= _HALF_THE_DIGITS * length, "exp goes as far as v is long", fault
        )


def _remark_on_equal_points(inspection, scene):
    """An arccos of a number just above one is not a number, at some points and not at others."""
    for _ in range(20):
        x = random_point(scene.manifold, scene.rng)
        with np.errstate(all="ignore"):
            for name in ("log", "dist"):
                method = getattr(scene.manifold, name)
                if _exists(method, x, x) and not np.isfinite(method(x, x)).all():
                    inspection.remark(f"{name} from a point to itself is not a number at some points")


def _check_transport(inspection, scene):
    x, y, v, manifold = scene.x, scene.y, scene.v, scene.manifold
    if not _exists(manifold.transport, x, y, v):
        inspection.skip("transport")
        return
    fault = "has a transport whose result is not tangent at the new point"
    inspection.require(scene.is_tangent(manifold.transport(x, y, v), y), "transport is tangent", fault)
    stays = np.allclose(manifold.transport(x, x, v), v, atol=ROUNDING)
    fault = "has a transport from a point to itself that changes the vector"
    inspection.require(stays, "transport from a point to itself does nothing", fault)


def _check_derivatives(inspection, scene, retraction_order):
    """A cubic in the entries, on the space around a submanifold: neither convex nor symmetric."""
    fact = "Riemannian gradients and Hessians are right"
    if not scene.is_submanifold or np.iscomplexobj(scene.x):
        inspection.skip(f"{fact} (not a real submanifold with the metric around it)")
        return
    manifold, A, B = scene.manifold, scene.ambient(), scene.ambient()
    function = pymanopt.function.numpy(manifold)
    problem = pymanopt.Problem(
        manifold,
        function(lambda X: np.vdot(A, X) + np.vdot(B, X**3)),
        euclidean_gradient=function(lambda X: A + 3 * B * X**2),
        euclidean_hessian=function(lambda X, E: 6 * B * X * E),
    )
    try:
        check_gradient(problem, scene.x, scene.v)
        inspection.require(True, "Riemannian gradients are right", "")
        if scene.has_exp or retraction_order == 2:
            check_hessian(problem, scene.x, scene.v)
            inspection.require(True, "Riemannian Hessians are right", "")
        else:
            inspection.skip(
                "Riemannian Hessians are right (there is no path of second order to measure them along)"
            )
    except NotImplementedError:  # the manifold says that it does not convert derivatives
        inspection.skip(fact)
    except CheckFailed as error:
        fault = str(error).rstrip(".")
        fault = f"does not turn Euclidean derivatives into Riemannian ones: {fault[0].lower()}{fault[1:]}"
        inspection.require(False, fact, fault)


def _exists(method, *arguments):
    try:
        method(*arguments)
    except NotImplementedError:  # how a Pymanopt manifold says that it lacks a map
        return False
    return True


def _an(name):
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"
