"""What this package adds to Pymanopt's manifolds: generators, single precision and the closest point.

The last part of `check_manifold`. None of it is required of a manifold; what is there must be right.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from manifold_dl.diagnostics.manifold_sample import ManifoldSample, agree
from manifold_dl.diagnostics.paths import accepts_generator, has_map, random_tangent
from manifold_dl.diagnostics.report import Inspection
from manifold_dl.manifolds.protocol import optional_members

# `closest` may stay a little inside of a manifold with a boundary: that of NonNegative does, by 1e-6.
_INSIDE = 1e-5


def check_generators(inspection: Inspection, sample: ManifoldSample) -> None:
    """Check that draws with ``rng=`` depend on it alone, and leave NumPy's global generator as it was."""
    manifold = sample.manifold
    fact = "draws depend on rng alone"
    if not (accepts_generator(manifold.random_point) and accepts_generator(manifold.random_tangent_vector)):
        inspection.skip(f"{fact} (random_point and random_tangent_vector take no rng)")
        return
    before = np.random.get_state()  # noqa: NPY002 - the global generator is what is being tested
    points = [manifold.random_point(rng=seed) for seed in (7, 7, 8)]
    vectors = [manifold.random_tangent_vector(points[0], rng=7) for _ in range(2)]
    after = np.random.get_state()  # noqa: NPY002 - the same, afterwards
    untouched = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    fault = "draws from NumPy's global generator although it is given an rng"
    inspection.require(untouched, "rng= leaves the global generator alone", fault)
    same = np.array_equal(points[0], points[1]) and np.array_equal(*vectors)
    different = not np.array_equal(points[0], points[2])
    fault = "draws other numbers with the same rng, or the same with another one"
    inspection.require(same and different, fact, fault)


def remark_on_single_precision(inspection: Inspection, sample: ManifoldSample) -> None:
    """Remark on the methods whose results are float64 at a float32 point: a run would be in float64."""
    if np.iscomplexobj(sample.x):
        return
    manifold = sample.manifold
    near = manifold.retraction(sample.x, sample.reach * sample.v)
    a, b, u = (array.astype(np.float32) for array in (sample.x, near, sample.reach * sample.u))
    calls: dict[str, tuple[Any, ...]] = {
        "projection": (a, b.astype(float)),
        "euclidean_to_riemannian_gradient": (a, b),
        "euclidean_to_riemannian_hessian": (a, b, b, u),
        "retraction": (a, np.float64(0.1) * u),
        "transport": (a, b, u),
        "zero_vector": (a,),
        "log": (a, b),
        "pair_mean": (a, b),
    }
    if sample.has_exp:
        calls["exp"] = (a, u)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on accuracy, which is less in float32
        wide = [name for name, given in calls.items() if _widens(getattr(manifold, name), *given)]
        if random_tangent(manifold, a, sample.rng).dtype != np.float32:
            wide.append("random_tangent_vector")
    if wide:
        inspection.remark(f"float32 points give float64 results: {', '.join(wide)}")


def _widens(method: Callable, *arguments: Any) -> bool:
    return has_map(method, *arguments) and np.asarray(method(*arguments)).dtype != np.float32


def check_closest(inspection: Inspection, sample: ManifoldSample) -> None:
    """Check `closest(array)`, the point where an update starts if its dictionary is not on the manifold."""
    manifold, x = sample.manifold, sample.x
    closest = optional_members(manifold).closest
    if closest is None:
        inspection.skip("closest")
        return
    kept = closest(x)
    inspection.require(agree(kept, x), "closest keeps points", "has a closest that changes a point")
    if not np.array_equal(kept, x):
        inspection.remark("closest changes the last digits of a point: an update then changes atoms at once")
    array = x + 0.3 * sample.rng.standard_normal(x.shape)
    nearest = closest(array)
    fault = "has a closest whose result is not a point"
    is_point = sample.is_point(nearest) and agree(closest(nearest), nearest)
    inspection.require(is_point, "closest leads to the manifold", fault)
    distance = float(np.linalg.norm(array - nearest))
    for length in 10 * (1e-2, 1e-1, 1.0):
        other = manifold.retraction(nearest, length * sample.direction(nearest))
        if np.linalg.norm(array - other) < distance - _INSIDE:
            inspection.remark("closest is not the nearest point: there are nearer ones")
    for name in ("exp", "retraction"):
        if name == "exp" and not sample.has_exp:
            continue
        moved = sample.after_many_steps(getattr(manifold, name))
        fault = f"has a closest that changes the result of {name}"
        inspection.require(agree(closest(moved), moved, _INSIDE), "closest keeps the results of moves", fault)
