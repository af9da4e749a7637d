"""`Spheres` and `Lines` as Pymanopt manifolds: dtypes, generators, copies, shapes and optimizers."""

import copy
import pickle

import numpy as np
import pymanopt
import pytest
from manifold_samples import (
    SHAPES,
)
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

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


def test_draws_with_rng_leave_the_global_generator_alone_and_draws_without_use_it(manifold):
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


def test_repr_and_dimension_are_the_same_after_copy_and_pickle(manifold):
    m, k = manifold.random_point(0).shape
    assert repr(manifold) == str(manifold) == f"{type(manifold).__name__}({m}, {k})"
    assert manifold.dim == (m - 1) * k
    for twin in (copy.deepcopy(manifold), pickle.loads(pickle.dumps(manifold))):
        assert repr(twin) == repr(manifold)


@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient, TrustRegions])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_optimizers_find_the_leading_singular_vector_in_the_dtype_of_the_start(
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
