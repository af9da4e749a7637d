"""Axioms of the maps between points: exp, retraction, log, dist and pair_mean.

The second part of `check_manifold`. Maps that a manifold does not have are skipped.
"""

from collections.abc import Callable

import numpy as np

from manifold_dl.diagnostics.manifold_sample import N_STEPS, ROUNDING, ManifoldSample, agree, slope_of
from manifold_dl.diagnostics.paths import has_map, random_point
from manifold_dl.diagnostics.report import Inspection
from manifold_dl.diagnostics.taylor import is_right

# The distance from a point to itself, by an arccos, which keeps half of the digits.
_EQUAL = 1e-5


def check_moves(inspection: Inspection, sample: ManifoldSample) -> None:
    """Check that exp and retraction start at x in the direction given and stay on the manifold."""
    for name in ("exp", "retraction"):
        if name == "exp" and not sample.has_exp:
            inspection.skip("exp")
            continue
        _check_move(inspection, sample, name, getattr(sample.manifold, name))
    x, v = sample.x, sample.v
    if sample.has_exp and sample.is_submanifold:
        slope = slope_of(lambda t: sample.project(sample.manifold.exp(x, t * v) - x - t * v))
        fault = (
            f"has an exp that is no geodesic: it accelerates along the manifold (slope {slope:.2f}, not 3)"
        )
        inspection.require(is_right(slope, 3), "exp does not accelerate", fault)


def _check_move(inspection: Inspection, sample: ManifoldSample, name: str, move: Callable) -> None:
    x, v = sample.x, sample.v
    map_name = f"an {name}" if name == "exp" else f"a {name}"
    given = x.copy(), 0.5 * v
    move(*given)
    unchanged = np.array_equal(given[0], x) and np.array_equal(given[1], 0.5 * v)
    fault = f"has {map_name} that changes the point or the vector it is given"
    inspection.require(unchanged, "moves leave their arguments alone", fault)
    inspection.require(
        agree(move(x, sample.manifold.zero_vector(x)), x),
        f"{name} begins at the point",
        f"has {map_name} that does not begin at the point: {name}(x, 0) is not x",
    )
    fault = f"has {map_name} that leaves the manifold"
    inspection.require(sample.is_point(move(x, 0.5 * v)), f"{name} stays on the manifold", fault)
    fault = f"has {map_name} that leaves the manifold after {N_STEPS} steps: rounding errors accumulate"
    far = sample.after_many_steps(move)
    inspection.require(sample.is_point(far), f"{name} stays on the manifold for many steps", fault)
    velocity = sample.velocity(v)
    slope = slope_of(lambda t: move(x, t * v) - x - t * velocity)
    inspection.require(
        is_right(slope, 2),
        f"{name} leaves in the direction given",
        f"has {map_name} that does not leave in the direction given: R(x, tv) − x − tv falls with slope "
        f"{slope:.2f}, where 2 is the least",
    )


def check_retraction_order(inspection: Inspection, sample: ManifoldSample, claimed: int | None) -> int:
    """Return the order of the retraction, as far as it can be measured; 2 is a fault if not reached."""
    fact = "the retraction is of order 2"
    if claimed == 1:
        inspection.skip(f"{fact} (not claimed)")
        return 1
    x, v, manifold = sample.x, sample.v, sample.manifold
    # The tangent component decides: on a submanifold it determines the rest, and on a quotient the rest only
    # changes the representative. Geodesics of a submanifold have no tangential acceleration, so that a
    # straight line can replace them.
    if sample.has_exp:
        part = sample.project if sample.has_ambient_tangents else lambda difference: difference
        slope = slope_of(lambda t: part(manifold.retraction(x, t * v) - manifold.exp(x, t * v)))
    elif sample.is_submanifold:
        slope = slope_of(lambda t: sample.project(manifold.retraction(x, t * v) - x - t * v))
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
        f"has a retraction that is only of first order: it leaves the geodesic with slope {slope:.2f}, "
        "where 3 is the least; a better retraction, or retraction_order=1, would be right"
    )
    inspection.require(is_right(slope, 3), fact, fault)
    return 2


def check_log_and_dist(inspection: Inspection, sample: ManifoldSample) -> None:
    """Check that log inverts exp, that dist is a metric and the length of log, and pair_mean half way."""
    x, manifold = sample.x, sample.manifold
    near = manifold.retraction(x, sample.reach * sample.direction(x))
    has_log, has_dist = has_map(manifold.log, x, near), has_map(manifold.dist, x, near)
    if has_dist:
        _check_dist(inspection, sample, near)
    else:
        inspection.skip("dist")
    if sample.has_exp and has_log:
        _check_log(inspection, sample, near, has_dist)
    else:
        inspection.skip("log undoes exp")
    if not has_dist:
        return
    _remark_on_equal_points(inspection, sample)
    _check_lengths(inspection, sample, near, has_log)
    _check_pair_mean(inspection, sample, near)


