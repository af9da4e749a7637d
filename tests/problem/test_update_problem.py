"""The update as a Pymanopt problem: derivatives, geodesics, Pymanopt's optimizers, invariances, records."""

from itertools import pairwise

import numpy as np
import pytest
from problem_cases import (
    D_,
    MANIFOLDS,
    OPTIMIZERS,
    SETS,
    N,
    both_manifolds,
    both_ridges,
    draw,
    every_penalty,
    every_set,
    make,
    steps,
)
from pymanopt.manifolds import Euclidean
from pymanopt.optimizers import ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions

from manifold_dl import update_problem
from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.manifolds import Lines, Spheres
from manifold_dl.regularizers import Coherence


def slope(errors, steps):
    """The order of errors ~ steps**order, by least squares on logarithmic axes."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@both_ridges
@every_set
@every_penalty
@both_manifolds
def test_taylor_remainders(rng, mu, atoms, penalties, manifold):
    problem, point, U = make(rng, atoms, mu=mu, regularizers=penalties, manifold=manifold)
    f, gradient = problem.cost(point), problem.riemannian_gradient(point)
    first = problem.manifold.inner_product(point, gradient, U)
    second = problem.manifold.inner_product(point, problem.riemannian_hessian(point, U), U)
    # Below 1e-3 the third-order remainder, t³ ~ 1e-9 of the value, begins to meet its rounding; far above
    # 1e-2 the fourth order meets the third.
    steps = np.geomspace(1e-3, 1e-2, 9)
    rises = np.array([problem.cost(problem.manifold.exp(point, t * U)) for t in steps]) - f
    assert slope(np.abs(rises - first * steps), steps) == pytest.approx(2, abs=0.1)
    assert slope(np.abs(rises - first * steps - second / 2 * steps**2), steps) == pytest.approx(3, abs=0.1)


@every_set
def test_taylor_remainder_of_fixed_codes(rng, atoms):
    problem, point, U = make(rng, atoms, codes="fixed")
    f, gradient = problem.cost(point), problem.riemannian_gradient(point)
    first = problem.manifold.inner_product(point, gradient, U)
    second = problem.manifold.inner_product(point, problem.riemannian_hessian(point, U), U)
    steps = np.geomspace(3e-3, 3e-2, 9)
    rises = np.array([problem.cost(problem.manifold.exp(point, t * U)) for t in steps]) - f
    assert slope(np.abs(rises - first * steps), steps) == pytest.approx(2, abs=0.1)
    assert slope(np.abs(rises - first * steps - second / 2 * steps**2), steps) == pytest.approx(3, abs=0.1)


@both_ridges
@every_set
@every_penalty
def test_the_hessian_is_symmetric(rng, mu, atoms, penalties):
    problem, point, U = make(rng, atoms, mu=mu, regularizers=penalties)
    V = problem.manifold.random_tangent_vector(point, rng)
    HU, HV = problem.riemannian_hessian(point, U), problem.riemannian_hessian(point, V)
    assert np.vdot(U, HV) == pytest.approx(np.vdot(V, HU), abs=1e-12 * np.linalg.norm(HU))


@both_ridges
@every_set
@every_penalty
@both_manifolds
def test_phi_is_the_cost_along_the_geodesic(rng, mu, atoms, penalties, manifold):
    problem, point, U = make(rng, atoms, mu=mu, regularizers=penalties, manifold=manifold)
    U = 2.5 * U  # φ is a function of t, whatever the length of the direction
    U[:, 0] *= len(atoms) == 1  # an atom at rest
    phi = problem.cost.restrict(point, U)
    for t in (0.0, 1e-6, 0.02, -0.3, 1.0, 40.0):
        moved = problem.manifold.exp(point, t * U)
        # Normal equations with a condition number of up to 1e3 for three random atoms, and a turn of up to
        # 100 radians, whose rounding is multiplied by the slope.
        assert phi(t) == pytest.approx(problem.cost(moved), rel=1e-11)
        # Central differences: h² of truncation against 1e-16/h of rounding.
        h = 1e-5
        difference = (phi(t + h) - phi(t - h)) / (2 * h)
        assert phi.derivative(t) == pytest.approx(difference, rel=1e-6, abs=1e-6 * phi(t))
    assert phi.derivative(0.0) == pytest.approx(np.vdot(problem.riemannian_gradient(point), U), rel=1e-11)


def test_phi_of_fixed_codes(rng):
    problem, point, U = make(rng, SETS["three"], codes="fixed", regularizers=[Coherence(3.0)])
    phi, h = problem.cost.restrict(point, U), 1e-5
    for t in (0.0, 0.7):
        assert phi(t) == pytest.approx(problem.cost(problem.manifold.exp(point, t * U)), rel=1e-13)
        assert phi.derivative(t) == pytest.approx((phi(t + h) - phi(t - h)) / (2 * h), rel=1e-7)


def test_a_direction_of_length_zero(rng):
    problem, point, U = make(rng, SETS["three"], mu=0.1)
    phi = problem.restrict(point, 0 * U)
    assert phi(0.3) == pytest.approx(problem.cost(point), rel=1e-14) and phi.derivative(0.3) == 0


def test_phi_where_atoms_collide():
    # Two atoms of one support meet at t = 1 and μ = 0: the codes run to infinity, then the rank drops.
    rng = np.random.default_rng(1)
    problem = update_problem(rng.standard_normal((5, 30)), np.ones((2, 30), bool))
    point = problem.manifold.random_point(rng)
    target = point[:, [1, 1]]
    phi = problem.restrict(point, problem.manifold.log(point, target))
    at_target = problem.cost(target)
    assert problem.counts.rank_deficient == 30
    assert phi(1.0) == pytest.approx(at_target, rel=1e-12)
    # Close to the collision the span of the two, and so f, hardly changes; whatever the codes do.
    nearby = [phi(1 - gap) for gap in (1e-2, 1e-3, 1e-5, 1e-7)]
    assert np.isfinite(nearby).all() and max(nearby) / min(nearby) < 1.05
    assert at_target > max(nearby)  # a line fits less than a plane


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("manifold", MANIFOLDS.values(), ids=MANIFOLDS)
@pytest.mark.parametrize("name", OPTIMIZERS)
@both_ridges
def test_stock_optimizers_run(rng, name, manifold, mu):
    Y, X, _ = draw(rng, m=5, d=4, n=40)
    problem = update_problem(Y, X, manifold=manifold, mu=mu, regularizers=[Coherence(0.1)])
    start = problem.manifold.random_point()
    result = OPTIMIZERS[name].run(problem, initial_point=start)
    assert result.cost == problem.cost(result.point) < problem.cost(start)
    if manifold is not Euclidean:
        columns = np.linalg.norm(result.point, axis=0)
        np.testing.assert_allclose(columns, 1, atol=1e-13)  # Oblique does not renormalise: eight roundings
    np.testing.assert_array_equal(problem.codes(result.point).toarray() != 0, X != 0)


# Pymanopt's Nelder-Mead refuses every simplex of the right size, so both draw their own points. Its Oblique
# has no logarithm of equal points, and its Stiefel none at all: not for a particle swarm.
@pytest.mark.parametrize("manifold", [Spheres, Lines, Euclidean])
@pytest.mark.parametrize(
    "optimizer",
    [steps(NelderMead), steps(ParticleSwarm, 4, population_size=10)],
    ids=["simplex", "swarm"],
)
@both_ridges
def test_stock_optimizers_without_derivatives_run(rng, seeded, optimizer, manifold, mu):
    Y, X, _ = draw(rng, m=5, d=4, n=40)
    problem = update_problem(Y, X, manifold=manifold, mu=mu, regularizers=[Coherence(0.1)])
    size = 10 if isinstance(optimizer, ParticleSwarm) else problem.manifold.dim + 1
    start = [problem.manifold.random_point() for _ in range(size)]
    seeded()  # so that the optimizer draws the same points
    result = optimizer.run(problem)
    assert problem.cost(result.point) <= min(problem.cost(point) for point in start)
    assert problem.record == [] and problem.counts.gradient == 0  # they never asked


@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient])
@pytest.mark.parametrize("searcher", [GoldenSection(), WolfeSearch()], ids=["golden", "wolfe"])
@every_penalty
def test_descent_is_monotone(rng, optimizer, searcher, penalties):
    Y, X, D = draw(rng)
    problem = update_problem(Y, X, mu=0.01, regularizers=penalties)
    optimizer(line_searcher=searcher, max_iterations=12, verbosity=0).run(problem, initial_point=D)
    values = [iterate.value for iterate in problem.record]
    assert len(values) == 12
    assert all(later < earlier for earlier, later in pairwise(values))


def test_trust_region_converges_quadratically_to_a_critical_point(rng):
    Y, X, D = draw(rng)
    problem = update_problem(Y, X, mu=0.1)
    TrustRegions(max_iterations=100, min_gradient_norm=1e-10, verbosity=0).run(problem, initial_point=D)
    norms = [iterate.gradient_norm for iterate in problem.record]
    # An inexact Hessian would converge linearly: here the last steps each gain more than three digits.
    assert norms[-1] < 1e-10 * problem.scale
    assert norms[-2] < 1e-3 * norms[-3] or norms[-1] < 1e-3 * norms[-2]


@both_ridges
def test_signs_of_atoms_do_not_matter(rng, mu):
    Y, X, D = draw(rng)
    signs = rng.choice([-1.0, 1.0], D_)
    problem = update_problem(Y, X, mu=mu, regularizers=[Coherence(0.5)])
    U = problem.manifold.random_tangent_vector(D, rng)
    # A change of sign is exact, so all bits agree but those of the penalty, whose BLAS may add otherwise.
    exact = {"rtol": 1e-14, "atol": 1e-13}
    np.testing.assert_allclose(problem.cost(signs * D), problem.cost(D), rtol=1e-15)
    expected = problem.riemannian_gradient(D)
    np.testing.assert_allclose(problem.riemannian_gradient(signs * D), signs * expected, **exact)
    expected = problem.riemannian_hessian(D, U)
    np.testing.assert_allclose(problem.riemannian_hessian(signs * D, signs * U), signs * expected, **exact)
    expected = problem.codes(D).toarray()
    np.testing.assert_array_equal(problem.codes(signs * D).toarray(), signs[:, None] * expected)


@both_ridges
def test_order_of_atoms_does_not_matter(rng, mu):
    Y, X, D = draw(rng)
    order = rng.permutation(D_)
    one = update_problem(Y, X, mu=mu, regularizers=[Coherence(0.5)])
    # Permuted everywhere; and named in another order in `atoms`, with the support left as it is.
    others = [
        update_problem(Y, X[order], mu=mu, regularizers=[Coherence(0.5)]),
        update_problem(Y, X, mu=mu, regularizers=[Coherence(0.5)], atoms=order, dictionary=D),
    ]
    U = one.manifold.random_tangent_vector(D, rng)
    for other in others:
        # Cholesky in another order, for supports with condition numbers of up to 1e3.
        assert other.cost(D[:, order]) == pytest.approx(one.cost(D), rel=1e-13)
        expected = one.riemannian_gradient(D)[:, order]
        np.testing.assert_allclose(other.riemannian_gradient(D[:, order]), expected, rtol=0, atol=1e-10)
        expected = one.riemannian_hessian(D, U)[:, order]
        np.testing.assert_allclose(
            other.riemannian_hessian(D[:, order], U[:, order]), expected, rtol=0, atol=1e-9
        )
    codes = one.codes(D).toarray()
    np.testing.assert_allclose(others[0].codes(D[:, order]).toarray(), codes[order], rtol=0, atol=1e-11)
    np.testing.assert_allclose(others[1].codes(D[:, order]).toarray(), codes, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(others[1].dictionary(D[:, order]), D)


@both_ridges
def test_order_of_signals_does_not_matter(rng, mu):
    Y, X, D = draw(rng)
    order = rng.permutation(N)
    one, other = update_problem(Y, X, mu=mu), update_problem(Y[:, order], X[:, order], mu=mu)
    # Sums of N numbers in another order.
    assert other.cost(D) == pytest.approx(one.cost(D), rel=1e-13)
    np.testing.assert_allclose(other.riemannian_gradient(D), one.riemannian_gradient(D), rtol=0, atol=1e-11)
    np.testing.assert_array_equal(other.codes(D).toarray(), one.codes(D).toarray()[:, order])


def test_layout_of_the_arrays_does_not_matter(rng):
    Y, X, D = draw(rng)
    one = update_problem(np.asfortranarray(Y), X)
    other = update_problem(np.ascontiguousarray(Y), X)
    strided = update_problem(np.repeat(Y, 2, axis=1)[:, ::2], X)
    for problem in (other, strided):
        assert problem.cost(np.ascontiguousarray(D)) == one.cost(np.asfortranarray(D))
        np.testing.assert_array_equal(problem.riemannian_gradient(D), one.riemannian_gradient(D))


def test_support_of_the_atoms(rng):
    Y, X, D = draw(rng)
    I = [7, 0, 4]
    problem = update_problem(Y, X, atoms=I, dictionary=D)
    np.testing.assert_array_equal(problem.support.toarray(), (X != 0)[I])
    np.testing.assert_array_equal(update_problem(Y, X).support.toarray(), X != 0)


def test_all_atoms_in_another_order_are_a_permutation():
    rng = np.random.default_rng(0)
    Y, mask = rng.standard_normal((5, 60)), rng.random((6, 60)) < 0.4
    D, order = Spheres(5, 6).random_point(rng), np.array([5, 0, 3, 2, 4, 1])
    problem, permuted = update_problem(Y, mask, mu=0.1), update_problem(Y, mask, mu=0.1, atoms=order)
    assert permuted.cost(D[:, order]) == pytest.approx(problem.cost(D), rel=1e-13)
    np.testing.assert_allclose(
        permuted.codes(D[:, order]).toarray(), problem.codes(D).toarray(), rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(permuted.dictionary(D[:, order]), D)
