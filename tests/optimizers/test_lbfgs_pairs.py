"""The directions of L-BFGS, made of pairs of steps and changes of the gradient."""

import numpy as np
import pytest
from lbfgs_problems import (
    autograd_problem,
    brockett,
    one_rayleigh_quotient_per_column,
    rayleigh,
    silent,
    start,
    symmetric,
)
from pymanopt.manifolds import Euclidean, Sphere

from manifold_dl.line_search import WolfeSearch


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