def _check_log(inspection: Inspection, sample: ManifoldSample, near: np.ndarray, has_dist: bool) -> None:
    x, manifold, v = sample.x, sample.manifold, sample.reach * sample.v
    w = manifold.log(x, manifold.exp(x, v))
    inspection.require(sample.is_tangent(w), "log is tangent", "has a log that is not tangent")
    length = float(manifold.norm(x, v))
    close = manifold.norm(x, w - v) <= _accuracy(length) * length
    inspection.require(close, "log undoes exp", "has a log that does not undo exp")
    end = manifold.exp(x, manifold.log(x, near))
    fault = "has an exp that does not undo log: exp(x, log(x, y)) is not y"
    inspection.require(np.isfinite(end).all(), "exp undoes log", fault)
    with np.errstate(all="ignore"):
        gap = manifold.dist(end, near) if has_dist else np.nan
    if np.isfinite(gap):  # NaN for equal points is the subject of a remark
        inspection.require(gap <= 1e-7, "exp undoes log", fault)


def _check_dist(inspection: Inspection, sample: ManifoldSample, near: np.ndarray) -> None:
    x, y, manifold = sample.x, sample.y, sample.manifold
    dist = manifold.dist
    there, back, none = dist(x, y), dist(y, x), dist(x, x)
    symmetric = abs(there - back) <= ROUNDING * abs(there)
    fault = f"has a dist that is not symmetric: {there:.6g} there and {back:.6g} back"
    inspection.require(symmetric, "dist is symmetric", fault)
    positive = there > 0 and dist(x, near) > 0
    fault = "has a dist between different points that is not positive"
    inspection.require(positive, "dist is positive", fault)
    fault = f"has a dist of {none:.2g} from a point to itself"
    # A number that is not finite is remarked upon: it depends on the last digit of the point.
    inspection.require(not abs(none) > _EQUAL, "dist is zero from a point to itself", fault)
    third = manifold.retraction(x, sample.reach * sample.u)
    direct, detour = dist(x, near), dist(x, third) + dist(third, near)
    fault = f"has a dist that violates the triangle inequality: {direct:.6g} > {detour:.6g}"
    shorter = direct <= detour * (1 + _accuracy(sample.reach))
    inspection.require(shorter, "dist satisfies the triangle inequality", fault)


def _check_lengths(inspection: Inspection, sample: ManifoldSample, near: np.ndarray, has_log: bool) -> None:
    x, manifold = sample.x, sample.manifold
    if sample.has_exp:
        for fraction in (0.2, 0.5, 1.0):
            v = fraction * sample.reach * sample.v
            length, dist = float(manifold.norm(x, v)), manifold.dist(x, manifold.exp(x, v))
            fault = f"has an exp that goes {dist:.6g} far for a tangent vector of length {length:.6g}"
            right = abs(dist - length) <= _accuracy(length) * length
            inspection.require(right, "exp goes as far as v is long", fault)
    if has_log:
        length, dist = float(manifold.norm(x, manifold.log(x, near))), manifold.dist(x, near)
        fault = f"has a log of length {length:.6g} to a point at distance {dist:.6g}"
        right = abs(dist - length) <= _accuracy(dist) * dist
        inspection.require(right, "dist is the length of log", fault)


def _check_pair_mean(inspection: Inspection, sample: ManifoldSample, near: np.ndarray) -> None:
    x, manifold = sample.x, sample.manifold
    if not has_map(manifold.pair_mean, x, near):
        inspection.skip("pair_mean")
        return
    mean = manifold.pair_mean(x, near)
    half = manifold.dist(x, near) / 2
    to_x, to_near = manifold.dist(x, mean), manifold.dist(mean, near)
    fault = f"has a pair_mean at distances {to_x:.6g} and {to_near:.6g}, where both should be {half:.6g}"
    right = max(abs(to_x - half), abs(to_near - half)) <= _accuracy(half) * half
    inspection.require(right, "pair_mean is half way", fault)


def _remark_on_equal_points(inspection: Inspection, sample: ManifoldSample) -> None:
    """An arccos of a number just above one is not a number, at some points and not at others."""
    for _ in range(20):
        x = random_point(sample.manifold, sample.rng)
        with np.errstate(all="ignore"):
            for name in ("log", "dist"):
                method = getattr(sample.manifold, name)
                if has_map(method, x, x) and not np.isfinite(method(x, x)).all():
                    inspection.remark(f"{name} from a point to itself is not a number at some points")


def _accuracy(length: float) -> float:
    """The relative accuracy of a distance that was computed by an arccos: ε/θ² for the angle θ.

    1e-13 and not 1e-16, because the angle of a single atom may be a small fraction of the length.
    """
    return max(1e-7, 1e-13 / max(length, 1e-300) ** 2)
