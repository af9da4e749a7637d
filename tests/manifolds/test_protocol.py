"""The optional members of a manifold, with their defaults."""

import numpy as np
import pytest
from pymanopt.manifolds import Oblique, Stiefel

from manifold_dl.manifolds import NonNegative, Orthonormal, Spheres
from manifold_dl.manifolds.protocol import OptionalMembers, optional_members


@pytest.mark.parametrize("factory", [Oblique, Stiefel])
def test_manifolds_of_pymanopt_have_the_defaults(factory):
    assert optional_members(factory(6, 3)) == OptionalMembers(None, False, False)


def test_our_manifolds_state_what_they_are():
    assert optional_members(Orthonormal(6, 3)).couples_atoms
    assert not optional_members(Spheres(6, 3)).couples_atoms
    assert optional_members(Spheres(6, 3)).exp_keeps_to_manifold


def test_closest_is_the_method_of_the_manifold():
    manifold, array = NonNegative(3, 1), np.array([[-3.0], [0.0], [4.0]])
    closest = optional_members(manifold).closest
    assert closest is not None
    np.testing.assert_array_equal(closest(array), manifold.closest(array))
