"""`NonNegative`: the square map, and geodesics through zero entries."""

import numpy as np
import pytest
from manifold_samples import ROUNDING, angles

from manifold_dl.manifolds import (
    NonNegative,
)


def test_root_and_square_are_inverse_and_unit(rng):
    manifold = NonNegative(5, 3)
    D = manifold.random_point(rng)
    w = manifold.root(D)
    np.testing.assert_allclose(angles(w), 1, atol=ROUNDING)
    np.testing.assert_allclose(manifold.square(w), D, atol=ROUNDING)
    np.testing.assert_array_equal(manifold.square(-w), manifold.square(w))


def test_geodesics_touch_zero_entries_smoothly():
    """The entry falls to zero and comes back: no negative entry, and no kink in d."""
    manifold = NonNegative(2, 1)
    D = manifold.square(np.array([[np.cos(0.3)], [np.sin(0.3)]]))
    down = np.array([[np.sin(0.3)], [-np.cos(0.3)]])  # the root turns by t, and the entry is zero at t = 0.3
    path = np.array([manifold.exp(D, t * down)[:, 0] for t in np.linspace(0, 0.6, 601)])
    assert path.min() >= 0
    assert path[300, 1] == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(path[-1], D[:, 0], atol=1e-12)  # as far past zero as it was before
    # Second differences of a smooth curve at steps of 1e-3 are 1e-6 times its acceleration, here below 10.
    assert np.abs(np.diff(path, 2, axis=0)).max() < 1e-5


def test_zero_entries_have_zero_gradient_and_closest_makes_them_positive(rng):
    manifold = NonNegative(4, 1)
    D = np.array([[0.6], [0.8], [0.0], [0.0]])
    gradient = manifold.euclidean_to_riemannian_gradient(D, rng.standard_normal((4, 1)))
    np.testing.assert_array_equal(gradient[2:], 0)
    inside = manifold.closest(D)
    assert 0 < inside[2, 0] == pytest.approx(0.5e-6, rel=1e-6)
    np.testing.assert_allclose(inside, D, atol=1e-6)
    assert np.all(manifold.euclidean_to_riemannian_gradient(inside, rng.standard_normal((4, 1))) != 0)


def test_closest_flips_the_sign_of_mostly_negative_atoms():
    D = NonNegative(3, 2).closest(np.array([[-3.0, 3.0], [-4.0, -1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(D, [[0.6, 1], [0.8, 0], [0, 0]], atol=1e-6)
