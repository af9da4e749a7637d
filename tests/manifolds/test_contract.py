"""Every manifold of the package passes `check_manifold`, with nothing to remark, and wrong ones do not."""

import copy
import pickle

import numpy as np
import pytest
from manifold_samples import EVERY_MANIFOLD, reach
from pymanopt.manifolds import Oblique, Stiefel

from manifold_dl.diagnostics import CheckFailed, check_manifold
from manifold_dl.manifolds import (
    Euclidean,
    Orthonormal,
    Spheres,
    ZeroMean,
)


@pytest.mark.parametrize("manifold", EVERY_MANIFOLD, ids=str)
def test_every_manifold_prints_its_shape_and_is_the_same_after_copy_and_pickle(manifold):
    twins = [copy.deepcopy(manifold)]
    if "lambda" not in str(manifold):
        twins.append(pickle.loads(pickle.dumps(manifold)))
    for twin in twins:
        assert repr(twin) == str(manifold)
        np.testing.assert_array_equal(twin.random_point(1), manifold.random_point(1))
    m, k = manifold.random_point(0).shape
    assert str(manifold).endswith(f"({m}, {k})")


# What a manifold of ours does not have: Orthonormal no logarithm, Columns what the manifold of an atom lacks.
MISSING = {
    "Orthonormal": {"log undoes exp", "dist"},
    "Columns(Sphere)": {"closest"},
    "Columns(<lambda>)": {"pair_mean", "closest"},
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("manifold", EVERY_MANIFOLD, ids=str)
def test_every_manifold_passes_the_check_with_nothing_to_remark(manifold, seed):
    report = check_manifold(manifold, rng=seed, retraction_order=2, reach=reach)
    assert report
    allowed = MISSING.get(str(manifold).rpartition("(")[0], set())
    assert set(report.skipped) <= allowed
    # Columns(Sphere) repeats Pymanopt's own sphere, whose arccos may give NaN for equal points.
    remarks = [remark for remark in report.remarks if not remark.startswith("log from a point to itself")]
    assert not remarks
    assert not report.remarks or "Columns(Sphere)" in str(manifold)


class FlatHessian(Spheres):
    """Forgets the curvature of the spheres."""

    def euclidean_to_riemannian_hessian(self, point, euclidean_gradient, euclidean_hessian, tangent_vector):
        return self.projection(point, euclidean_hessian)


class FirstOrder(Orthonormal):
    """Retracts by QR, which leaves the geodesic at second order."""

    def retraction(self, point, tangent_vector):
        return Stiefel(*point.shape, retraction="qr").retraction(point, tangent_vector)


class Drifting(ZeroMean):
    """Steps out of the subspace."""

    def retraction(self, point, tangent_vector):
        return Spheres.retraction(self, point, tangent_vector + 1e-3)


class DoubleGradient(Euclidean):
    """Is wrong by a factor."""

    def euclidean_to_riemannian_gradient(self, point, euclidean_gradient):
        return 2 * euclidean_gradient


class Pole(Spheres):
    """Moves to the nearest coordinate axis in place of the nearest point."""

    def closest(self, point):
        return point if np.allclose(np.linalg.norm(point, axis=0), 1, atol=1e-9) else np.eye(*point.shape)


def with_method(name, method):
    """Spheres with one method replaced."""
    return type("Wrong", (Spheres,), {name: method})(5, 3)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (FlatHessian(5, 3), "does not turn Euclidean derivatives.*Hessian"),
        (FirstOrder(5, 3), "only of first order"),
        (Drifting(5, 3), "a retraction that does not begin at the point|leaves the manifold"),
        (DoubleGradient(5, 3), "does not turn Euclidean derivatives.*gradient"),
        (with_method("pair_mean", lambda self, x, y: self.exp(x, self.log(x, y) / 3)), "pair_mean at"),
        (with_method("dist", lambda self, x, y: np.linalg.norm(x - y)), "an exp that goes"),
        (with_method("dist", lambda self, x, y: Spheres.dist(self, x, y) ** 2), "triangle|an exp that goes"),
        (with_method("dist", lambda self, x, y: 0.0), "not positive"),
        (
            with_method(
                "transport", lambda self, x, y, v: v if x is y else self.projection(y, np.roll(v, 1, axis=0))
            ),
            "a transport that is not continuous",
        ),
        (
            with_method("transport", lambda self, x, y, v: v if x is y else self.projection(y, np.abs(v))),
            "a transport that is not linear",
        ),
        (with_method("exp", lambda self, x, v: (1 + 1e-13) * Oblique.exp(self, x, v)), "after 50 steps"),
        (with_method("closest", lambda self, x: x), "a closest whose result is not a point"),
        (with_method("closest", lambda self, x: Spheres.closest(self, -x)), "a closest that changes a point"),
        (
            with_method("random_point", lambda self, rng=None: Spheres.random_point(self)),
            "draws from NumPy's global generator",
        ),
        (
            with_method("random_point", lambda self, rng=None: Spheres.random_point(self, 3)),
            "the same with another",
        ),
    ],
)
def test_check_manifold_finds_the_fault(wrong, fault):
    with pytest.raises(CheckFailed, match=fault):
        check_manifold(wrong, retraction_order=2, reach=reach)


def test_check_manifold_remarks_on_what_is_allowed():
    single = with_method("zero_vector", lambda self, x: np.zeros(x.shape))
    assert check_manifold(single).remarks == ("float32 points give float64 results: zero_vector",)
    assert "closest is not the nearest point: there are nearer ones" in check_manifold(Pole(5, 3)).remarks
    longer = with_method(
        "random_tangent_vector", lambda self, x, rng=None: 2 * Spheres.random_tangent_vector(self, x, rng)
    )
    assert "random tangent vectors do not have length one" in check_manifold(longer).remarks


def test_log_that_fails_only_far_away_is_found_with_a_larger_reach():
    def log(self, x, y):
        vector = Spheres.log(self, x, y)
        return vector if np.linalg.norm(vector) < 0.1 else 0.99 * vector

    near = with_method("log", log)
    assert check_manifold(near)
    with pytest.raises(CheckFailed, match="a log that does not undo exp"):
        check_manifold(near, reach=0.5)
