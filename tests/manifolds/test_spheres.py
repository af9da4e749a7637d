"""`Spheres` alone: antipodal atoms, integers, shapes and precisions, and agreement with Pymanopt."""

import numpy as np
import pytest
from manifold_samples import SHAPES, angles, within_reach
from pymanopt.manifolds import Product, Sphere

from manifold_dl.manifolds import (
    Spheres,
)


def test_inner_product_of_matrices_of_different_shapes_is_refused():
    # Equal strides are not equal shapes: compiled code would read beyond the end.
    left, right = np.ones((8, 400), order="F"), np.ones((8, 3), order="F")
    with pytest.raises(ValueError, match="length"):
        Spheres(8, 400).inner_product(None, left, right)


@pytest.mark.parametrize("shape", SHAPES)
def test_spheres_agree_with_pymanopts_product_of_single_spheres(shape, rng):
    m, k = shape
    spheres, reference = Spheres(m, k), Product([Sphere(m)] * k)
    x, y = spheres.random_point(rng), spheres.random_point(rng)
    V = within_reach(spheres, x, rng)
    columns = lambda array: list(array.T)
    # Its arccos loses digits like 1/sin θ; of 60 random angles the smallest sine is about 0.01.
    tolerance = 1e-12
    assert spheres.dist(x, y) == pytest.approx(reference.dist(columns(x), columns(y)), rel=tolerance)
    np.testing.assert_allclose(
        spheres.exp(x, V), np.stack(reference.exp(columns(x), columns(V)), 1), atol=tolerance
    )
    np.testing.assert_allclose(
        spheres.log(x, y), np.stack(reference.log(columns(x), columns(y)), 1), atol=tolerance
    )
    assert spheres.dim == reference.dim
    assert spheres.typical_dist == pytest.approx(reference.typical_dist)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log_and_dist_of_antipodal_atoms_are_pi(shape, dtype, rng):
    spheres = Spheres(*shape)
    x = spheres.random_point(rng).astype(dtype)
    few_roundings = 10 * float(np.finfo(dtype).eps)
    V = spheres.log(x, -x)
    np.testing.assert_allclose(angles(V), np.pi, rtol=few_roundings)
    np.testing.assert_allclose((x * V).sum(axis=0), 0, atol=few_roundings)
    np.testing.assert_allclose(spheres.exp(x, V), -x, atol=few_roundings)
    np.testing.assert_array_equal(spheres.log(x, -x), V)
    assert spheres.dist(x, -x) == pytest.approx(np.pi * np.sqrt(shape[1]), rel=few_roundings)

    middle = spheres.pair_mean(x, -x)
    np.testing.assert_allclose((x * middle).sum(axis=0), 0, atol=few_roundings)
    np.testing.assert_allclose(angles(middle), 1, rtol=few_roundings)


@pytest.mark.parametrize("gap", [1e-3, 1e-8, 1e-12, 1e-15, 1e-16])
def test_log_is_accurate_for_nearly_antipodal_atoms(gap, rng):
    spheres = Spheres(5, 40)
    x = spheres.random_point(rng)
    U = spheres.random_tangent_vector(x, rng)
    U *= (np.pi - gap) / angles(U)
    y = spheres.exp(x, U)
    V = spheres.log(x, y)
    np.testing.assert_allclose((x * V).sum(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(angles(V), np.pi - gap, atol=1e-14)
    np.testing.assert_allclose(spheres.exp(x, V), y, atol=1e-14)
    # A direction is known as well as rounding leaves it: 1e-16 in a component of length `gap`.
    if gap >= 1e-12:
        np.testing.assert_allclose(V, U, atol=1e-14 / gap)


def test_log_and_dist_treat_equal_opposite_and_other_atoms_column_by_column():
    spheres = Spheres(2, 3)
    x = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    y = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(spheres.log(x, y), [[0, 0, 0], [0, np.pi, np.pi / 2]], rtol=1e-15)
    assert spheres.dist(x, y) == pytest.approx(np.hypot(np.pi, np.pi / 2), rel=1e-15)


def test_integer_dictionaries_have_float_tangent_vectors():
    """np.eye(2, dtype=int) is a fine dictionary to type; its tangents must not be rounded to integers."""
    spheres = Spheres(2, 1)
    x, y = np.array([[1], [0]]), np.array([[0], [1]])
    np.testing.assert_allclose(spheres.log(x, y), [[0], [np.pi / 2]], rtol=1e-15)
    np.testing.assert_allclose(spheres.retraction(x, y), [[0.5**0.5], [0.5**0.5]], rtol=1e-15)


@pytest.mark.parametrize("name", ["projection", "exp"])
def test_spheres_broadcast_columns_and_refuse_other_shapes(name):
    spheres = Spheres(3, 2)
    D = spheres.random_point(0)
    one = 0.1 * np.ones((3, 1))  # spreads over the columns, as in NumPy
    np.testing.assert_array_equal(
        getattr(spheres, name)(D, one), getattr(spheres, name)(D, np.tile(one, (1, 2)))
    )
    for shape in [(3, 5), (2, 2), (7, 2)]:
        with pytest.raises(ValueError, match="broadcast"):
            getattr(spheres, name)(D, np.ones(shape))


def test_exp_keeps_half_and_extended_precision():
    D, V = (np.array([[0.6, 0.0], [0.8, 1.0]]), np.array([[-0.8, 0.3], [0.6, 0.0]]))
    for dtype in (np.float16, np.longdouble):
        moved = Spheres(2, 2).exp(D.astype(dtype), V.astype(dtype))
        assert moved.dtype == dtype
        np.testing.assert_allclose(moved.astype(float), Spheres(2, 2).exp(D, V), atol=2e-3)
