"""L-BFGS: known minima on several manifolds, how a run ends, counts and logs; and the singular vector."""

import autograd.numpy as anp
import numpy as np
import pymanopt
import pytest
from pymanopt.manifolds import Euclidean, Grassmann, Oblique, Product, Sphere, Stiefel
from pymanopt.optimizers import TrustRegions
from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher

from manifold_dl.datasets import synthetic
from manifold_dl.line_search import WolfeSearch
from manifold_dl.manifolds import Lines, Spheres
from manifold_dl.optimizers import LBFGS, LeadingSingularVector
from manifold_dl.problem.update_problem import update_problem
from manifold_dl.regularizers import Coherence


def autograd_problem(manifold, cost, **kwargs):
    return pymanopt.Problem(manifold, pymanopt.function.autograd(manifold)(cost), **kwargs)


def symmetric(n, seed):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return (A + A.T) / 2


def rayleigh():
    A = symmetric(50, seed=1)
    return Sphere(50), lambda x: x @ A @ x, np.linalg.eigvalsh(A)[0]


def brockett():
    A, weights = symmetric(30, seed=2), np.array([4.0, 3.0, 2.0, 1.0])
    # The largest weight meets the smallest eigenvalue.
    return Stiefel(30, 4), lambda X: anp.sum(X * (A @ X) * weights), np.linalg.eigvalsh(A)[:4] @ weights


def dominant_subspace():
    A = symmetric(20, seed=3)
    return Grassmann(20, 3), lambda X: -anp.sum(X * (A @ X)), -np.linalg.eigvalsh(A)[-3:].sum()


def rosenbrock():
    # The constant makes a relative error meaningful.
    return Euclidean(10), lambda x: 1 + anp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), 1.0


def one_rayleigh_quotient_per_column():
    matrices = [symmetric(12, seed) for seed in range(5)]

    def cost(D):
        return sum(D[:, i] @ A @ D[:, i] for i, A in enumerate(matrices))

    return Oblique(12, 5), cost, sum(np.linalg.eigvalsh(A)[0] for A in matrices)


def leading_singular_pair():
    A = np.random.default_rng(4).standard_normal((20, 15))
    return Product([Sphere(20), Sphere(15)]), lambda u, v: -u @ A @ v, -np.linalg.norm(A, 2)


PROBLEMS = [
    rayleigh,
    brockett,
    dominant_subspace,
    rosenbrock,
    one_rayleigh_quotient_per_column,
    leading_singular_pair,
]


def start(manifold):
    """A point away from every saddle: a normal draw, brought to the manifold by its own retraction."""
    rng = np.random.default_rng(0)

    def one(manifold, shape):
        return manifold.retraction(np.zeros(shape), rng.standard_normal(shape))

    if isinstance(manifold, Product):
        return [one(Sphere(20), 20), one(Sphere(15), 15)]
    if isinstance(manifold, Euclidean):
        return np.zeros(10)
    return one(manifold, {Sphere: 50, Stiefel: (30, 4), Grassmann: (20, 3), Oblique: (12, 5)}[type(manifold)])


def silent(**kwargs):
    return LBFGS(**{"verbosity": 0, "log_verbosity": 1, **kwargs})


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
    def test_descends_with_any_memory(self, setting, memory):
        manifold, cost, minimum = setting()
        result = silent(memory=memory).run(autograd_problem(manifold, cost), initial_point=start(manifold))
        # The cost of a search is that of its point; a few roundings are allowed for points brought back.
        assert np.diff(result.log["iterations"]["cost"]).max() <= 1e-13 * abs(minimum)
        # One pair is barely more than a gradient, and slow: a looser tolerance.
        assert result.cost == pytest.approx(minimum, rel=1e-8 if memory > 1 else 1e-6)


