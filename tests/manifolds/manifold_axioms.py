"""What optimizers rely on in a manifold of m×k dictionaries, one function for one axiom.

Every axiom takes a `Scene` and asserts; those about maps that the manifold does not have return early. Only
Pymanopt's own methods are used (and `closest`, where there is one). Velocities are those of
``manifold.embedding``, because a manifold may write its tangent vectors in other coordinates than its points.
"""

from typing import Any, NamedTuple

import numpy as np

# A few roundings in sums of some dozens of terms of size one.
ROUNDING = 1e-12


class Scene(NamedTuple):
    """A manifold, a point, two tangent vectors there that log can find again, and another point in reach."""

    manifold: Any
    point: np.ndarray
    u: np.ndarray
    v: np.ndarray
    other: np.ndarray
    rng: np.random.Generator


def scene(manifold, seed=0, reach=0.5):
    """Random points and vectors of length `reach`, a number or a function of the point."""
    rng = np.random.default_rng(seed)
    point = manifold.random_point(rng)
    length = reach(point) if callable(reach) else reach
    u, v = (length * manifold.random_tangent_vector(point, rng) for _ in range(2))
    other = manifold.retraction(point, length * manifold.random_tangent_vector(point, rng))
    return Scene(manifold, point, u, v, other, rng)


def has(manifold, name, *arguments):
    """Whether a method is there: Pymanopt's manifolds raise NotImplementedError where one is not."""
    try:
        getattr(manifold, name)(*arguments)
    except NotImplementedError:
        return False
    return True


def slope(errors, steps):
    """The order of errors ~ steps**order, by least squares on logarithmic axes; ∞ for rounding alone."""
    errors = np.asarray(errors)
    if errors.max() < 1e-14:
        return np.inf
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


def random_directions_are_unit_tangents(s):
    vector = s.manifold.random_tangent_vector(s.point, s.rng)
    np.testing.assert_allclose(s.manifold.projection(s.point, vector), vector, atol=ROUNDING)
    np.testing.assert_allclose(s.manifold.norm(s.point, vector), 1, atol=ROUNDING)


def the_projection_is_linear_idempotent_and_orthogonal(s):
    project = lambda vector: s.manifold.projection(s.point, vector)
    a, b = s.rng.standard_normal(s.point.shape), s.rng.standard_normal(s.point.shape)
    np.testing.assert_allclose(project(project(a)), project(a), atol=ROUNDING)
    np.testing.assert_allclose(project(2 * a - b), 2 * project(a) - project(b), atol=ROUNDING)
    np.testing.assert_allclose(
        s.manifold.inner_product(s.point, a - project(a), project(b)), 0, atol=ROUNDING
    )


def the_tangent_space_has_dimension_dim(s):
    basis = np.eye(s.point.size).reshape(-1, *s.point.shape)
    images = [s.manifold.projection(s.point, e).ravel() for e in basis]
    assert np.linalg.matrix_rank(np.array(images), tol=1e-9) == s.manifold.dim


def the_inner_product_is_symmetric_bilinear_and_its_root_the_norm(s):
    inner = lambda a, b: s.manifold.inner_product(s.point, a, b)
    np.testing.assert_allclose(inner(s.u, s.v), inner(s.v, s.u), atol=ROUNDING)
    np.testing.assert_allclose(
        inner(2 * s.u - s.v, s.v), 2 * inner(s.u, s.v) - inner(s.v, s.v), atol=ROUNDING
    )
    np.testing.assert_allclose(s.manifold.norm(s.point, s.u) ** 2, inner(s.u, s.u), rtol=ROUNDING)


def moves_begin_at_the_point_and_leave_in_the_direction_given(s):
    steps = np.logspace(-1.5, -3, 7)
    velocity = s.manifold.embedding(s.point, s.u)
    for move in _moves(s):
        np.testing.assert_allclose(move(s.point, s.manifold.zero_vector(s.point)), s.point, atol=ROUNDING)
        errors = [np.linalg.norm(move(s.point, t * s.u) - s.point - t * velocity) for t in steps]
        assert slope(errors, steps) > 1.9  # a first-order error would show as 1


def moves_land_on_the_manifold(s):
    """Where the projection is one, as it is not off the manifold; and where `closest` has nothing to do."""
    for move in _moves(s):
        point = s.point
        for _ in range(50):  # rounding must not add up
            point = move(
                point, s.manifold.norm(s.point, s.u) * s.manifold.random_tangent_vector(point, s.rng)
            )
        a = s.manifold.projection(point, s.rng.standard_normal(point.shape))
        np.testing.assert_allclose(s.manifold.projection(point, a), a, atol=ROUNDING)
        if hasattr(s.manifold, "closest"):
            # 1e-5: NonNegative keeps its entries 1e-6 away from zero.
            np.testing.assert_allclose(s.manifold.closest(point), point, atol=1e-5)


