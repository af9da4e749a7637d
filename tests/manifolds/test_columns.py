"""`Columns` agrees with the vectorised manifolds."""

import numpy as np
import pytest
from manifold_samples import ROUNDING, up_to_signs
from pymanopt.manifolds import Grassmann, Sphere

from manifold_dl.manifolds import (
    Columns,
    Euclidean,
    Lines,
    NonNegative,
    Spheres,
    ZeroMean,
)


@pytest.mark.parametrize(
    ("fast", "single"),
    [
        (Spheres, Sphere),
        (Lines, lambda m: Grassmann(m, 1)),
        (NonNegative, lambda m: NonNegative(m, 1)),
        (Euclidean, lambda m: Euclidean(m, 1)),
    ],
)
def test_columns_agree_with_the_vectorised_manifolds(fast, single, rng):
    fast, slow = fast(4, 3), Columns(single)(4, 3)
    x = fast.random_point(rng)
    V = 0.05 * fast.random_tangent_vector(x, rng)
    y = fast.exp(x, 0.05 * fast.random_tangent_vector(x, rng))
    G, H = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    assert fast.dim == slow.dim
    assert fast.inner_product(x, V, V) == pytest.approx(slow.inner_product(x, V, V), rel=ROUNDING)
    assert fast.dist(x, y) == pytest.approx(slow.dist(x, y), rel=1e-7)  # an arccos near 1
    for one, other in [
        (fast.exp(x, V), slow.exp(x, V)),
        (fast.projection(x, G), slow.projection(x, G)),
        (fast.embedding(x, V), slow.embedding(x, V)),
        (fast.transport(x, y, V), slow.transport(x, y, V)),
        (fast.euclidean_to_riemannian_gradient(x, G), slow.euclidean_to_riemannian_gradient(x, G)),
        (
            fast.euclidean_to_riemannian_hessian(x, G, H, V),
            slow.euclidean_to_riemannian_hessian(x, G, H, V),
        ),
    ]:
        if isinstance(fast, Lines):
            other = up_to_signs(other, one)  # a Grassmannian's exp picks its own
        np.testing.assert_allclose(one, other, atol=1e-11)


def test_columns_have_closest_only_if_the_single_manifold_has_it(rng):
    assert not hasattr(Columns(Sphere)(4, 3), "closest")
    D = rng.standard_normal((4, 3))
    slow, fast = Columns(lambda m: ZeroMean(m, 1))(4, 3), ZeroMean(4, 3)
    np.testing.assert_allclose(slow.closest(D), fast.closest(D), atol=ROUNDING)


def test_columns_without_exp_raise_not_implemented_without_a_warning(rng):
    class Bent(Sphere):
        """A sphere whose exp is missing, as that of some of Pymanopt's manifolds is."""

        def exp(self, point, tangent_vector):
            raise NotImplementedError("no exponential map")

    manifold = Columns(Bent)(4, 2)
    point = manifold.random_point(rng)
    with pytest.raises(NotImplementedError, match="no exponential map"):
        manifold.exp(point, point)
