"""`LBFGS`: known minima on several manifolds, its directions, and dictionary problems."""

import numpy as np
import pytest
from lbfgs_problems import (
    PROBLEMS,
    autograd_problem,
    brockett,
    dominant_subspace_on_stiefel,
    one_rayleigh_quotient_per_column,
    rayleigh,
    silent,
    start,
    symmetric,
)
from pymanopt.manifolds import Euclidean, Sphere, Stiefel
from pymanopt.optimizers import TrustRegions
from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher

from manifold_dl.datasets import synthetic
from manifold_dl.line_search import WolfeSearch
from manifold_dl.problem.update_problem import update_problem


@pytest.mark.parametrize("setting", PROBLEMS)
class TestMinima:
    @pytest.mark.parametrize(
        "searcher",
        [None, WolfeSearch(curvature=0.1), BackTrackingLineSearcher(), AdaptiveLineSearcher()],
        ids=lambda searcher: type(searcher).__name__,
    )
    def test_reaches_the_known_minimum(self, setting, searcher):
        manifold, cost, minimum = setting()
        problem = autograd_problem(manifold, cost)
        result = silent(line_searcher=searcher).run(problem, initial_point=start(manifold))
        # A gradient norm of 1e-6 leaves an error of about its square over the curvature; rounding of the cost
        # may stop the search a little earlier.
        assert result.cost == pytest.approx(minimum, rel=1e-8)

    def test_reaches_the_minimum_of_the_trust_region(self, setting):
        manifold, cost, _ = setting()
        problem = autograd_problem(manifold, cost)
        ours = silent().run(problem, initial_point=start(manifold))
        theirs = TrustRegions(verbosity=0).run(problem, initial_point=start(manifold))
        assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)

    @pytest.mark.parametrize("memory", [1, 3, 50])
    def test_cost_decreases_with_any_memory(self, setting, memory):
        manifold, cost, minimum = setting()
        result = silent(memory=memory).run(autograd_problem(manifold, cost), initial_point=start(manifold))
        # The cost of a search is that of its point; a few roundings are allowed for points brought back.
        assert np.diff(result.log["iterations"]["cost"]).max() <= 1e-13 * abs(minimum)
        # One pair is barely more than a gradient, and slow: a looser tolerance.
        assert result.cost == pytest.approx(minimum, rel=1e-8 if memory > 1 else 1e-6)


