"""`Orthonormal`: agreement with Pymanopt's Stiefel manifold, and accuracy over many steps."""

import numpy as np
import pytest
from manifold_samples import ROUNDING
from pymanopt.manifolds import Stiefel

from manifold_dl.manifolds import (
    Orthonormal,
)


@pytest.mark.parametrize("shape", [(4, 3), (5, 5), (9, 2), (6, 1)])
def test_orthonormal_agrees_with_pymanopts_stiefel(shape, rng):
    ours, theirs = Orthonormal(*shape), Stiefel(*shape, retraction="polar")
    D = ours.random_point(rng)
    V = ours.random_tangent_vector(D, rng)
    G, H = rng.standard_normal(shape), rng.standard_normal(shape)
    assert ours.dim == theirs.dim
    np.testing.assert_allclose(ours.projection(D, G), theirs.projection(D, G), atol=ROUNDING)
    np.testing.assert_allclose(ours.retraction(D, V), theirs.retraction(D, V), atol=ROUNDING)
    for length in (0, 1e-6, 1, 20):
        np.testing.assert_allclose(ours.exp(D, length * V), theirs.exp(D, length * V), atol=1e-12)
    np.testing.assert_allclose(
        ours.euclidean_to_riemannian_hessian(D, G, H, V),
        theirs.euclidean_to_riemannian_hessian(D, G, H, V),
        atol=ROUNDING,
    )


@pytest.mark.parametrize("shape", [(4, 3), (5, 5), (9, 2)])
def test_acceleration_of_geodesics_is_normal(shape, rng):
    manifold = Orthonormal(*shape)
    D = manifold.random_point(rng)
    V = manifold.random_tangent_vector(D, rng)
    t = 1e-4  # second differences: an error of t² = 1e-8 against rounding of 1e-16/t² = 1e-8
    acceleration = (manifold.exp(D, t * V) - 2 * D + manifold.exp(D, -t * V)) / t**2
    np.testing.assert_allclose(acceleration, -D @ V.T @ V, atol=1e-6)
    np.testing.assert_allclose(manifold.projection(D, acceleration), 0, atol=1e-6)


@pytest.mark.parametrize("length", [0.1, 1, 1e3])
def test_orthonormal_atoms_stay_orthonormal(length, rng):
    manifold = Orthonormal(6, 4)
    D = manifold.random_point(rng)
    for _ in range(200):
        D = manifold.exp(D, length * manifold.random_tangent_vector(D, rng))
    # One Newton-Schulz step leaves a few roundings, whatever came before.
    np.testing.assert_allclose(D.T @ D, np.eye(4), atol=2e-15)


def test_random_orthonormal_matrices_have_mean_zero():
    """Plain QR has negative diagonals of R nearly always; uniform ones average to zero."""
    draws = np.array([Orthonormal(3, 3).random_point(seed) for seed in range(400)])
    # Entries have variance 1/3: the mean of 400 has a standard deviation of 0.03, and there are nine.
    assert np.abs(draws.mean(axis=0)).max() < 0.12
