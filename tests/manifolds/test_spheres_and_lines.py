"""The geometry of `Spheres` and `Lines` to the last digits, for small and large shapes."""

from itertools import pairwise

import numpy as np
import pytest
from manifold_samples import ROUNDING, SHAPES, angles, slope, up_to_signs, within_reach

from manifold_dl.manifolds import (
    Lines,
    Spheres,
)

FACTORIES = [Spheres, Lines]


@pytest.fixture(params=FACTORIES, ids=lambda factory: factory.__name__)
def factory(request):
    return request.param


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
def manifold(factory, request):
    return factory(*request.param)


def test_random_points_have_unit_columns_and_random_directions_are_unit_tangents(manifold, rng):
    point = manifold.random_point(rng)
    vector = manifold.random_tangent_vector(point, rng)
    np.testing.assert_allclose(angles(point), 1, atol=ROUNDING)
    np.testing.assert_allclose((point * vector).sum(axis=0), 0, atol=ROUNDING)
    np.testing.assert_allclose(manifold.norm(point, vector), 1, atol=ROUNDING)


def test_exp_and_log_are_inverse(manifold, rng):
    point = manifold.random_point(rng)
    vector = within_reach(manifold, point, rng)
    np.testing.assert_allclose(manifold.log(point, manifold.exp(point, vector)), vector, atol=ROUNDING)

    other = manifold.random_point(rng)
    end = manifold.exp(point, manifold.log(point, other))
    if isinstance(manifold, Lines):
        end = up_to_signs(end, other)
    np.testing.assert_allclose(end, other, atol=ROUNDING)


def test_log_is_tangent_and_as_long_as_the_distance(manifold, rng):
    point, other = manifold.random_point(rng), manifold.random_point(rng)
    vector = manifold.log(point, other)
    np.testing.assert_allclose((point * vector).sum(axis=0), 0, atol=ROUNDING)
    np.testing.assert_allclose(manifold.norm(point, vector), manifold.dist(point, other), rtol=ROUNDING)


def test_dist_is_a_metric(manifold, rng):
    a, b, c = (manifold.random_point(rng) for _ in range(3))
    assert manifold.dist(a, a) == 0
    assert manifold.dist(a, b) == manifold.dist(b, a) > 0
    assert manifold.dist(a, c) <= manifold.dist(a, b) + manifold.dist(b, c)
    assert manifold.dist(a, b) <= manifold.typical_dist  # documented as the diameter


def test_geodesics_have_constant_speed(manifold, rng):
    point = manifold.random_point(rng)
    vector = within_reach(manifold, point, rng)
    times = np.linspace(-3, 3, 13)  # well past the antipodes: speed is local, only the shortest way is not
    path = [manifold.exp(point, t * vector) for t in times]
    steps = [manifold.dist(a, b) for a, b in pairwise(path)]
    np.testing.assert_allclose(steps, 0.5 * manifold.norm(point, vector), rtol=ROUNDING)


def test_retraction_agrees_with_exp_to_second_order(manifold, rng):
    point = manifold.random_point(rng)
    vector = within_reach(manifold, point, rng)
    steps = np.logspace(-1, -3, 9)  # errors from 1e-3 down to 1e-10: asymptotic, and far above rounding
    errors = [
        manifold.dist(manifold.retraction(point, t * vector), manifold.exp(point, t * vector)) for t in steps
    ]
    # Along a column the retraction covers the angle arctan(tθ) = tθ − (tθ)³/3 + O(t⁵) of the geodesic's tθ.
    # At t = 0.1 and θ = 1.5 the next term is worth 1.4 % and bends the fitted slope by less than 0.02.
    assert slope(errors, steps) == pytest.approx(3, abs=0.02)
    assert errors[-1] == pytest.approx(steps[-1] ** 3 / 3 * np.linalg.norm(angles(vector) ** 3), rel=1e-4)


def test_unit_norms_hold_to_one_rounding_after_many_steps(manifold, rng):
    point = manifold.random_point(rng)
    for _ in range(200):
        point = manifold.exp(point, within_reach(manifold, point, rng))
    # A single step's rounding, not that of 200: without renormalising the errors add up.
    np.testing.assert_allclose(angles(point), 1, atol=1e-15)
    np.testing.assert_allclose(
        angles(manifold.retraction(point, within_reach(manifold, point, rng))), 1, atol=1e-15
    )


def test_projection_is_orthogonal_and_idempotent(manifold, rng):
    point, ambient = manifold.random_point(rng), rng.standard_normal(manifold.random_point(rng).shape)
    vector = manifold.projection(point, ambient)
    np.testing.assert_allclose(manifold.projection(point, vector), vector, atol=ROUNDING)
    assert manifold.inner_product(point, ambient - vector, vector) == pytest.approx(
        0, abs=ROUNDING * ambient.size
    )
    np.testing.assert_array_equal(manifold.to_tangent_space(point, ambient), vector)
    np.testing.assert_array_equal(manifold.euclidean_to_riemannian_gradient(point, ambient), vector)


def test_transport_keeps_tangency_and_differs_from_the_identity_by_the_step(manifold, rng):
    point = manifold.random_point(rng)
    vector, direction = within_reach(manifold, point, rng), within_reach(manifold, point, rng)
    np.testing.assert_allclose(manifold.transport(point, point, vector), vector, atol=ROUNDING)

    steps = np.logspace(-1, -4, 7)
    errors = []
    for t in steps:
        target = manifold.exp(point, t * direction)
        carried = manifold.transport(point, target, vector)
        np.testing.assert_allclose((target * carried).sum(axis=0), 0, atol=ROUNDING)
        errors.append(np.linalg.norm(carried - vector))
    # Projecting removes x (xᵀv), which is linear in t; the next order bends the slope by less than 0.02.
    assert slope(errors, steps) == pytest.approx(1, abs=0.02)


