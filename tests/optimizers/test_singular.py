"""`LeadingSingularVector`: the closed form agrees with the SVD."""

import numpy as np
import pytest
from lbfgs_problems import autograd_problem
from pymanopt.manifolds import Euclidean, Oblique, Sphere, Stiefel

from manifold_dl.manifolds import Lines, Spheres
from manifold_dl.optimizers import LeadingSingularVector
from manifold_dl.problem import lasso_problem
from manifold_dl.problem.update_problem import update_problem
from manifold_dl.regularizers import Coherence


class TestLeadingSingularVector:
    def problem(self, n=40, m=10, mu=0.0, dtype=float, **settings):
        Y = np.random.default_rng(0).standard_normal((m, n)).astype(dtype)
        return Y, update_problem(Y, np.ones((1, n), dtype=bool), mu=mu, **settings)

    def start(self, m=10):
        return Spheres(m, 1).random_point(1)

    @pytest.mark.parametrize("mu", [0.0, 0.1, 5.0])
    @pytest.mark.parametrize("n", [1, 5, 40])
    def test_point_is_the_singular_vector_of_the_svd_for_every_ridge(self, n, mu):
        Y, problem = self.problem(n, mu=mu)
        u, s, vt = (factor[..., 0] if k < 2 else factor[0] for k, factor in enumerate(np.linalg.svd(Y)))
        result = LeadingSingularVector().run(problem, initial_point=self.start())
        # The eigenvector of Y Yᵀ: rounding over the gap, of a percent or more.
        np.testing.assert_allclose(result.point @ result.point.T, np.outer(u, u), atol=1e-12)
        sign = np.sign(result.point[:, 0] @ u)
        np.testing.assert_allclose(
            problem.codes(result.point).toarray()[0], sign * s * vt / (1 + mu), atol=1e-12
        )
        assert result.cost == pytest.approx(np.linalg.norm(Y) ** 2 - s**2 / (1 + mu), rel=1e-12, abs=1e-12)

    @pytest.mark.parametrize("manifold", [Spheres, Lines, Oblique, Stiefel])
    def test_all_manifolds_of_one_unit_atom_are_accepted(self, manifold):
        Y, problem = self.problem(manifold=manifold)
        point = LeadingSingularVector().run(problem, initial_point=self.start()).point
        assert abs(np.linalg.svd(Y)[0][:, 0] @ point[:, 0]) == pytest.approx(1, abs=1e-14)

    @pytest.mark.parametrize("steps", [1, 2, 7])
    def test_power_steps_agree_with_the_power_method(self, steps):
        Y, problem = self.problem()
        u = self.start()
        result = LeadingSingularVector(power_steps=steps).run(problem, initial_point=u)
        expected = np.linalg.matrix_power(Y @ Y.T, steps) @ u
        # The same products in another order.
        np.testing.assert_allclose(result.point, expected / np.linalg.norm(expected), atol=1e-14)
        assert result.iterations == steps

    @pytest.mark.parametrize("steps", [None, 1])
    def test_takes_the_sign_that_is_nearer_to_the_start(self, steps):
        _, problem = self.problem()
        u = self.start()
        one, other = (LeadingSingularVector(steps).run(problem, initial_point=x).point for x in (u, -u))
        np.testing.assert_array_equal(one, -other)
        assert np.vdot(one, u) > 0

    @pytest.mark.parametrize("steps", [None, 1, 3])
    def test_signals_of_zeros_leave_the_atom_unchanged(self, steps):
        u = self.start()
        problem = update_problem(np.zeros((10, 4)), np.ones((1, 4), dtype=bool))
        np.testing.assert_array_equal(LeadingSingularVector(steps).run(problem, initial_point=u).point, u)

    def test_power_steps_leave_an_atom_orthogonal_to_all_signals_unchanged(self):
        Y = np.eye(3)[:, :1]
        problem = update_problem(Y, np.ones((1, 1), dtype=bool))
        u = np.eye(3)[:, 2:]
        np.testing.assert_array_equal(LeadingSingularVector(1).run(problem, initial_point=u).point, u)
        np.testing.assert_array_equal(LeadingSingularVector().run(problem, initial_point=u).point, Y)

    def test_start_is_optional(self):
        Y, problem = self.problem()
        point = LeadingSingularVector().run(problem).point
        assert abs(np.linalg.svd(Y)[0][:, 0] @ point[:, 0]) == pytest.approx(1, abs=1e-14)

    def test_result_has_the_dtype_of_the_start(self):
        Y, problem = self.problem(dtype=np.float32)
        point = LeadingSingularVector().run(problem, initial_point=self.start()).point
        assert point.dtype == np.float32
        # The vector is computed in double precision and rounded once.
        assert abs(np.linalg.svd(Y.astype(float))[0][:, 0] @ point[:, 0]) == pytest.approx(1, abs=1e-6)

    @pytest.mark.parametrize("factor", [2.0**-20, 2.0**20, 1e-100, 1e100])
    def test_the_scale_of_the_signals_does_not_matter(self, factor):
        Y, problem = self.problem()
        scaled = update_problem(factor * Y, np.ones((1, 40), dtype=bool))
        one, other = (
            LeadingSingularVector().run(p, initial_point=self.start()).point for p in (problem, scaled)
        )
        # Powers of two do not round; others leave the rounding of the entries.
        np.testing.assert_allclose(one, other, atol=0 if factor in (2.0**-20, 2.0**20) else 1e-13)

    def test_unsupported_problems_are_refused_with_a_sentence(self):
        Y, _ = self.problem()
        with pytest.raises(ValueError, match="power_steps=0: give at least one step"):
            LeadingSingularVector(power_steps=0)
        run = LeadingSingularVector().run
        with pytest.raises(ValueError, match="one atom at a time"):
            run(update_problem(Y, np.ones((2, 40), dtype=bool)))
        with pytest.raises(ValueError, match="one atom at a time"):
            run(autograd_problem(Sphere(3), lambda x: x[0]))
        with pytest.raises(ValueError, match="no closed form for fixed codes or regularizers"):
            run(update_problem(Y, np.ones((1, 40)), codes="fixed"))
        with pytest.raises(ValueError, match="no closed form for fixed codes or regularizers"):
            run(update_problem(Y, np.ones((1, 40), dtype=bool), regularizers=[Coherence(0.1)]))
        with pytest.raises(ValueError, match="no closed form on Euclidean manifold"):
            run(update_problem(Y, np.ones((1, 40), dtype=bool), manifold=Euclidean))


def test_codes_by_a_penalty_are_refused_with_a_sentence():
    Y = np.random.default_rng(0).standard_normal((4, 30))
    problem = lasso_problem(Y, 1, alpha=0.1)
    with pytest.raises(ValueError, match="no closed form where codes follow by a penalty"):
        LeadingSingularVector().run(problem)
