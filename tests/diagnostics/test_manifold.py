"""`check_manifold`: wrong manifolds are named with their fault; what it finds in those of Pymanopt."""

import numpy as np
import pymanopt
import pytest
from pymanopt.manifolds import Euclidean, Grassmann, Oblique, Product, Sphere, Stiefel

from manifold_dl import manifolds
from manifold_dl.diagnostics import (
    CheckFailed,
    check_manifold,
)

SPHERES = manifolds.Spheres(5, 3)


def with_method(name, method):
    """Spheres with one method wrong."""
    return type("Wrong", (manifolds.Spheres,), {name: method})(5, 3)


def first_order(self, x, v):
    """A retraction with an acceleration along the sphere."""
    moved = x + v + 0.5 * np.linalg.norm(v) * v
    return moved / np.linalg.norm(moved, axis=0)


WRONG_MANIFOLDS = {
    "only of first order": with_method("retraction", first_order),
    "a retraction that does not leave in the direction": with_method(
        "retraction", lambda self, x, v: manifolds.Spheres.retraction(self, x, 2 * v)
    ),
    "an exp that leaves the manifold": with_method("exp", lambda self, x, v: x + v),
    "an exp that is no geodesic": with_method("exp", first_order),
    "not idempotent": with_method(
        "projection", lambda self, x, v: 0.9 * manifolds.Spheres.projection(self, x, v)
    ),
    "not orthogonal": with_method("projection", lambda self, x, v: v - x * (v[:1] / x[:1])),
    "not positive": with_method("inner_product", lambda self, x, a, b: -np.vdot(a, b)),
    "not symmetric": with_method("inner_product", lambda self, x, a, b: np.vdot(a, np.roll(b, 1, axis=0))),
    "a norm that is an array": with_method("norm", lambda self, x, v: np.linalg.norm(v, axis=0)),
    "raised KeyError: 'x'": with_method("transport", lambda self, x, y, v: {}["x"]),
    "a retraction that changes the point": with_method(
        "retraction", lambda self, x, v: np.divide(np.add(x, v, out=x), np.linalg.norm(x, axis=0), out=x)
    ),
    "a norm that is not the root": with_method("norm", lambda self, x, v: np.abs(v).sum()),
    "dist that is not symmetric": with_method("dist", lambda self, x, y: abs(x[0, 0])),
    "a log that does not undo exp": with_method(
        "log", lambda self, x, y: 2 * manifolds.Spheres.log(self, x, y)
    ),
    "whose result is not tangent at the new point": with_method("transport", lambda self, x, y, v: v),
    "does not turn Euclidean derivatives": with_method(
        "euclidean_to_riemannian_hessian", lambda self, x, g, H, v: self.projection(x, H)
    ),
    "but says dim = 5": with_method("dim", 5),
}


@pytest.mark.parametrize("fault", WRONG_MANIFOLDS)
def test_check_manifold_names_the_fault(fault):
    with pytest.raises(CheckFailed, match=f"^Wrong .*{fault}"):
        check_manifold(WRONG_MANIFOLDS[fault], retraction_order=2)


def test_first_order_retraction_passes_if_order_one_is_claimed():
    report = check_manifold(with_method("retraction", first_order), retraction_order=1)
    assert "the retraction is of order 2 (not claimed)" in report.skipped


@pytest.mark.parametrize("manifold", [Stiefel(4, 2), with_method("retraction", first_order)], ids=str)
def test_first_order_retraction_is_a_remark_and_a_fault_if_order_two_is_claimed(manifold):
    report = check_manifold(manifold)
    assert report
    assert [remark for remark in report.remarks if remark.startswith("the retraction is of first order")]
    with pytest.raises(AssertionError, match="has a retraction that is only of first order"):
        check_manifold(manifold, retraction_order=2)


# What is known of Pymanopt 2.2.1, by reading its source: the QR retraction of Stiefel and SO(n) is of first
# order, the polar one of second; Oblique.log takes an unclipped arccos; ComplexCircle.exp fills an array of
# real numbers; Elliptope.projection solves the Lyapunov equation with the wrong sign.
PYMANOPT_MANIFOLDS = [
    (Oblique(6, 4), "log from a point to itself"),
    (Stiefel(6, 4), "of first order"),
    (Stiefel(4, 4), "of first order"),
    (Stiefel(6, 4, retraction="polar"), None),
    (Stiefel(6, 1), None),  # one column: the sphere, and its usual retraction
    (pymanopt.manifolds.SpecialOrthogonalGroup(4), "of first order"),
    (Grassmann(6, 2), None),
    (Sphere(6, 4), None),
    (Euclidean(6, 4), None),
    (pymanopt.manifolds.Positive(6, 4), None),
    (pymanopt.manifolds.PSDFixedRank(6, 3), None),
    (pymanopt.manifolds.Symmetric(4), None),
    (pymanopt.manifolds.SkewSymmetric(4), None),
    (pymanopt.manifolds.SymmetricPositiveDefinite(4), None),
]


@pytest.mark.parametrize(("manifold", "remark"), PYMANOPT_MANIFOLDS, ids=lambda one: str(one)[:40])
def test_check_manifold_on_the_manifolds_of_pymanopt(manifold, remark):
    *remarks, single_precision = check_manifold(manifold).remarks
    assert len(remarks) == (remark is not None)
    assert remark is None or remark in remarks[0]
    # None of them keeps float32, the steps of a line search being float64.
    assert single_precision.startswith("float32 points give float64 results: projection, retraction")


@pytest.mark.filterwarnings("ignore:Casting complex values:numpy.exceptions.ComplexWarning")
def test_check_manifold_finds_the_faults_of_pymanopts_complex_circle_and_elliptope():
    with pytest.raises(CheckFailed, match="ComplexCircle has an exp that does not begin at the point"):
        check_manifold(pymanopt.manifolds.ComplexCircle(5))
    with pytest.raises(CheckFailed, match="Elliptope has a projection that is not idempotent"):
        check_manifold(pymanopt.manifolds.Elliptope(6, 3))
    # Twice the vertical part is taken away from a vector that has one: against the definition of horizontal.
    manifold, rng = pymanopt.manifolds.Elliptope(6, 3), np.random.default_rng(0)
    Y = manifold._normalize_rows(rng.standard_normal((6, 3)))
    tangent = manifold.projection(Y, rng.standard_normal((6, 3)))
    assert not np.allclose(Y.T @ tangent, tangent.T @ Y, atol=1e-3)


def test_missing_maps_of_a_manifold_are_listed_as_skipped():
    assert {"log undoes exp", "dist"} <= set(check_manifold(manifolds.Orthonormal(5, 3)).skipped)
    assert "skipped: dist" in str(check_manifold(manifolds.Orthonormal(5, 3)))


def test_check_manifold_refuses_classes_and_points_that_are_no_arrays():
    with pytest.raises(TypeError, match="Spheres is a class; pass a manifold"):
        check_manifold(manifolds.Spheres)
    with pytest.raises(TypeError, match=r"None: a subclass of .* is needed"):
        check_manifold(None)
    with pytest.raises(ValueError, match="retraction_order=3"):
        check_manifold(SPHERES, retraction_order=3)
    with pytest.raises(TypeError, match="points of type list"):
        check_manifold(Product([Sphere(3), Sphere(3)]))