class TestMathematics:
    def test_stays_on_the_manifold(self):
        # Following exp blindly, rounding carries the iterates off exponentially fast: 4e-5 in 30 steps.
        manifold, cost, _ = brockett()
        X = silent().run(autograd_problem(manifold, cost), initial_point=start(manifold)).point
        # A handful of roundings from the QR factorisation that brings the point back.
        np.testing.assert_allclose(X.T @ X, np.eye(4), atol=1e-14)

    def test_ends_after_n_steps_on_a_quadratic(self):
        # BFGS with exact line searches minimises a quadratic in n variables in n steps; the searcher's
        # polynomial is exact here, up to rounding, for which one step more is allowed.
        eigenvalues = np.array([1.0, 2.0, 5.0, 10.0, 20.0, 50.0])
        problem = autograd_problem(Euclidean(6), lambda x: x @ (eigenvalues * x))
        optimizer = silent(line_searcher=WolfeSearch(curvature=1e-3), min_gradient_norm=1e-9)
        assert optimizer.run(problem, initial_point=np.ones(6)).iterations <= 7

    def test_an_exact_preconditioner_makes_it_newtons_method(self):
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

    def test_an_indefinite_preconditioner_falls_back_to_the_gradient(self):
        problem = autograd_problem(Euclidean(3), lambda x: x @ x, preconditioner=lambda x, v: -v)
        assert (
            silent().run(problem, initial_point=np.ones(3)).cost < 1e-12
        )  # the gradient norm ends below 1e-6

    def test_single_precision_stays_single(self):
        A = symmetric(50, seed=1).astype(np.float32)
        problem = autograd_problem(Sphere(50), lambda x: x @ A @ x)
        result = silent().run(problem, initial_point=start(Sphere(50)).astype(np.float32))
        assert result.point.dtype == np.float32
        # The cost is a sum of 2,500 products in single precision.
        assert result.cost == pytest.approx(np.linalg.eigvalsh(A.astype(float))[0], rel=1e-5)


class TestStopping:
    @pytest.fixture
    def problem(self):
        manifold, cost, _ = rayleigh()
        return autograd_problem(manifold, cost)

    @pytest.mark.parametrize(
        ("setting", "sentence"),
        [
            ({}, "min grad norm reached after"),
            ({"max_iterations": 3}, "max iterations reached after"),
            ({"max_time": 0}, "max time reached after 0 iterations"),
            ({"max_cost_evaluations": 5}, "max cost evals reached after"),
            ({"min_step_size": 1e-1}, "min step_size reached after"),
            ({"min_gradient_norm": 0, "min_step_size": 0}, "no lower cost along the gradient after"),
        ],
    )
    def test_says_why(self, problem, setting, sentence):
        result = silent(**setting).run(problem, initial_point=start(problem.manifold))
        assert result.stopping_criterion.startswith("Terminated - " + sentence)

    @pytest.mark.parametrize("steps", [0, 1, 4])
    def test_n_iterations_are_n_steps_and_all_are_logged(self, problem, steps):
        result = silent(max_iterations=steps).run(problem, initial_point=start(problem.manifold))
        log = result.log["iterations"]
        assert result.iterations == steps
        assert log["iteration"] == list(range(steps + 1))
        assert len({point.tobytes() for point in log["point"]}) == steps + 1
        assert log["point"][-1] is result.point
        assert log["cost"][-1] == result.cost == problem.cost(result.point)
        assert log["gradient_norm"][-1] == result.gradient_norm
        assert (result.step_size is None) == (steps == 0)

    def test_the_log_is_that_of_a_pymanopt_optimizer(self, problem):
        log = silent(memory=4, max_iterations=2).run(problem, initial_point=start(problem.manifold)).log
        assert log["optimizer"] == "LBFGS"
        assert log["stopping_criteria"]["max_iterations"] == 2
        assert log["optimizer_parameters"]["memory"] == 4
        assert isinstance(log["optimizer_parameters"]["line_searcher"], WolfeSearch)
        assert (
            silent(log_verbosity=0).run(problem, initial_point=start(problem.manifold)).log["iterations"]
            is None
        )

    def test_counts_every_evaluation_of_the_cost(self):
        manifold, cost, _ = rayleigh()
        calls = []

        @pymanopt.function.numpy(manifold)
        def counted(x):
            calls.append(x)
            return cost(x)

        gradient = autograd_problem(manifold, cost).euclidean_gradient
        problem = pymanopt.Problem(
            manifold, counted, euclidean_gradient=pymanopt.function.numpy(manifold)(gradient)
        )
        result = silent().run(problem, initial_point=start(manifold))
        assert result.cost_evaluations == len(calls)

    def test_a_stationary_point_is_returned_as_it_is(self):
        A = np.diag(np.arange(1.0, 6.0))
        problem = autograd_problem(Sphere(5), lambda x: x @ A @ x)
        for x in np.eye(5):
            # The gradient is exactly zero, also where no norm is small enough to stop.
            for optimizer in (silent(), silent(min_gradient_norm=0)):
                result = optimizer.run(problem, initial_point=x)
                assert result.point is x
                assert result.iterations == 0
                assert result.gradient_norm == 0

    def test_prints_like_pymanopt(self, problem, capsys):
        x = start(problem.manifold)
        LBFGS(verbosity=0).run(problem, initial_point=x)
        assert capsys.readouterr().out == ""
        result = LBFGS(verbosity=1).run(problem, initial_point=x)
        assert capsys.readouterr().out == f"Optimizing...\n{result.stopping_criterion}\n\n"
        LBFGS(verbosity=2, max_iterations=2).run(problem, initial_point=x)
        lines = capsys.readouterr().out.splitlines()
        assert lines[1].split() == ["Iteration", "Cost", "Gradient", "norm"]
        assert [line.split()[0] for line in lines[3:6]] == ["0", "1", "2"]

    def test_draws_its_own_start_where_none_is_given(self, problem):
        assert silent(max_iterations=1).run(problem).point.shape == (50,)

    def test_needs_a_memory(self):
        with pytest.raises(ValueError, match="memory=0: L-BFGS needs at least one pair"):
            LBFGS(memory=0)


