"""`check_gradient` and `check_hessian`: right derivatives pass, wrong ones are named."""

import math

import autograd.numpy as anp
import numpy as np
import pymanopt
import pytest
from pymanopt.manifolds import Euclidean, Grassmann, Oblique, Product, Sphere

import manifold_dl as mdl
from manifold_dl import manifolds, regularizers
from manifold_dl.diagnostics import (
    CheckFailed,
    check_gradient,
    check_hessian,
    check_manifold,
)


@pytest.mark.parametrize("name", ["Spheres", "Lines", "NonNegative", "Orthonormal", "ZeroMean", "Euclidean"])
def test_derivatives_of_the_dictionary_problem_are_right_on_every_manifold(name):
    problem = dictionary_problem(manifold=getattr(manifolds, name))
    assert check_gradient(problem).slope == pytest.approx(2, abs=0.1)
    assert check_hessian(problem).slope == pytest.approx(3, abs=0.1)


def dictionary_problem(dtype=float, **settings):
    _, X, Y = mdl.datasets.synthetic(8, 6, 60, sparsity=2, rng=0)
    settings = {"mu": 0.1, "regularizers": [regularizers.Coherence(0.1)], **settings}
    return mdl.update_problem(Y.astype(dtype), X, **settings)


def cubic(manifold, gradient=3.0, hessian=6.0, twist=0.0):
    """Σ a x³, with factors in its derivatives that may be wrong, and a part that makes the Hessian askew."""
    A = np.random.default_rng(0).standard_normal(manifold.random_point(0).shape)
    function = pymanopt.function.numpy(manifold)
    return pymanopt.Problem(
        manifold,
        function(lambda X: np.sum(A * X**3)),
        euclidean_gradient=function(lambda X: gradient * A * X**2),
        euclidean_hessian=function(lambda X, E: hessian * A * X * E + twist * np.roll(E, 1, axis=0)),
    )


SPHERES = manifolds.Spheres(5, 3)


def test_right_derivatives_have_slopes_two_and_three():
    problem = cubic(SPHERES)
    first, second = check_gradient(problem), check_hessian(problem)
    assert first.slope == pytest.approx(2, abs=0.05)
    assert second.slope == pytest.approx(3, abs=0.05)
    assert "The gradient is right" in str(first)
    assert "The Hessian is right" in repr(second)
    assert len(first.t) == len(first.remainders)


@pytest.mark.parametrize("error", [1.0, 1e-2, 1e-3])
def test_wrong_gradient_fails_with_its_slope(error):
    with pytest.raises(
        CheckFailed, match=r"The gradient is wrong: .* slope 1\.\d+, and 2 was expected"
    ) as caught:
        check_gradient(cubic(SPHERES, gradient=3 + error))
    assert not caught.value.report
    assert caught.value.report.slope == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("error", [1.0, 0.1, 0.01])
def test_wrong_hessian_fails_with_its_slope(error):
    with pytest.raises(CheckFailed, match=r"The Hessian is wrong: .* slope .*, and 3 was expected") as caught:
        check_hessian(cubic(SPHERES, hessian=6 + error))
    assert caught.value.report.slope == pytest.approx(2, abs=0.1)


def test_hessian_that_is_not_symmetric_fails():
    with pytest.raises(AssertionError, match="The Hessian is not symmetric"):
        check_hessian(cubic(SPHERES, twist=0.1))


def test_check_hessian_reports_a_wrong_gradient_as_such():
    with pytest.raises(AssertionError, match="The gradient is wrong"):
        check_hessian(cubic(SPHERES, gradient=4.0))


def test_check_hessian_finds_a_gradient_with_wrong_last_digits():
    problem = cubic(SPHERES, gradient=3 * (1 + 1e-7))
    assert check_gradient(problem)
    with pytest.raises(AssertionError, match=r"The gradient is slightly wrong: the second-order .* slope"):
        check_hessian(problem)


def test_gradient_that_is_not_tangent_fails():
    cost = pymanopt.function.numpy(SPHERES)(lambda X: np.sum(X[0]))
    gradient = pymanopt.function.numpy(SPHERES)(lambda X: np.eye(5, 3))
    with pytest.raises(AssertionError, match="The Riemannian gradient is not tangent"):
        check_gradient(pymanopt.Problem(SPHERES, cost, riemannian_gradient=gradient))


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_quadratic_cost_with_remainders_of_rounding_only_passes(scale):
    flat = Euclidean(4)
    A = scale * np.diag([1.0, 2.0, 3.0, -4.0])
    function = pymanopt.function.numpy(flat)
    problem = pymanopt.Problem(
        flat,
        function(lambda x: x @ A @ x + scale * x[0]),
        euclidean_gradient=function(lambda x: 2 * A @ x + scale * np.eye(4)[0]),
        euclidean_hessian=function(lambda x, e: 2 * A @ e),
    )
    assert check_gradient(problem).slope == pytest.approx(2, abs=0.05)
    report = check_hessian(problem)
    assert report.slope == math.inf
    assert "exact" in report.verdict


