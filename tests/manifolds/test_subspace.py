"""Unit atoms in a subspace: `ZeroMean` and `Subspace`."""

import copy
import pickle

import numpy as np
import pytest
from manifold_samples import (
    BASIS,
    ROUNDING,
    angles,
    within_reach,
)
from pymanopt.manifolds import SphereSubspaceIntersection

from manifold_dl.manifolds import (
    Columns,
    Spheres,
    SpheresWithin,
    Subspace,
    ZeroMean,
)


def test_zero_mean_is_the_subspace_orthogonal_to_the_constant(rng):
    basis = np.linalg.svd(np.ones((1, 5)))[2][1:].T
    fast, general = ZeroMean(5, 3), Subspace(basis)(5, 3)
    x, y = fast.random_point(rng), fast.random_point(rng)
    V = within_reach(fast, x, rng)
    assert fast.dim == general.dim == 9
    for one, other in [
        (fast.projection(x, V + 1), general.projection(x, V + 1)),
        (fast.exp(x, V), general.exp(x, V)),
        (fast.log(x, y), general.log(x, y)),
        (fast.closest(x + 1), general.closest(x + 1)),
    ]:
        np.testing.assert_allclose(one, other, atol=ROUNDING)


def test_subspace_agrees_with_pymanopts_sphere_in_a_subspace(rng):
    fast = Subspace(BASIS)(6, 4)
    slow = Columns(lambda m: SphereSubspaceIntersection(BASIS))(6, 4)
    x, y = fast.random_point(rng), fast.random_point(rng)
    V = within_reach(fast, x, rng)
    G, H = rng.standard_normal((6, 4)), rng.standard_normal((6, 4))
    assert fast.dim == slow.dim
    np.testing.assert_allclose(fast.projection(x, G), slow.projection(x, G), atol=ROUNDING)
    np.testing.assert_allclose(fast.exp(x, V), slow.exp(x, V), atol=ROUNDING)
    np.testing.assert_allclose(fast.retraction(x, V), slow.retraction(x, V), atol=ROUNDING)
    # Pymanopt's arccos loses digits like 1/sin θ.
    np.testing.assert_allclose(fast.log(x, y), slow.log(x, y), atol=1e-11)
    np.testing.assert_allclose(
        fast.euclidean_to_riemannian_hessian(x, G, H, V),
        slow.euclidean_to_riemannian_hessian(x, G, H, V),
        atol=ROUNDING,
    )


def test_a_subspace_is_isometric_to_the_spheres_of_its_coordinates(rng):
    factory = Subspace(BASIS)
    inside, coordinates = factory(6, 4), Spheres(3, 4)
    z, w = coordinates.random_point(rng), coordinates.random_point(rng)
    B = factory.basis
    np.testing.assert_allclose(inside.dist(B @ z, B @ w), coordinates.dist(z, w), rtol=ROUNDING)
    np.testing.assert_allclose(inside.log(B @ z, B @ w), B @ coordinates.log(z, w), atol=ROUNDING)


@pytest.mark.parametrize(
    "manifold", [ZeroMean(3, 3), ZeroMean(5, 4), Subspace(np.eye(5)[:, 1:3])(5, 4)], ids=str
)
def test_atoms_stay_in_the_subspace_to_one_rounding_after_many_steps(manifold, rng):
    point = manifold.random_point(rng)
    for _ in range(500):
        point = manifold.exp(point, within_reach(manifold, point, rng))
    # One rounding of each of the two projections, not of 500.
    np.testing.assert_allclose(point, manifold.within(point), atol=1e-15)
    np.testing.assert_allclose(angles(point), 1, atol=1e-15)


@pytest.mark.parametrize(
    "manifold", [ZeroMean(3, 2), ZeroMean(6, 2), Subspace(np.eye(5)[:, 1:3])(5, 2)], ids=str
)
def test_log_of_antipodal_atoms_is_tangent_to_the_subspace(manifold, rng):
    """The coordinate axis that Spheres would take may be orthogonal to the subspace."""
    point = np.repeat(manifold.random_point(rng)[:, :1], 2, axis=1)
    vector = manifold.log(point, -point)
    np.testing.assert_allclose(angles(vector), np.pi, rtol=1e-14)
    np.testing.assert_allclose(manifold.projection(point, vector), vector, atol=ROUNDING)
    np.testing.assert_allclose(manifold.exp(point, vector), -point, atol=1e-14)


def test_closest_replaces_atoms_orthogonal_to_the_subspace_by_different_atoms_of_it():
    D = ZeroMean(4, 3).closest(np.ones((4, 3)))
    np.testing.assert_allclose(D.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(angles(D), 1, rtol=1e-15)
    assert np.abs(np.triu(D.T @ D, 1)).max() < 0.5  # -1/3 for the axes without their means
    np.testing.assert_array_equal(Spheres(3, 4).closest(np.zeros((3, 4))), np.eye(3)[:, [0, 1, 2, 0]])


def test_subspaces_compare_print_and_pickle_by_their_basis():
    factory = Subspace(BASIS)
    assert factory == Subspace(BASIS.copy()) != Subspace(BASIS[:, :2])
    assert hash(factory) == hash(Subspace(BASIS))
    assert pickle.loads(pickle.dumps(factory)) == copy.deepcopy(factory) == factory
    assert repr(factory) == "Subspace(<6×3 basis>)" and repr(factory(6, 2)) == "Subspace(<6×3 basis>)(6, 2)"
    assert isinstance(factory(6, 2), SpheresWithin) and isinstance(ZeroMean(4, 2), SpheresWithin)
    orthonormal = np.linalg.qr(BASIS)[0]
    np.testing.assert_array_equal(Subspace(orthonormal).basis, orthonormal)