class TestLineSearcher:
    def test_each_run_gets_a_copy_unless_told_otherwise(self):
        manifold, cost, _ = rayleigh()
        problem, x = autograd_problem(manifold, cost), start(rayleigh()[0])
        searcher = AdaptiveLineSearcher()
        optimizer = silent(line_searcher=searcher)
        optimizer.run(problem, initial_point=x)
        first = optimizer.line_searcher
        assert first is not searcher
        optimizer.run(problem, initial_point=x, reuse_line_searcher=True)
        assert optimizer.line_searcher is first
        optimizer.run(problem, initial_point=x)
        assert optimizer.line_searcher is not first

    def test_the_unit_step_is_tried_first(self):
        # `first_step` is a length, so the unit step is the norm of the direction.
        trials = []

        class Watched(WolfeSearch):
            def search(self, objective, manifold, x, d, f0, df0):
                trials.append((self.first_step, np.linalg.norm(d)))
                return super().search(objective, manifold, x, d, f0, df0)

        manifold, cost, _ = rayleigh()
        silent(line_searcher=Watched(), max_iterations=6).run(
            autograd_problem(manifold, cost), initial_point=start(manifold)
        )
        assert trials[0][0] == 1.0
        for first_step, norm in trials[1:]:
            assert first_step == norm

    def test_a_failed_search_is_repeated_along_the_gradient(self):
        searched = []

        class OnlyTheGradient(BackTrackingLineSearcher):
            def search(self, objective, manifold, x, d, f0, df0):
                gradient = problem.riemannian_gradient(x)
                parallel = np.allclose(d, -gradient)
                searched.append(parallel)
                return super().search(objective, manifold, x, d, f0, df0) if parallel else (0.0, x)

        manifold, cost, _ = rayleigh()
        problem = autograd_problem(manifold, cost)
        result = silent(line_searcher=OnlyTheGradient(), max_iterations=3).run(
            problem, initial_point=start(manifold)
        )
        assert result.iterations == 3
        assert searched == [True, False, True, False, True]

    def test_a_search_that_always_fails_ends_the_run_where_it_began(self):
        class Hopeless:
            def search(self, objective, manifold, x, d, f0, df0):
                return 0.0, x

        manifold, cost, _ = rayleigh()
        x = start(manifold)
        result = silent(line_searcher=Hopeless()).run(autograd_problem(manifold, cost), initial_point=x)
        assert result.point is x
        assert "no lower cost along the gradient after 0 iterations" in result.stopping_criterion


