"""The feasible set of a manifold: which arrays are on it, and how others are brought onto it."""

import numpy as np
import pymanopt.manifolds as pymanopt_manifolds
import pytest
from feasibility_cases import D_, MEMBERS, M, each_manifold, is_orthonormal
from pymanopt.manifolds import Positive, Stiefel

from manifold_dl.manifolds import Columns, feasible_set


@each_manifold
def test_membership_agrees_with_the_definition(name):
    factory, is_member = MEMBERS[name]
    feasible = feasible_set(factory, M, D_)
    rng = np.random.default_rng(1)
    anywhere = rng.standard_normal((M, D_))
    start = feasible.nearest_point(anywhere)
    for array in (anywhere, start, 3 * start, -start, start[:, ::-1], start + 1e-5 * anywhere):
        assert feasible.contains(array) == bool(is_member(array)), array
    assert feasible.contains(start.astype(np.float32))
    assert not feasible.contains(np.where(np.eye(M, D_) > 0, np.nan, start))


def test_a_point_that_drifted_by_rounding_is_brought_back():
    feasible = feasible_set(Stiefel, 8, 5)
    point = feasible.example
    assert feasible.settled(point) is point
    drifted = point * (1 + 1e-10)
    assert is_orthonormal(feasible.settled(drifted)) and not is_orthonormal(drifted * (1 + 1e-11))


@pytest.mark.parametrize(
    ("factory", "member", "other"),
    [
        (Positive, np.exp, lambda a: a),
        (lambda m, k: pymanopt_manifolds.Symmetric(m), lambda a: a + a.T, lambda a: a),
        (
            lambda m, k: pymanopt_manifolds.SymmetricPositiveDefinite(m),
            lambda a: a @ a.T + np.eye(len(a)),
            lambda a: a + a.T,
        ),
        (Columns(pymanopt_manifolds.PoincareBall), lambda a: a / 10, lambda a: a),
    ],
)
def test_manifolds_without_a_map_to_the_nearest_point_require_a_start_on_them(factory, member, other):
    """A zero step leaves the array where it was, which is off the manifold."""
    array = np.random.default_rng(2).standard_normal((4, 4))
    feasible = feasible_set(factory, 4, 4)
    assert feasible.contains(member(array)) and not feasible.contains(other(array))
    np.testing.assert_array_equal(feasible.nearest_point(member(array)), member(array))
    with pytest.raises(ValueError, match=r"not on the .*give the manifold a method closest\(array\)"):
        feasible.nearest_point(other(array))


def test_the_two_components_of_the_orthogonal_group_are_told_apart():
    feasible = feasible_set(lambda m, k: pymanopt_manifolds.SpecialOrthogonalGroup(m), 3, 3)
    turned = feasible.example[:, [1, 0, 2]]  # the determinant is now −1
    assert feasible.contains(feasible.example[:, [1, 2, 0]]) and not feasible.contains(turned)


def test_numpys_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what is being watched
    feasible_set(lambda m, k: Stiefel(m, k), 5, 3).nearest_point(np.ones((5, 3)))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