def the_retraction_is_of_second_order(s):
    if not has(s.manifold, "exp", s.point, s.u):
        return
    steps = np.logspace(-0.5, -2, 7)
    errors = [
        np.linalg.norm(s.manifold.retraction(s.point, t * s.u) - s.manifold.exp(s.point, t * s.u))
        for t in steps
    ]
    assert slope(errors, steps) > 2.9


def geodesics_do_not_accelerate(s):
    """φ″(0) along exp is ⟨Hess f[v], v⟩ for every f, so no part of the acceleration is tangent."""
    if not has(s.manifold, "exp", s.point, s.u):
        return
    _taylor(s, s.manifold.exp)


def gradients_and_hessians_give_the_taylor_expansion(s):
    _taylor(s, s.manifold.retraction)


def hessians_are_symmetric_and_tangent(s):
    _, gradient, hessian = quartic(*s.point.shape)
    Hu, Hv = (_riemannian_hessian(s, gradient, hessian, w) for w in (s.u, s.v))
    np.testing.assert_allclose(s.manifold.projection(s.point, Hu), Hu, atol=ROUNDING * np.linalg.norm(Hu))
    left, right = s.manifold.inner_product(s.point, Hu, s.v), s.manifold.inner_product(s.point, s.u, Hv)
    np.testing.assert_allclose(left, right, atol=ROUNDING * np.linalg.norm(Hu))


def log_undoes_exp_and_exp_undoes_log(s):
    if not has(s.manifold, "log", s.point, s.other):
        return
    # 1e-7: Pymanopt's single spheres, which Columns repeats, have an arccos, and it keeps half of the digits.
    there = s.manifold.exp(s.point, s.u)
    np.testing.assert_allclose(s.manifold.log(s.point, there), s.u, atol=1e-7)
    arrived = s.manifold.exp(s.point, s.manifold.log(s.point, s.other))
    np.testing.assert_allclose(s.manifold.dist(arrived, s.other), 0, atol=1e-7)
    vector = s.manifold.log(s.point, s.other)
    np.testing.assert_allclose(s.manifold.projection(s.point, vector), vector, atol=ROUNDING)


def dist_is_a_metric_and_the_length_of_log(s):
    if not has(s.manifold, "dist", s.point, s.other):
        return
    dist = s.manifold.dist
    third = s.manifold.retraction(s.point, s.u)
    np.testing.assert_allclose(dist(s.point, s.point), 0, atol=1e-7)  # arccos again
    np.testing.assert_allclose(dist(s.point, s.other), dist(s.other, s.point), rtol=ROUNDING)
    assert dist(s.point, s.other) > 0
    assert dist(s.point, s.other) <= dist(s.point, third) + dist(third, s.other)
    length = s.manifold.norm(s.point, s.manifold.log(s.point, s.other))
    np.testing.assert_allclose(dist(s.point, s.other), length, rtol=1e-7)


def geodesics_have_constant_speed(s):
    if not has(s.manifold, "dist", s.point, s.other):
        return
    times = np.array([0.2, 0.5, 1.0])
    lengths = [s.manifold.dist(s.point, s.manifold.exp(s.point, t * s.u)) for t in times]
    np.testing.assert_allclose(lengths, times * s.manifold.norm(s.point, s.u), rtol=1e-7)


def pair_mean_is_half_way(s):
    if not has(s.manifold, "pair_mean", s.point, s.other):
        return
    mean, dist = s.manifold.pair_mean(s.point, s.other), s.manifold.dist
    np.testing.assert_allclose(dist(s.point, mean), dist(s.point, s.other) / 2, rtol=1e-7)
    np.testing.assert_allclose(dist(mean, s.other), dist(s.point, s.other) / 2, rtol=1e-7)


def transport_is_linear_tangent_and_continuous(s):
    carry = lambda vector, target: s.manifold.transport(s.point, target, vector)
    np.testing.assert_allclose(carry(s.u, s.point), s.u, atol=ROUNDING)
    carried = carry(s.u, s.other)
    np.testing.assert_allclose(s.manifold.projection(s.other, carried), carried, atol=ROUNDING)
    np.testing.assert_allclose(
        carry(2 * s.u - s.v, s.other), 2 * carried - carry(s.v, s.other), atol=ROUNDING
    )
    steps = np.logspace(-1, -4, 7)
    errors = [np.linalg.norm(carry(s.u, s.manifold.retraction(s.point, t * s.v)) - s.u) for t in steps]
    assert slope(errors, steps) > 0.95  # the difference is that of the tangent spaces, of first order


def float32_stays_float32(s):
    a, b = s.point.astype(np.float32), s.other.astype(np.float32)
    u = s.u.astype(np.float32)
    results = {
        "projection": s.manifold.projection(a, b.astype(float)),
        "gradient": s.manifold.euclidean_to_riemannian_gradient(a, b),
        "hessian": s.manifold.euclidean_to_riemannian_hessian(a, b, b, u),
        "retraction": s.manifold.retraction(a, np.float64(0.1) * u),
        "transport": s.manifold.transport(a, b, u),
        "zero_vector": s.manifold.zero_vector(a),
        "random_tangent_vector": s.manifold.random_tangent_vector(a, s.rng),
    }
    for name, arguments in {"exp": (a, u), "log": (a, b), "pair_mean": (a, b)}.items():
        if has(s.manifold, name, *arguments):
            results[name] = getattr(s.manifold, name)(*arguments)
    assert {name: array.dtype.name for name, array in results.items()} == dict.fromkeys(results, "float32")


