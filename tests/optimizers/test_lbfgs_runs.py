"""`LBFGS`: how a run ends, what it logs and counts, its line searcher, and costs that are not finite."""

import numpy as np
import pymanopt
import pytest
from lbfgs_problems import autograd_problem, rayleigh, silent, start
from pymanopt.manifolds import Euclidean, Sphere
from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher

from manifold_dl.line_search import WolfeSearch
from manifold_dl.optimizers import LBFGS


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
    def test_stopping_criterion_names_the_reason(self, problem, setting, sentence):
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

    def test_stationary_start_is_returned_unchanged(self):
        A = np.diag(np.arange(1.0, 6.0))
        problem = autograd_problem(Sphere(5), lambda x: x @ A @ x)
        for x in np.eye(5):
            # The gradient is exactly zero, also where no norm is small enough to stop.
            for optimizer in (silent(), silent(min_gradient_norm=0)):
                result = optimizer.run(problem, initial_point=x)
                assert result.point is x
                assert result.iterations == 0
                assert result.gradient_norm == 0

    def test_verbosity_prints_as_in_pymanopt(self, problem, capsys):
        x = start(problem.manifold)
        LBFGS(verbosity=0).run(problem, initial_point=x)
        assert capsys.readouterr().out == ""
        result = LBFGS(verbosity=1).run(problem, initial_point=x)
        assert capsys.readouterr().out == f"Optimizing...\n{result.stopping_criterion}\n\n"
        LBFGS(verbosity=2, max_iterations=2).run(problem, initial_point=x)
        lines = capsys.readouterr().out.splitlines()
        assert lines[1].split() == ["Iteration", "Cost", "Gradient", "norm"]
        assert [line.split()[0] for line in lines[3:6]] == ["0", "1", "2"]

    def test_random_start_if_none_is_given(self, problem):
        assert silent(max_iterations=1).run(problem).point.shape == (50,)

    def test_memory_below_one_is_refused(self):
        with pytest.raises(ValueError, match="memory=0: L-BFGS needs at least one pair"):
            LBFGS(memory=0)


class TestLineSearcher:
    def test_line_searcher_is_copied_for_each_run_unless_it_is_reused(self):
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

    def test_failed_search_is_repeated_along_the_gradient(self):
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

    def test_search_that_always_fails_ends_the_run_at_the_start(self):
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
    def test_steps_to_points_with_nan_are_shortened(self, problem, searcher):
        result = silent(line_searcher=searcher).run(problem, initial_point=np.array([5.0]))
        assert result.cost == pytest.approx(1.0, rel=1e-8)

    def test_start_with_nan_is_returned_with_the_reason(self, problem):
        x = np.array([-1.0])
        result = silent().run(problem, initial_point=x)
        assert result.point is x
        assert result.stopping_criterion == "Terminated - cost or gradient not finite at the initial point."

    def test_point_with_nan_from_a_line_searcher_is_rejected(self, problem):
        class Reckless:
            def search(self, objective, manifold, x, d, f0, df0):
                return 6.0, x - 6.0

        x = np.array([5.0])
        result = silent(line_searcher=Reckless()).run(problem, initial_point=x)
        assert result.point is x
        assert "cost or gradient not finite after 0 iterations" in result.stopping_criterion