def test_inner_product_and_norm_are_those_of_the_matrices_in_any_memory_order(manifold, rng):
    point = manifold.random_point(rng)
    a, b = rng.standard_normal(point.shape), rng.standard_normal(point.shape)
    expected = sum(a[i, j] * b[i, j] for i in range(a.shape[0]) for j in range(a.shape[1]))
    for left in (a, np.asfortranarray(a)):
        assert manifold.norm(point, left) == pytest.approx(np.linalg.norm(a), rel=ROUNDING)
        for right in (b, np.asfortranarray(b)):
            assert manifold.inner_product(point, left, right) == pytest.approx(
                expected, abs=ROUNDING * a.size
            )
    assert type(manifold.inner_product(point, a, b)) is type(manifold.norm(point, a)) is float


def test_pair_mean_is_half_way(manifold, rng):
    a, b = manifold.random_point(rng), manifold.random_point(rng)
    mean = manifold.pair_mean(a, b)
    half = manifold.dist(a, b) / 2
    assert manifold.dist(a, mean) == pytest.approx(half, rel=ROUNDING)
    assert manifold.dist(mean, b) == pytest.approx(half, rel=ROUNDING)
    np.testing.assert_allclose(angles(mean), 1, atol=ROUNDING)
    assert manifold.dist(mean, manifold.pair_mean(b, a)) == pytest.approx(0, abs=ROUNDING)


def quartic(rng, m, k):
    """A function that ignores signs, Σ (aᵢᵀd)⁴ over all atoms d, with its Euclidean derivatives."""
    A = rng.standard_normal((m + 1, m)) / np.sqrt(m)
    value = lambda D: np.sum((A @ D) ** 4)
    gradient = lambda D: 4 * A.T @ (A @ D) ** 3
    hessian = lambda D, E: 12 * A.T @ ((A @ D) ** 2 * (A @ E))
    return value, gradient, hessian


@pytest.mark.parametrize("move", ["exp", "retraction"])
def test_gradient_and_hessian_give_the_taylor_expansion(manifold, rng, move):
    point = manifold.random_point(rng)
    vector = within_reach(manifold, point, rng)
    value, gradient, hessian = quartic(rng, *point.shape)
    move = getattr(manifold, move)

    f = value(point)
    riemannian = manifold.euclidean_to_riemannian_gradient(point, gradient(point))
    first = manifold.inner_product(point, riemannian, vector)
    product = manifold.euclidean_to_riemannian_hessian(point, gradient(point), hessian(point, vector), vector)
    second = manifold.inner_product(point, product, vector)

    steps = np.logspace(-2, -3.5, 7)  # remainders stay above 1e-11, rounding is below 1e-13
    moved = np.array([value(move(point, t * vector)) - f for t in steps])
    # A wrong gradient would show as slope 1, a wrong Hessian as slope 2. The coefficients are random, and the
    # next order is worth up to a few percent at t = 0.01.
    assert slope(abs(moved - steps * first - steps**2 / 2 * second), steps) == pytest.approx(3, abs=0.1)


def test_hessian_is_symmetric_and_tangent(manifold, rng):
    point = manifold.random_point(rng)
    u, v = within_reach(manifold, point, rng), within_reach(manifold, point, rng)
    _, gradient, hessian = quartic(rng, *point.shape)
    Hu = manifold.euclidean_to_riemannian_hessian(point, gradient(point), hessian(point, u), u)
    Hv = manifold.euclidean_to_riemannian_hessian(point, gradient(point), hessian(point, v), v)
    scale = np.linalg.norm(Hu) * np.linalg.norm(v)
    assert manifold.inner_product(point, Hu, v) == pytest.approx(
        manifold.inner_product(point, u, Hv), abs=ROUNDING * scale
    )
    np.testing.assert_allclose((point * Hu).sum(axis=0), 0, atol=ROUNDING * scale)


def test_atoms_with_zero_tangent_vectors_do_not_move(manifold, rng):
    point = manifold.random_point(rng)
    zero = manifold.zero_vector(point)
    np.testing.assert_allclose(manifold.exp(point, zero), point, rtol=1e-15)  # one renormalisation
    np.testing.assert_array_equal(manifold.log(point, point), zero)

    vector = within_reach(manifold, point, rng)
    vector[:, 0] = 0
    np.testing.assert_allclose(manifold.exp(point, vector)[:, 0], point[:, 0], rtol=1e-15)


@pytest.mark.parametrize("angle", [1e-4, 1e-10, 1e-14, 1e-100])
def test_tiny_angles_keep_their_digits(factory, angle):
    """One atom turns by `angle` off a coordinate axis, where rounding does not blur the input."""
    manifold = factory(3, 2)
    point = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    vector = np.array([[0.0, 0.0], [angle, 0.0], [0.0, 0.0]])
    turned = manifold.exp(point, vector)
    assert manifold.dist(point, turned) == pytest.approx(angle, rel=1e-14)
    np.testing.assert_allclose(manifold.log(point, turned), vector, rtol=1e-14)


def test_tiny_angles_between_random_atoms(manifold, rng):
    """Rounding moves a unit vector by 1e-16, so of an angle of 1e-10 six digits can be had."""
    point = manifold.random_point(rng)
    vector = manifold.random_tangent_vector(point, rng)
    vector *= 1e-10 / angles(vector)
    turned = manifold.exp(point, vector)
    assert manifold.dist(point, turned) == pytest.approx(manifold.norm(point, vector), rel=1e-5)
    np.testing.assert_allclose(manifold.log(point, turned), vector, atol=1e-15)