def draws_depend_on_rng_alone(s):
    before = np.random.get_state()[1].copy()  # noqa: NPY002  (the global generator is what is being tested)
    point = s.manifold.random_point(7)
    vector = s.manifold.random_tangent_vector(point, 7)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(s.manifold.random_point(7), point)
    np.testing.assert_array_equal(s.manifold.random_tangent_vector(point, 7), vector)
    assert not np.array_equal(s.manifold.random_point(8), point)


def closest_is_on_the_manifold_and_closest(s):
    if not hasattr(s.manifold, "closest"):
        return
    np.testing.assert_array_equal(s.manifold.closest(s.point), s.point)
    anywhere = s.point + 0.3 * s.rng.standard_normal(s.point.shape)
    nearest = s.manifold.closest(anywhere)
    np.testing.assert_allclose(s.manifold.closest(nearest), nearest, atol=ROUNDING)
    # Small steps, where rivals are close, and 1e-5 for the distance that NonNegative keeps from zero.
    for length in (1e-2, 1e-1, 1.0):
        rival = s.manifold.retraction(nearest, length * s.manifold.random_tangent_vector(nearest, s.rng))
        assert np.linalg.norm(anywhere - nearest) <= np.linalg.norm(anywhere - rival) + 1e-5


AXIOMS = [
    random_directions_are_unit_tangents,
    the_projection_is_linear_idempotent_and_orthogonal,
    the_tangent_space_has_dimension_dim,
    the_inner_product_is_symmetric_bilinear_and_its_root_the_norm,
    moves_begin_at_the_point_and_leave_in_the_direction_given,
    moves_land_on_the_manifold,
    the_retraction_is_of_second_order,
    geodesics_do_not_accelerate,
    gradients_and_hessians_give_the_taylor_expansion,
    hessians_are_symmetric_and_tangent,
    log_undoes_exp_and_exp_undoes_log,
    dist_is_a_metric_and_the_length_of_log,
    geodesics_have_constant_speed,
    pair_mean_is_half_way,
    transport_is_linear_tangent_and_continuous,
    float32_stays_float32,
    draws_depend_on_rng_alone,
    closest_is_on_the_manifold_and_closest,
]


def quartic(m, k, seed=5):
    """Σ (aᵢᵀd)⁴ with weights that differ from atom to atom, and its Euclidean derivatives; blind to signs."""
    rng = np.random.default_rng(seed)
    A, weights = rng.standard_normal((m + 1, m)) / np.sqrt(m), rng.uniform(0.5, 1.5, k)
    value = lambda D: float(np.sum(weights * (A @ D) ** 4))
    gradient = lambda D: 4 * A.T @ (weights * (A @ D) ** 3)
    hessian = lambda D, E: 12 * A.T @ (weights * (A @ D) ** 2 * (A @ E))
    return value, gradient, hessian


def _moves(s):
    yield s.manifold.retraction
    if has(s.manifold, "exp", s.point, s.u):
        yield s.manifold.exp


def _riemannian_hessian(s, gradient, hessian, vector):
    product = hessian(s.point, s.manifold.embedding(s.point, vector))
    return s.manifold.euclidean_to_riemannian_hessian(s.point, gradient(s.point), product, vector)


def _taylor(s, move):
    """Remainders of order 2 without the Hessian and 3 with it, over a few directions together.

    Along a single one a coefficient may happen to vanish, and its order would be taken for a higher one.
    """
    value, gradient, hessian = quartic(*s.point.shape)
    riemannian = s.manifold.euclidean_to_riemannian_gradient(s.point, gradient(s.point))
    length = s.manifold.norm(s.point, s.v)
    more = [length * s.manifold.random_tangent_vector(s.point, s.rng) for _ in range(4)]
    # From 0.1 to 0.003 of a reach of some tenths: remainders of 1e-3 to 1e-10, well above rounding.
    steps = np.logspace(-1, -2.5, 7)
    first_order, second_order = [], []
    for v in (s.v, *more):
        first = s.manifold.inner_product(s.point, riemannian, v)
        second = s.manifold.inner_product(s.point, _riemannian_hessian(s, gradient, hessian, v), v)
        moved = np.array([value(move(s.point, t * v)) for t in steps]) - value(s.point)
        first_order.append(moved - steps * first)
        second_order.append(moved - steps * first - steps**2 / 2 * second)
    # The next order bends the fit by up to a few percent. A wrong gradient has slope 1, a wrong Hessian 2.
    np.testing.assert_allclose(slope(np.linalg.norm(first_order, axis=0), steps), 2, atol=0.15)
    np.testing.assert_allclose(slope(np.linalg.norm(second_order, axis=0), steps), 3, atol=0.2)