class TestNotFinite:
    """f(x) = x − log x on the line, which is not a number for x ≤ 0; its minimum is f(1) = 1."""

    @pytest.fixture
    def problem(self):
        line = Euclidean(1)

        @pymanopt.function.numpy(line)
        def cost(x):
            return float(x[0] - np.log(x[0])) if x[0] > 0 else np.nan

        @pymanopt.function.numpy(line)
        def gradient(x):
            return 1 - 1 / x

        return pymanopt.Problem(line, cost, euclidean_gradient=gradient)

    @pytest.mark.parametrize(
        "searcher",
        [WolfeSearch(first_step=50), BackTrackingLineSearcher(initial_step_size=50)],
        ids=lambda searcher: type(searcher).__name__,
    )
    def test_steps_into_nan_are_shortened(self, problem, searcher):
        result = silent(line_searcher=searcher).run(problem, initial_point=np.array([5.0]))
        assert result.cost == pytest.approx(1.0, rel=1e-8)

    def test_a_start_in_nan_is_returned_with_a_sentence(self, problem):
        x = np.array([-1.0])
        result = silent().run(problem, initial_point=x)
        assert result.point is x
        assert result.stopping_criterion == "Terminated - cost or gradient not finite at the initial point."

    def test_a_searcher_that_returns_nan_is_not_believed(self, problem):
        class Reckless:
            def search(self, objective, manifold, x, d, f0, df0):
                return 6.0, x - 6.0

        x = np.array([5.0])
        result = silent(line_searcher=Reckless()).run(problem, initial_point=x)
        assert result.point is x
        assert "cost or gradient not finite after 0 iterations" in result.stopping_criterion


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


def dominant_subspace_on_stiefel():
    A = symmetric(20, seed=5)
    A = A @ A
    return A, lambda X: -anp.sum(X * (A @ X))


def test_dominant_subspace_on_stiefel():
    A, cost = dominant_subspace_on_stiefel()
    problem = autograd_problem(Stiefel(20, 3), cost)
    x = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 3)))[0]
    ours = silent().run(problem, initial_point=x)
    theirs = TrustRegions(verbosity=0).run(problem, initial_point=x)
    # As above: the square of a gradient norm of 1e-6.
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)
    assert ours.cost == pytest.approx(-np.linalg.eigvalsh(A)[-3:].sum(), rel=1e-8)


class TestLeadingSingularVector:
    def problem(self, n=40, m=10, mu=0.0, dtype=float, **settings):
        Y = np.random.default_rng(0).standard_normal((m, n)).astype(dtype)
        return Y, update_problem(Y, np.ones((1, n), dtype=bool), mu=mu, **settings)

    def start(self, m=10):
        return Spheres(m, 1).random_point(1)

    @pytest.mark.parametrize("mu", [0.0, 0.1, 5.0])
    @pytest.mark.parametrize("n", [1, 5, 40])
    def test_is_that_of_the_svd_for_every_ridge(self, n, mu):
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
    def test_does_not_mind_the_name_of_the_sphere(self, manifold):
        Y, problem = self.problem(manifold=manifold)
        point = LeadingSingularVector().run(problem, initial_point=self.start()).point
        assert abs(np.linalg.svd(Y)[0][:, 0] @ point[:, 0]) == pytest.approx(1, abs=1e-14)

    @pytest.mark.parametrize("steps", [1, 2, 7])
    def test_power_steps(self, steps):
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
    def test_where_there_is_nothing_to_see_it_stays(self, steps):
        u = self.start()
        problem = update_problem(np.zeros((10, 4)), np.ones((1, 4), dtype=bool))
        np.testing.assert_array_equal(LeadingSingularVector(steps).run(problem, initial_point=u).point, u)

    def test_power_steps_stay_where_no_signal_has_a_component(self):
        Y = np.eye(3)[:, :1]
        problem = update_problem(Y, np.ones((1, 1), dtype=bool))
        u = np.eye(3)[:, 2:]
        np.testing.assert_array_equal(LeadingSingularVector(1).run(problem, initial_point=u).point, u)
        np.testing.assert_array_equal(LeadingSingularVector().run(problem, initial_point=u).point, Y)

    def test_needs_no_start(self):
        Y, problem = self.problem()
        point = LeadingSingularVector().run(problem).point
        assert abs(np.linalg.svd(Y)[0][:, 0] @ point[:, 0]) == pytest.approx(1, abs=1e-14)

    def test_single_precision_stays_single(self):
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

    def test_refusals(self):
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
