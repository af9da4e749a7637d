"""The axioms of a Riemannian manifold, measured on every geometry of `manifold_dl.manifolds`.

The axioms themselves are in `manifold_axioms`, and hold for all. Next comes what `Spheres` and `Lines` add
to them, to the last digits and for every shape. The rest is about one manifold at a time.
"""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pymanopt
import pytest
from manifold_axioms import AXIOMS, scene
from pymanopt.manifolds import Elliptope, Grassmann, Product, Sphere, SphereSubspaceIntersection, Stiefel
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

from manifold_dl.manifolds import (
    Columns,
    Euclidean,
    Lines,
    NonNegative,
    Orthonormal,
    Spheres,
    SpheresWithin,
    Subspace,
    ZeroMean,
)

FACTORIES = [Spheres, Lines]
SHAPES = [(2, 1), (2, 5), (3, 4), (7, 1), (16, 32), (40, 60)]  # the last is past _dots' switch to einsum

# A handful of roundings in sums of up to 2400 terms of size one.
ROUNDING = 1e-13


@pytest.fixture(params=FACTORIES, ids=lambda factory: factory.__name__)
def factory(request):
    return request.param


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
def manifold(factory, request):
    return factory(*request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(20120131)


def angles(tangent_vector):
    return np.linalg.norm(tangent_vector, axis=0)


def within_reach(manifold, point, rng):
    """A tangent vector with columns shorter than π/2, so that log can find it again on either manifold."""
    vector = manifold.random_tangent_vector(point, rng)
    return vector * (rng.uniform(0.1, 1.5, vector.shape[1]) / angles(vector))


def slope(errors, steps):
    """The order of errors ~ steps**order, by least squares on logarithmic axes."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


def up_to_signs(points, reference):
    return points * np.copysign(1, (points * reference).sum(axis=0))


# The axioms, for all


BASIS = np.random.default_rng(3).standard_normal((6, 3))

# Every geometry in a small, a square (where it can be) and a single-atom shape.
EVERY_MANIFOLD = [
    *(
        factory(m, k)
        for factory in (Spheres, Lines, ZeroMean, NonNegative, Orthonormal, Euclidean)
        for m, k in [(5, 3), (4, 4), (5, 1)]
    ),
    Orthonormal(9, 2),
    Subspace(BASIS)(6, 4),
    Subspace(BASIS)(6, 1),
    Columns(Sphere)(5, 3),
    Columns(lambda m: Grassmann(m, 1))(4, 3),
    Columns(lambda m: NonNegative(m, 1))(4, 3),
]


def reach(point):
    """How long a tangent vector may be for log to find it: for non-negative atoms, half way to a wall."""
    return 0.5 * np.sqrt(point / point.sum(axis=0)).min() if (point >= 0).all() else 0.5


@pytest.mark.parametrize("axiom", AXIOMS, ids=lambda axiom: axiom.__name__)
@pytest.mark.parametrize("manifold", EVERY_MANIFOLD, ids=str)
def test_axiom(manifold, axiom):
    axiom(scene(manifold, seed=0, reach=reach))


# Spheres and lines, to the last digits


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
    arrived = manifold.exp(point, manifold.log(point, other))
    if isinstance(manifold, Lines):
        arrived = up_to_signs(arrived, other)
    np.testing.assert_allclose(arrived, other, atol=ROUNDING)


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


def test_steps_land_on_the_manifold_and_do_not_drift(manifold, rng):
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


def test_inner_products_are_of_matrices_of_one_shape():
    # Equal strides are not equal shapes: compiled code would read beyond the end.
    left, right = np.ones((8, 400), order="F"), np.ones((8, 3), order="F")
    with pytest.raises(ValueError, match="length"):
        Spheres(8, 400).inner_product(None, left, right)


def test_pair_mean_is_half_way(manifold, rng):
    a, b = manifold.random_point(rng), manifold.random_point(rng)
    mean = manifold.pair_mean(a, b)
    half = manifold.dist(a, b) / 2
    assert manifold.dist(a, mean) == pytest.approx(half, rel=ROUNDING)
    assert manifold.dist(mean, b) == pytest.approx(half, rel=ROUNDING)
    np.testing.assert_allclose(angles(mean), 1, atol=ROUNDING)
    assert manifold.dist(mean, manifold.pair_mean(b, a)) == pytest.approx(0, abs=ROUNDING)


def quartic(rng, m, k):
    """A function that does not mind signs, Σ (aᵢᵀd)⁴ over all atoms d, with its Euclidean derivatives."""
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


def test_resting_atoms_stay_where_they_are(manifold, rng):
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


def test_float32_stays_float32(manifold, rng):
    a, b = (manifold.random_point(rng).astype(np.float32) for _ in range(2))
    u = manifold.random_tangent_vector(a, rng)
    results = {
        "random_tangent_vector": u,
        "its global twin": manifold.random_tangent_vector(a),
        "zero_vector": manifold.zero_vector(a),
        "projection": manifold.projection(a, b),
        "gradient": manifold.euclidean_to_riemannian_gradient(a, b),
        "hessian": manifold.euclidean_to_riemannian_hessian(a, b, b, u),
        "exp": manifold.exp(a, u),
        "retraction": manifold.retraction(a, u),
        "transport": manifold.transport(a, b, u),
        "log": manifold.log(a, b),
        "log to the antipode": manifold.log(a, -a),
        "pair_mean": manifold.pair_mean(a, b),
        "scaled by the metric": u
        * manifold.inner_product(a, u, u)
        * manifold.norm(a, u)
        * manifold.dist(a, b),
        "float64 step, exp": manifold.exp(a, np.float64(0.1) * u),
        "float64 step, retraction": manifold.retraction(a, np.float64(0.1) * u),
        "float64 gradient": manifold.projection(a, b.astype(np.float64)),
        "float64 target": manifold.log(a, b.astype(np.float64)),
    }
    assert {name: array.dtype.name for name, array in results.items()} == dict.fromkeys(results, "float32")
    # The same formulas in float64 tell how right the digits are: a few times float32's 6e-8.
    np.testing.assert_allclose(results["exp"], manifold.exp(a.astype(float), u.astype(float)), atol=1e-6)


def test_a_generator_leaves_the_global_one_alone_and_none_uses_it(manifold):
    before = np.random.get_state()[1].copy()  # noqa: NPY002  (the global generator is what is being tested)
    point = manifold.random_point(rng=7)
    vector = manifold.random_tangent_vector(point, rng=7)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(manifold.random_point(rng=7), point)
    np.testing.assert_array_equal(manifold.random_tangent_vector(point, rng=7), vector)

    saved = np.random.get_state()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    expected = pymanopt.manifolds.Oblique(*point.shape).random_point()
    np.random.seed(3)  # noqa: NPY002
    np.testing.assert_array_equal(manifold.random_point(), expected)
    np.random.set_state(saved)  # noqa: NPY002


def test_copies_and_prints(manifold):
    m, k = manifold.random_point(0).shape
    assert repr(manifold) == str(manifold) == f"{type(manifold).__name__}({m}, {k})"
    assert manifold.dim == (m - 1) * k
    for twin in (copy.deepcopy(manifold), pickle.loads(pickle.dumps(manifold))):
        assert repr(twin) == repr(manifold)


@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient, TrustRegions])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_optimizers_reach_the_leading_singular_vector_in_the_dtype_they_began_with(
    factory, optimizer, dtype, rng
):
    """Every atom maximises ‖Aᵀd‖², so all of them end up at the same singular vector, up to sign."""
    left, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    A = (left * [3, 1, 0.7, 0.5, 0.3, 0.1]).astype(dtype)
    manifold = factory(6, 3)

    @pymanopt.function.numpy(manifold)
    def cost(D):
        assert D.dtype == dtype
        return -float(np.sum((A.T @ D) ** 2))

    @pymanopt.function.numpy(manifold)
    def gradient(D):
        return -2 * A @ (A.T @ D)

    @pymanopt.function.numpy(manifold)
    def hessian(D, E):
        return -2 * A @ (A.T @ E)

    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    start = manifold.random_point(rng).astype(dtype)
    point = (
        optimizer(verbosity=0, max_iterations=100, min_gradient_norm=1e-3)
        .run(problem, initial_point=start)
        .point
    )
    assert point.dtype == dtype
    # The Hessian's eigenvalues at the minimiser are 2(9 − σᵢ²) ≥ 16: a gradient of 1e-3 leaves an angle of
    # 1e-4 at most, and its cosine differs from 1 by half the square. Float32 rounds to 6e-8.
    np.testing.assert_allclose(abs(left[:, 0] @ point), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("m", "k", "sentence"),
    [
        (1, 3, "m=1: an atom needs .* has nowhere to move"),
        (0, 3, "m=0: an atom needs"),
        (2.0, 3, "m=2.0: an atom needs a whole number"),
        ("4", 3, "m='4'"),
        (4, 0, "k=0: a dictionary needs a whole number of atoms"),
        (4, -2, "k=-2"),
        (4, 1.5, "k=1.5"),
        (4, None, "k=None"),
    ],
)
def test_impossible_shapes_are_refused_with_a_sentence(factory, m, k, sentence):
    with pytest.raises(ValueError, match=sentence):
        factory(m, k)


def test_numpy_integers_are_integers(factory):
    assert repr(factory(np.int64(4), np.int32(2))) == f"{factory.__name__}(4, 2)"


# Spheres alone


@pytest.mark.parametrize("shape", SHAPES)
def test_spheres_agree_with_pymanopts_product_of_single_spheres(shape, rng):
    m, k = shape
    spheres, oracle = Spheres(m, k), Product([Sphere(m)] * k)
    x, y = spheres.random_point(rng), spheres.random_point(rng)
    V = within_reach(spheres, x, rng)
    columns = lambda array: list(array.T)
    # The oracle's arccos loses digits like 1/sin θ; among 60 random angles the smallest sine is about 0.01.
    tolerance = 1e-12
    assert spheres.dist(x, y) == pytest.approx(oracle.dist(columns(x), columns(y)), rel=tolerance)
    np.testing.assert_allclose(
        spheres.exp(x, V), np.stack(oracle.exp(columns(x), columns(V)), 1), atol=tolerance
    )
    np.testing.assert_allclose(
        spheres.log(x, y), np.stack(oracle.log(columns(x), columns(y)), 1), atol=tolerance
    )
    assert spheres.dim == oracle.dim
    assert spheres.typical_dist == pytest.approx(oracle.typical_dist)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_antipodal_atoms_are_half_a_circle_apart(shape, dtype, rng):
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
def test_nearly_antipodal_atoms_are_found_too(gap, rng):
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


def test_equal_opposite_and_ordinary_atoms_may_stand_side_by_side():
    spheres = Spheres(2, 3)
    x = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    y = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(spheres.log(x, y), [[0, 0, 0], [0, np.pi, np.pi / 2]], rtol=1e-15)
    assert spheres.dist(x, y) == pytest.approx(np.hypot(np.pi, np.pi / 2), rel=1e-15)


def test_atoms_with_whole_numbers_are_understood():
    """np.eye(2, dtype=int) is a fine dictionary to type; its tangents must not be rounded to integers."""
    spheres = Spheres(2, 1)
    x, y = np.array([[1], [0]]), np.array([[0], [1]])
    np.testing.assert_allclose(spheres.log(x, y), [[0], [np.pi / 2]], rtol=1e-15)
    np.testing.assert_allclose(spheres.retraction(x, y), [[0.5**0.5], [0.5**0.5]], rtol=1e-15)


# Lines alone


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
def lines(request):
    return Lines(*request.param)


def test_lines_agree_with_pymanopts_grassmannians(lines, rng):
    m, k = lines.random_point(rng).shape
    oracle = Grassmann(m, 1, k=k + 1)  # one more, because k = 1 has another layout there
    x, y = Lines(m, k + 1).random_point(rng), Lines(m, k + 1).random_point(rng)
    stacked = lambda array: array.T[:, :, np.newaxis]
    lines = Lines(m, k + 1)
    V = within_reach(lines, x, rng)
    # As for the spheres: the oracle's arccos and tangents lose digits like 1/sin θ and 1/cos θ.
    tolerance = 1e-11
    assert lines.dist(x, y) == pytest.approx(oracle.dist(stacked(x), stacked(y)), rel=tolerance)
    np.testing.assert_allclose(lines.log(x, y), oracle.log(stacked(x), stacked(y))[:, :, 0].T, atol=tolerance)
    moved = lines.exp(x, V)
    theirs = oracle.exp(stacked(x), stacked(V))[:, :, 0].T  # its QR picks the signs
    np.testing.assert_allclose(up_to_signs(theirs, moved), moved, atol=tolerance)
    assert lines.dim == oracle.dim


def test_lines_do_not_depend_on_their_representatives(lines, rng):
    a, b = lines.random_point(rng), lines.random_point(rng)
    v = within_reach(lines, a, rng)
    s, t = (rng.choice([-1.0, 1.0], size=a.shape[1]) for _ in range(2))  # other representatives, a s and b t
    assert lines.dist(a * s, b * t) == lines.dist(a, b)
    assert lines.dist(a, a * s) == 0
    np.testing.assert_allclose(lines.exp(a * s, v * s), lines.exp(a, v) * s, atol=ROUNDING)
    np.testing.assert_allclose(lines.log(a * s, b * t), lines.log(a, b) * s, atol=ROUNDING)
    np.testing.assert_allclose(
        lines.transport(a * s, b * t, v * s), lines.transport(a, b, v) * t, atol=ROUNDING
    )
    assert lines.dist(lines.pair_mean(a * s, b * t), lines.pair_mean(a, b)) == pytest.approx(0, abs=ROUNDING)


def test_lines_are_never_more_than_a_right_angle_apart(lines, rng):
    a, b = lines.random_point(rng), lines.random_point(rng)
    assert angles(lines.log(a, b)).max() <= np.pi / 2 * (1 + 1e-15)
    assert lines.dist(a, b) <= Spheres(*a.shape).dist(a, b)
    assert lines.typical_dist == pytest.approx(np.pi / 2 * np.sqrt(a.shape[1]))


def test_lines_at_a_right_angle_have_a_way_and_a_mean():
    lines = Lines(2, 1)
    x, y = np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])
    assert lines.dist(x, y) == pytest.approx(np.pi / 2, rel=1e-15)
    assert lines.dist(lines.exp(x, lines.log(x, y)), y) == pytest.approx(0, abs=1e-15)
    assert lines.dist(lines.pair_mean(x, y), x) == pytest.approx(np.pi / 4, rel=1e-15)


# Subspaces alone


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
def test_atoms_of_a_subspace_stay_in_it_for_long(manifold, rng):
    point = manifold.random_point(rng)
    for _ in range(500):
        point = manifold.exp(point, within_reach(manifold, point, rng))
    # One rounding of each of the two projections, not of 500.
    np.testing.assert_allclose(point, manifold.within(point), atol=1e-15)
    np.testing.assert_allclose(angles(point), 1, atol=1e-15)


@pytest.mark.parametrize(
    "manifold", [ZeroMean(3, 2), ZeroMean(6, 2), Subspace(np.eye(5)[:, 1:3])(5, 2)], ids=str
)
def test_antipodes_in_a_subspace_have_a_way_inside_it(manifold, rng):
    """The coordinate axis that Spheres would take may be orthogonal to the subspace."""
    point = np.repeat(manifold.random_point(rng)[:, :1], 2, axis=1)
    vector = manifold.log(point, -point)
    np.testing.assert_allclose(angles(vector), np.pi, rtol=1e-14)
    np.testing.assert_allclose(manifold.projection(point, vector), vector, atol=ROUNDING)
    np.testing.assert_allclose(manifold.exp(point, vector), -point, atol=1e-14)


def test_atoms_without_any_part_in_the_subspace_become_different_atoms_of_it():
    D = ZeroMean(4, 3).closest(np.ones((4, 3)))
    np.testing.assert_allclose(D.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(angles(D), 1, rtol=1e-15)
    assert np.abs(np.triu(D.T @ D, 1)).max() < 0.5  # -1/3 for the axes without their means
    np.testing.assert_array_equal(Spheres(3, 4).closest(np.zeros((3, 4))), np.eye(3)[:, [0, 1, 2, 0]])


@pytest.mark.parametrize("factory", [Spheres, Lines, ZeroMean, NonNegative, Orthonormal], ids=str)
def test_the_closest_point_does_not_depend_on_the_scale(factory, rng):
    """Squares of 1e200 overflow, and those of 1e-200 vanish."""
    D = rng.standard_normal((5, 3))
    nearest = factory(5, 3).closest(D)
    for scale in (1e200, 1e-200):
        np.testing.assert_allclose(factory(5, 3).closest(scale * D), nearest, rtol=1e-9, atol=1e-14)


def test_subspaces_compare_print_and_travel():
    factory = Subspace(BASIS)
    assert factory == Subspace(BASIS.copy()) != Subspace(BASIS[:, :2])
    assert hash(factory) == hash(Subspace(BASIS))
    assert pickle.loads(pickle.dumps(factory)) == copy.deepcopy(factory) == factory
    assert repr(factory) == "Subspace(<6×3 basis>)" and repr(factory(6, 2)) == "Subspace(<6×3 basis>)(6, 2)"
    assert isinstance(factory(6, 2), SpheresWithin) and isinstance(ZeroMean(4, 2), SpheresWithin)
    orthonormal = np.linalg.qr(BASIS)[0]
    np.testing.assert_array_equal(Subspace(orthonormal).basis, orthonormal)


# Orthonormal alone


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
def test_the_acceleration_of_a_geodesic_of_orthonormal_is_normal(shape, rng):
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


def test_random_orthonormal_matrices_prefer_no_sign():
    """Plain QR has negative diagonals of R nearly always; uniform ones average to zero."""
    draws = np.array([Orthonormal(3, 3).random_point(seed) for seed in range(400)])
    # Entries have variance 1/3: the mean of 400 has a standard deviation of 0.03, and there are nine.
    assert np.abs(draws.mean(axis=0)).max() < 0.12


# NonNegative alone


def test_roots_and_squares_are_inverse_and_unit(rng):
    manifold = NonNegative(5, 3)
    D = manifold.random_point(rng)
    w = manifold.root(D)
    np.testing.assert_allclose(angles(w), 1, atol=ROUNDING)
    np.testing.assert_allclose(manifold.square(w), D, atol=ROUNDING)
    np.testing.assert_array_equal(manifold.square(-w), manifold.square(w))


def test_a_geodesic_passes_a_wall_smoothly():
    """The entry falls to zero and comes back: no negative entry, and no kink in d."""
    manifold = NonNegative(2, 1)
    D = manifold.square(np.array([[np.cos(0.3)], [np.sin(0.3)]]))
    down = np.array([[np.sin(0.3)], [-np.cos(0.3)]])  # the root turns by t, and meets the wall at t = 0.3
    path = np.array([manifold.exp(D, t * down)[:, 0] for t in np.linspace(0, 0.6, 601)])
    assert path.min() >= 0
    assert path[300, 1] == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(path[-1], D[:, 0], atol=1e-12)  # as far behind the wall as it was before
    # Second differences of a smooth curve at steps of 1e-3 are 1e-6 times its acceleration, here below 10.
    assert np.abs(np.diff(path, 2, axis=0)).max() < 1e-5


def test_zeros_have_no_gradient_and_closest_leaves_them(rng):
    manifold = NonNegative(4, 1)
    D = np.array([[0.6], [0.8], [0.0], [0.0]])
    gradient = manifold.euclidean_to_riemannian_gradient(D, rng.standard_normal((4, 1)))
    np.testing.assert_array_equal(gradient[2:], 0)
    inside = manifold.closest(D)
    assert 0 < inside[2, 0] == pytest.approx(0.5e-6, rel=1e-6)
    np.testing.assert_allclose(inside, D, atol=1e-6)
    assert np.all(manifold.euclidean_to_riemannian_gradient(inside, rng.standard_normal((4, 1))) != 0)


def test_atoms_that_are_mostly_negative_are_turned_over():
    D = NonNegative(3, 2).closest(np.array([[-3.0, 3.0], [-4.0, -1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(D, [[0.6, 1], [0.8, 0], [0, 0]], atol=1e-6)


# Columns alone


@pytest.mark.parametrize(
    ("fast", "single"),
    [
        (Spheres, Sphere),
        (Lines, lambda m: Grassmann(m, 1)),
        (NonNegative, lambda m: NonNegative(m, 1)),
        (Euclidean, lambda m: Euclidean(m, 1)),
    ],
)
def test_columns_check_the_fast_ones(fast, single, rng):
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


def test_columns_offer_closest_only_where_an_atom_has_it(rng):
    assert not hasattr(Columns(Sphere)(4, 3), "closest")
    D = rng.standard_normal((4, 3))
    slow, fast = Columns(lambda m: ZeroMean(m, 1))(4, 3), ZeroMean(4, 3)
    np.testing.assert_allclose(slow.closest(D), fast.closest(D), atol=ROUNDING)


@pytest.mark.parametrize("manifold", EVERY_MANIFOLD, ids=str)
def test_every_manifold_is_printed_copied_and_of_the_shape_it_says(manifold):
    twins = [copy.deepcopy(manifold)]
    if "lambda" not in str(manifold):
        twins.append(pickle.loads(pickle.dumps(manifold)))
    for twin in twins:
        assert repr(twin) == str(manifold)
        np.testing.assert_array_equal(twin.random_point(1), manifold.random_point(1))
    m, k = manifold.random_point(0).shape
    assert str(manifold).endswith(f"({m}, {k})")


def test_columns_without_a_geodesic_say_so_without_a_warning(rng):
    class Bent(Sphere):
        """A sphere whose exp is missing, as that of some of Pymanopt's manifolds is."""

        def exp(self, point, tangent_vector):
            raise NotImplementedError("no exponential map")

    manifold = Columns(Bent)(4, 2)
    point = manifold.random_point(rng)
    with pytest.raises(NotImplementedError, match="no exponential map"):
        manifold.exp(point, point)


# Sentences


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
def test_what_cannot_be_is_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("factory", [ZeroMean, NonNegative, Orthonormal, Euclidean, Columns(Sphere)], ids=str)
def test_the_other_factories_refuse_impossible_shapes_too(factory):
    with pytest.raises(ValueError, match="m=1: an atom needs"):
        factory(1, 1)
    with pytest.raises(ValueError, match="k=0: a dictionary needs"):
        factory(4, 0)
    with pytest.raises(TypeError, match="Columns takes a factory"):
        Columns(3)


# The axioms notice


class FlatHessian(Spheres):
    """Forgets the curvature of the spheres."""

    def euclidean_to_riemannian_hessian(self, point, euclidean_gradient, euclidean_hessian, tangent_vector):
        return self.projection(point, euclidean_hessian)


class FirstOrder(Orthonormal):
    """Retracts by QR, which leaves the geodesic at second order."""

    def retraction(self, point, tangent_vector):
        return Stiefel(*point.shape, retraction="qr").retraction(point, tangent_vector)


class Drifting(ZeroMean):
    """Steps out of the subspace."""

    def retraction(self, point, tangent_vector):
        return Spheres.retraction(self, point, tangent_vector + 1e-3)


class DoubleGradient(Euclidean):
    """Is wrong by a factor."""

    def euclidean_to_riemannian_gradient(self, point, euclidean_gradient):
        return 2 * euclidean_gradient


@pytest.mark.parametrize(
    ("wrong", "noticed_by"),
    [
        (FlatHessian(5, 3), "gradients_and_hessians_give_the_taylor_expansion"),
        (FlatHessian(5, 3), "geodesics_do_not_accelerate"),
        (FirstOrder(5, 3), "the_retraction_is_of_second_order"),
        (Drifting(5, 3), "moves_land_on_the_manifold"),
        (DoubleGradient(5, 3), "gradients_and_hessians_give_the_taylor_expansion"),
    ],
)
def test_an_axiom_notices_what_is_wrong(wrong, noticed_by):
    (axiom,) = (axiom for axiom in AXIOMS if axiom.__name__ == noticed_by)
    with pytest.raises(AssertionError):
        axiom(scene(wrong, reach=reach))


@pytest.mark.parametrize("name", ["projection", "exp"])
def test_spheres_look_at_shapes_before_they_read(name):
    spheres = Spheres(3, 2)
    D = spheres.random_point(0)
    one = 0.1 * np.ones((3, 1))  # spreads over the columns, as in NumPy
    np.testing.assert_array_equal(
        getattr(spheres, name)(D, one), getattr(spheres, name)(D, np.tile(one, (1, 2)))
    )
    for shape in [(3, 5), (2, 2), (7, 2)]:
        with pytest.raises(ValueError, match="broadcast"):
            getattr(spheres, name)(D, np.ones(shape))


def test_spheres_in_other_precisions():
    D, V = (np.array([[0.6, 0.0], [0.8, 1.0]]), np.array([[-0.8, 0.3], [0.6, 0.0]]))
    for dtype in (np.float16, np.longdouble):
        moved = Spheres(2, 2).exp(D.astype(dtype), V.astype(dtype))
        assert moved.dtype == dtype
        np.testing.assert_allclose(moved.astype(float), Spheres(2, 2).exp(D, V), atol=2e-3)