class TestDirections:
    def test_stays_on_the_manifold(self):
        # Following exp blindly, rounding carries the iterates off exponentially fast: 4e-5 in 30 steps.
        manifold, cost, _ = brockett()
        X = silent().run(autograd_problem(manifold, cost), initial_point=start(manifold)).point
        # A handful of roundings from the QR factorisation that brings the point back.
        np.testing.assert_allclose(X.T @ X, np.eye(4), atol=1e-14)

    def test_quadratic_in_n_unknowns_is_solved_in_n_steps(self):
        # BFGS with exact line searches minimises a quadratic in n variables in n steps; the searcher's
        # polynomial is exact here, up to rounding, for which one step more is allowed.
        eigenvalues = np.array([1.0, 2.0, 5.0, 10.0, 20.0, 50.0])
        problem = autograd_problem(Euclidean(6), lambda x: x @ (eigenvalues * x))
        optimizer = silent(line_searcher=WolfeSearch(curvature=1e-3), min_gradient_norm=1e-9)
        assert optimizer.run(problem, initial_point=np.ones(6)).iterations <= 7

    def test_exact_preconditioner_gives_newtons_method(self):
        eigenvalues = np.logspace(0, 8, 60)
        plain, preconditioned = (
            autograd_problem(Euclidean(60), lambda x: x @ (eigenvalues * x), preconditioner=P)
            for P in (None, lambda x, v: v / eigenvalues)
        )
        optimizer = silent(max_iterations=20)
        # The first search need not be exact; the pair that it leaves makes the second step so.
        assert optimizer.run(preconditioned, initial_point=np.ones(60)).iterations <= 3
        assert "max iterations" in optimizer.run(plain, initial_point=np.ones(60)).stopping_criterion

    @pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
    def test_the_scale_of_the_preconditioner_does_not_matter(self, factor):
        manifold, cost, _ = rayleigh()
        diagonal = np.linspace(1, 3, 50)

        def preconditioner(scale):
            return lambda x, v: manifold.projection(x, scale * v / diagonal)

        one, other = (
            silent(max_iterations=15).run(
                autograd_problem(manifold, cost, preconditioner=preconditioner(scale)),
                initial_point=start(manifold),
            )
            for scale in (1.0, factor)
        )
        # Powers of two scale without rounding.
        np.testing.assert_array_equal(one.point, other.point)

    @pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
    def test_the_scale_of_the_cost_does_not_matter(self, factor):
        manifold, cost, _ = one_rayleigh_quotient_per_column()
        one, other = (
            silent(max_iterations=15, min_gradient_norm=0).run(
                autograd_problem(manifold, lambda D, scale=scale: scale * cost(D)),
                initial_point=start(manifold),
            )
            for scale in (1.0, factor)
        )
        np.testing.assert_array_equal(one.point, other.point)

    def test_indefinite_preconditioner_is_replaced_by_the_gradient(self):
        problem = autograd_problem(Euclidean(3), lambda x: x @ x, preconditioner=lambda x, v: -v)
        assert (
            silent().run(problem, initial_point=np.ones(3)).cost < 1e-12
        )  # the gradient norm ends below 1e-6

    def test_result_has_the_dtype_of_the_start(self):
        A = symmetric(50, seed=1).astype(np.float32)
        problem = autograd_problem(Sphere(50), lambda x: x @ A @ x)
        result = silent().run(problem, initial_point=start(Sphere(50)).astype(np.float32))
        assert result.point.dtype == np.float32
        # The cost is a sum of 2,500 products in single precision.
        assert result.cost == pytest.approx(np.linalg.eigvalsh(A.astype(float))[0], rel=1e-5)


class TestDictionaryUpdate:
    """The minimum of Pymanopt's trust region, on the problem that this optimizer is here for."""

    @pytest.mark.parametrize("mu", [0.0, 0.1])
    @pytest.mark.parametrize("n", [60, 150, 300])
    def test_reaches_the_minimum_of_the_trust_region(self, n, mu):
        rng = np.random.default_rng(n)
        true, X, Y = synthetic(16, 32, n, sparsity=4, snr_db=20, rng=rng)
        problem = update_problem(Y, X.astype(bool), mu=mu)
        # There are many minima, and from afar two methods may end in two of them: begin near the truth.
        D = problem.manifold.retraction(true, 0.05 * rng.standard_normal(true.shape))
        ours = silent(min_gradient_norm=1e-6).run(problem, initial_point=D)
        theirs = TrustRegions(verbosity=0, min_gradient_norm=1e-6).run(problem, initial_point=D)
        # What is left of the cost is the square of the gradient norm over the curvature, far less than 1e-8.
        assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)
        # Rounding of a cost of about 100 hides what a gradient of 1e-6 promises: the search ends earlier.
        assert ours.gradient_norm < 1e-5
        assert problem.manifold.dist(ours.point, theirs.point) < 1e-4

    def test_the_restriction_to_a_geodesic_is_used(self):
        _, X, Y = synthetic(16, 32, 60, sparsity=4, rng=0)
        problem = update_problem(Y, X.astype(bool), mu=0.1)
        result = silent(max_iterations=5).run(problem, initial_point=problem.manifold.random_point(0))
        assert problem.counts.probe >= 5
        # One value at the start, and one at every point accepted: none for a probe.
        assert problem.counts.value == result.iterations + 1


def test_dominant_subspace_on_stiefel_agrees_with_eigenvalues():
    A, cost = dominant_subspace_on_stiefel()
    problem = autograd_problem(Stiefel(20, 3), cost)
    x = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 3)))[0]
    ours = silent().run(problem, initial_point=x)
    theirs = TrustRegions(verbosity=0).run(problem, initial_point=x)
    # As above: the square of a gradient norm of 1e-6.
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)
    assert ours.cost == pytest.approx(-np.linalg.eigvalsh(A)[-3:].sum(), rel=1e-8)