def test_constant_cost_passes():
    function = pymanopt.function.numpy(SPHERES)
    zero = function(lambda X: 0 * X)
    problem = pymanopt.Problem(SPHERES, function(lambda X: 7.0), euclidean_gradient=zero)
    assert check_gradient(problem).slope == math.inf


def test_derivatives_at_an_exact_fit_pass():
    # At the minimum value and slope are zero up to rounding, and all thresholds have to be relative.
    D, X, Y = mdl.datasets.synthetic(16, 32, 200, sparsity=4, rng=0)
    problem = mdl.update_problem(Y, X)
    assert check_gradient(problem, D)
    assert check_hessian(problem, D)


def test_gradient_passes_in_single_precision_and_hessian_is_refused():
    problem = dictionary_problem(np.float32)
    point = problem.manifold.random_point(0)
    assert check_gradient(problem, point)
    assert check_gradient(problem, point.astype(np.float32))
    with pytest.raises(ValueError, match="single precision"):
        check_hessian(problem, point)


def test_euclidean_gradient_may_be_wrong_normal_to_the_manifold():
    problem = cubic(SPHERES)
    cost = pymanopt.function.numpy(SPHERES)(lambda X: problem.cost(X))
    tangent = pymanopt.function.numpy(SPHERES)(lambda X: SPHERES.projection(X, problem.euclidean_gradient(X)))
    hessian = pymanopt.function.numpy(SPHERES)(lambda X, E: problem.euclidean_hessian(X, E))
    projected = pymanopt.Problem(SPHERES, cost, euclidean_gradient=tangent, euclidean_hessian=hessian)
    assert check_gradient(projected)
    with pytest.raises(
        AssertionError, match="The Hessian is wrong"
    ):  # the curvature of the sphere is missing
        check_hessian(projected)


def test_large_points_and_costs_with_a_bounded_domain_pass():
    flat = Euclidean(3)
    function = pymanopt.function.numpy(flat)
    barrier = pymanopt.Problem(
        flat,
        function(lambda x: -np.sum(np.log(x))),
        euclidean_gradient=function(lambda x: -1 / x),
        euclidean_hessian=function(lambda x, e: e / x**2),
    )
    assert check_hessian(barrier, np.array([0.01, 1.0, 2.0]))
    square = pymanopt.Problem(flat, function(lambda x: x @ x), euclidean_gradient=function(lambda x: 2 * x))
    assert check_gradient(square, np.full(3, 1e40))
    with pytest.raises(AssertionError, match="The value at the point is nan"):
        check_gradient(barrier, np.array([-1.0, 1.0, 1.0]))


def test_autograd_backend_and_product_manifolds_pass():
    both = Product([Sphere(3), Oblique(4, 2)])

    @pymanopt.function.autograd(both)
    def cost(x, Q):
        return anp.sum(x**3) + anp.sum(Q[:3] ** 3 * x[:, None])

    assert check_gradient(pymanopt.Problem(both, cost))
    assert check_hessian(pymanopt.Problem(both, cost))
    grassmann = Grassmann(5, 2)
    A = np.diag(np.arange(5.0))
    cost = pymanopt.function.autograd(grassmann)(lambda Q: anp.trace(Q.T @ A @ Q))
    assert check_hessian(pymanopt.Problem(grassmann, cost))


def test_checks_are_repeatable_and_leave_the_global_generator_alone():
    problem = cubic(SPHERES)
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what is being watched
    foreign = [check_manifold(Oblique(4, 3), rng=5), check_manifold(Oblique(4, 3), rng=5)]
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert foreign[0] == foreign[1]
    np.testing.assert_array_equal(check_gradient(problem).remainders, check_gradient(problem).remainders)
    assert check_gradient(problem, rng=1).slope != check_gradient(problem, rng=2).slope


def test_direction_of_any_positive_length_gives_the_same_slope():
    problem = cubic(SPHERES)
    x = SPHERES.random_point(0)
    v = SPHERES.random_tangent_vector(x, 1)
    assert check_gradient(problem, x, 1e6 * v).slope == pytest.approx(check_gradient(problem, x, v).slope)
    with pytest.raises(ValueError, match="direction has length 0"):
        check_gradient(problem, x, 0 * v)
    with pytest.raises(ValueError, match="give the point as well"):
        check_gradient(problem, direction=v)


def test_plot_draws_remainders_and_expected_slope():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert check_hessian(cubic(SPHERES)).plot(ax) is ax
    assert len(ax.lines) == 2
    with pytest.raises(CheckFailed) as caught:
        check_gradient(cubic(SPHERES, gradient=4.0))
    assert "slope 1.00" in caught.value.report.plot(Figure().subplots()).get_legend().texts[0].get_text()
