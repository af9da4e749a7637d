"""What the factories refuse, and the closest point at any scale."""

import numpy as np
import pytest
from manifold_samples import BASIS
from pymanopt.manifolds import Elliptope, Sphere

from manifold_dl.manifolds import (
    Columns,
    Euclidean,
    Lines,
    NonNegative,
    Orthonormal,
    Spheres,
    Subspace,
    ZeroMean,
)


@pytest.mark.parametrize("factory", [Spheres, Lines, ZeroMean, NonNegative, Orthonormal], ids=str)
def test_the_closest_point_does_not_depend_on_the_scale(factory, rng):
    """Squares of 1e200 overflow, and those of 1e-200 vanish."""
    D = rng.standard_normal((5, 3))
    nearest = factory(5, 3).closest(D)
    for scale in (1e200, 1e-200):
        np.testing.assert_allclose(factory(5, 3).closest(scale * D), nearest, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Orthonormal(3, 4), "k=4 atoms cannot be orthonormal in m=3 dimensions.*use Spheres"),
        (lambda: ZeroMean(2, 3), "m=2: the unit vectors of R² with mean zero.*needs m >= 3"),
        (lambda: Subspace(np.ones(4)), "basis has shape .4,.: a Subspace needs a matrix"),
        (lambda: Subspace(np.full((4, 2), np.nan)), "matrix of finite numbers"),
        (lambda: Subspace(np.ones((4, 1))), "1 columns of length 4: a Subspace needs at least 2"),
        (lambda: Subspace(np.ones((2, 3))), "at most 2"),
        (lambda: Subspace(np.ones((4, 2))), "linearly dependent"),
        (lambda: Subspace(BASIS)(5, 2), "m=5: the basis of this Subspace has vectors of length 6"),
        (
            lambda: Columns(lambda m: Sphere(m, 2))(4, 3),
            "shape .4, 2.: Columns needs a manifold of single atoms",
        ),
        (lambda: Columns(lambda m: Elliptope(m, 2))(4, 3), "Columns needs a manifold of single atoms"),
    ],
)
def test_impossible_settings_are_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("factory", [ZeroMean, NonNegative, Orthonormal, Euclidean, Columns(Sphere)], ids=str)
def test_all_factories_refuse_impossible_shapes(factory):
    m = 0 if factory is Euclidean else 1
    with pytest.raises(ValueError, match=f"m={m}: "):
        factory(m, 1)
    with pytest.raises(ValueError, match="k=0: a dictionary needs"):
        factory(4, 0)
    with pytest.raises(TypeError, match="Columns takes a factory"):
        Columns(3)
