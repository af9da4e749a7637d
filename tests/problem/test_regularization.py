"""Regularizers inside a problem: minima, barriers, evaluations and dtypes."""

import autograd.numpy as anp
import numpy as np
import pytest
from penalty_definitions import every_penalty, penalty_for
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

from manifold_dl import (
    LBFGS,
    GoldenSection,
    WolfeSearch,
    metrics,
    update_problem,
)
from manifold_dl.manifolds import Spheres
from manifold_dl.regularizers import (
    Coherence,
    LogBarrierCoherence,
    Sparse,
    regularizer,
)

M, N_ATOMS, N = 8, 10, 200


def noisy_signals(seed=0):
    """Signals of two or three atoms each, with noise, and their dictionary."""
    rng = np.random.default_rng(seed)
    D = Spheres(M, N_ATOMS).random_point(rng)
    mask = rng.random((N_ATOMS, N)).argsort(axis=0) < 3
    return D @ (mask * rng.standard_normal((N_ATOMS, N))) + 0.1 * rng.standard_normal((M, N)), mask, D


def optimizers(max_iterations):
    # As tight as the rounding of sums of size 600 allows.
    options = {
        "max_iterations": max_iterations,
        "min_gradient_norm": 1e-5,
        "min_step_size": 0,
        "verbosity": 0,
    }
    return {
        "trust region": TrustRegions(**options),
        "conjugate gradients": ConjugateGradient(line_searcher=WolfeSearch(), **options),
        "L-BFGS": LBFGS(**options),
        "descent, golden section": SteepestDescent(line_searcher=GoldenSection(), **options),
    }


OPTIMIZERS = optimizers(1500)  # steepest descent converges linearly, and needs them


@every_penalty
def test_optimizers_find_the_same_minimum(name):
    Y, mask, true = noisy_signals()
    penalty = 20 * penalty_for(name, true.shape)  # strong: it moves the minimum far more than the tolerance
    if name == "LogBarrierCoherence":
        penalty = LogBarrierCoherence(2.0, bound=1.05 * metrics.coherence(true))
    problem = update_problem(Y, mask, mu=0.01, regularizers=[penalty])
    plain = update_problem(Y, mask, mu=0.01)
    minimum, without = (
        OPTIMIZERS["trust region"].run(each, initial_point=true).point for each in (problem, plain)
    )
    spheres = problem.manifold
    assert spheres.dist(minimum, without) > 0.01
    start = spheres.exp(minimum, 0.05 * spheres.random_tangent_vector(minimum, np.random.default_rng(1)))
    for optimizer in OPTIMIZERS.values():
        result = optimizer.run(problem, initial_point=start)
        # The value is off by the square of the gradient over the curvature, the point by their quotient.
        assert problem.cost(result.point) == pytest.approx(problem.cost(minimum), rel=1e-10)
        np.testing.assert_allclose(result.point, minimum, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_optimizer_leaves_the_barrier(name):
    optimizer, bound = optimizers(60)[name], 0.3
    Y, mask, _ = noisy_signals()
    mask = mask[:M]  # as many atoms as dimensions: an orthonormal basis is inside any bound
    start = np.linalg.qr(np.random.default_rng(2).standard_normal((M, M)))[0]
    free = update_problem(Y, mask, mu=0.01)
    assert metrics.coherence(optimizer.run(free, initial_point=start).point) > bound
    problem = update_problem(Y, mask, mu=0.01, regularizers=[LogBarrierCoherence(0.1, bound)])
    result = optimizer.run(problem, initial_point=start)
    assert bound > metrics.coherence(result.point) > 0.9 * bound  # the data pushes against it
    values = [iterate.value for iterate in problem.record]
    assert np.isfinite(values).all() and values[-1] < values[0]


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_start_outside_the_barrier_is_refused_with_a_sentence(optimizer):
    Y, mask, true = noisy_signals()
    problem = update_problem(Y, mask, regularizers=[LogBarrierCoherence(0.1, bound=0.2)])
    assert problem.cost(true) == np.inf
    with pytest.raises(
        ValueError, match=r"infinite there: begin with a dictionary whose coherence is below 0\.2"
    ):
        optimizer.run(problem, initial_point=true)


def test_problem_evaluates_a_regularizer_once_per_point():
    calls = []

    @regularizer
    def counted(D):
        calls.append(1)
        return anp.sum(D**4)

    Y, mask, true = noisy_signals()
    problem = update_problem(Y, mask, mu=0.01, regularizers=[counted, Coherence(1.0)])
    U = problem.manifold.random_tangent_vector(true, np.random.default_rng(1))
    elsewhere = problem.manifold.exp(true, 0.1 * U)
    for point in (true, elsewhere, true):  # a trust region comes back after a step that it refused
        problem.cost(point), problem.riemannian_gradient(point)
        for _ in range(4):
            problem.riemannian_hessian(point, U), problem.preconditioner(point, U)
    assert len(calls) == 2 * 3  # at each point for the value, for the gradient, and for what is kept of it
    before = problem.cost(true)
    true *= -1.0
    true[:, 0] = true[:, 1]  # the same array, another point
    assert problem.cost(true) == pytest.approx(
        update_problem(Y, mask, mu=0.01, regularizers=[counted, Coherence(1.0)]).cost(true), rel=1e-14
    )
    assert problem.cost(true) != before


def test_first_order_methods_do_not_evaluate_the_hessian():
    class GradientOnly:
        def value(self, dictionary):
            return float(np.sum(np.exp(dictionary)))

        def gradient(self, dictionary):
            return np.exp(dictionary)

    Y, mask, true = noisy_signals()
    problem = update_problem(Y, mask, mu=0.01, regularizers=[GradientOnly()])
    before = problem.cost(true)
    result = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=5, verbosity=0).run(
        problem, initial_point=true
    )
    assert result.cost < before


@every_penalty
@pytest.mark.parametrize("kind", [TrustRegions, ConjugateGradient])
def test_float32_stays_float32_through_a_run(name, kind):
    Y, mask, true = noisy_signals()
    penalty = penalty_for(name, true.shape)
    problem = update_problem(Y.astype(np.float32), mask, mu=0.01, regularizers=[penalty])
    start = true.astype(np.float32)
    options = {"line_searcher": WolfeSearch()} if kind is ConjugateGradient else {}
    result = kind(max_iterations=4, verbosity=0, **options).run(problem, initial_point=start)
    assert result.point.dtype == np.float32
    assert problem.cost(result.point) < problem.cost(start)


def test_penalty_determines_atoms_that_are_hardly_used():
    """The preconditioner gives them long steps, unless a penalty has its say about them too."""
    Y, mask, true = noisy_signals()
    mask[0] = False
    mask[0, 0] = True  # one user
    problems = [update_problem(Y, mask, mu=0.1, regularizers=r) for r in ([], [Sparse(1e3, smoothing=1.0)])]
    U = problems[0].manifold.random_tangent_vector(true, np.random.default_rng(1))
    free, held = (problem.preconditioner(true, U)[0] / U[0] for problem in problems)
    assert free[0] > 100 * free[1:].max()
    assert held[0] < 2 * held[1:].max()
