"""The optimizer of SimCO: the default, poor ones, step lengths that are kept, and output."""

import numpy as np
import pytest
import scipy.sparse
from pymanopt.optimizers import ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions
from update_cases import D_, M, S, assert_unit, check_update, problem_data, searches_of, unit

from manifold_dl.components.errors import ComponentError
from manifold_dl.datasets import synthetic
from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.manifolds import Spheres
from manifold_dl.optimizers import LBFGS
from manifold_dl.problem.counts import count_evaluations
from manifold_dl.schedules import AllAtoms, Blocks, OneAtATime
from manifold_dl.updates import SimCO, default_optimizer


class RandomPoint:
    def run(self, problem, *, initial_point=None):
        return self.result(unit(*initial_point.shape, 0))

    def result(self, point):
        return type("Result", (), {"point": point})


class NotANumber(RandomPoint):
    def run(self, problem, *, initial_point=None):
        return self.result(np.full_like(initial_point, np.nan))


def poor_optimizers():
    return [
        NelderMead(max_iterations=3),
        ParticleSwarm(max_iterations=3),
        ParticleSwarm(max_iterations=2, population_size=4),
        SteepestDescent(max_iterations=2),
        RandomPoint(),
    ]


def test_an_optimizer_of_the_users_that_returns_nan_is_named():
    with pytest.raises(ComponentError, match=r"The optimizer .*NotANumber.* point that is not finite"):
        SimCO(NotANumber(), mu=0.1)(*problem_data(n=30))


@pytest.mark.parametrize("optimizer", poor_optimizers(), ids=lambda optimizer: type(optimizer).__name__)
class TestPoorOptimizers:
    @pytest.mark.parametrize("schedule", [AllAtoms(), Blocks(5), OneAtATime()], ids=repr)
    @pytest.mark.parametrize("codes", ["follow", "fixed"])
    def test_cannot_raise_the_objective(self, optimizer, schedule, codes):
        Y, D, X = problem_data(n=30)
        update = SimCO(optimizer, mu=0.1, schedule=schedule, codes=codes, threads=1)
        for _ in range(2):  # some of them behave differently in their second run
            D, X = check_update(update, Y, D, X, mu=0.1)

    def test_stay_at_a_minimum_where_they_begin(self, optimizer):
        # The signals are represented exactly, so that the gradient is zero up to rounding, or exactly zero.
        D, X, Y = synthetic(M, D_, 30, S, rng=3)
        D_new, X_new = check_update(SimCO(optimizer, schedule=Blocks(4)), Y, D, X)
        # Rounding, times the condition of a support.
        np.testing.assert_allclose(D_new @ X_new, Y, atol=1e-13 * np.abs(Y).max())

    def test_zero_signals_get_zero_codes(self, optimizer):
        _, D, X = problem_data(n=30)
        D_new, X_new = SimCO(optimizer)(np.zeros((M, 30)), D, X)
        assert not X_new.data.any()
        assert_unit(D_new)


class TestPopulationMethods:
    def test_begin_with_the_atoms_as_they_are(self):
        # One iteration around a good start makes it better; from random points it would take thousands.
        Y, D, X = problem_data()
        D, X = SimCO(mu=0.1)(Y, D, X)
        swarm = ParticleSwarm(max_iterations=20, population_size=10)
        D_new, _ = SimCO(swarm, mu=0.1, schedule=OneAtATime())(Y, D, X, rng=0)
        assert (D_new != D).any()

    def test_are_drawn_from_the_given_generator(self):
        Y, D, X = problem_data()
        draws = []

        class Watched(NelderMead):
            def run(self, problem, *, initial_point=None):
                draws.append(initial_point)
                return super().run(problem, initial_point=initial_point)

        update = SimCO(Watched(max_iterations=1))
        update(Y, D, X, rng=5)
        update(Y, D, X, rng=5)
        np.testing.assert_array_equal(*draws)
        np.testing.assert_array_equal(draws[0][0], D)


class GradientOnly:
    """Plain NumPy, which autograd cannot read: there is no second derivative to be had."""

    def value(self, dictionary):
        return float(np.sum(np.exp(dictionary)))

    def gradient(self, dictionary):
        return np.exp(dictionary)


class TestDefaultOptimizer:
    def test_makes_five_steps_of_conjugate_gradients(self):
        Y, D, X = problem_data()
        (default, _), searches = searches_of(SimCO(mu=0.1), Y, D, X)
        named, _ = SimCO(default_optimizer(5), mu=0.1)(Y, D, X)
        np.testing.assert_array_equal(default, named)
        assert len(searches) == 5

    def test_does_without_second_derivatives_of_regularizers_and_manifolds(self):
        class FirstOrder(Spheres):
            def euclidean_to_riemannian_hessian(self, *args):
                raise NotImplementedError

        Y, D, X = problem_data()
        for settings in ({"regularizers": [GradientOnly()]}, {"manifold": FirstOrder}):
            _, searches = searches_of(SimCO(mu=0.1, **settings), Y, D, X)
            assert len(searches) == 5

    def test_a_given_optimizer_is_not_replaced(self):
        Y, D, X = problem_data()
        with pytest.raises(TypeError, match="a hessian method"):
            SimCO(TrustRegions(), regularizers=[GradientOnly()])(Y, D, X)


@pytest.mark.parametrize("searcher", [GoldenSection(), WolfeSearch()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("mu", [0.0, 0.1])
def test_one_step_is_one_pass_over_the_signals(searcher, mu):
    Y, D, X = problem_data()
    update = SimCO(SteepestDescent(line_searcher=searcher, max_iterations=1), mu=mu, threads=1)
    with count_evaluations() as counts:
        D_new, X_new = update(Y, D, X)
    assert counts.value == counts.factorisation == 1 and counts.probe > 1
    # The codes that came with the search are the optimal ones of the new dictionary.
    residual = Y - D_new @ X_new
    stationary = (D_new.T @ residual - mu * X_new.toarray())[X_new.toarray() != 0]
    assert np.abs(stationary).max() < 1e-12 * np.abs(D_new.T @ Y).max()
    assert np.sum(residual**2) + mu * np.sum(X_new.data**2) < np.sum((Y - D @ X) ** 2) + mu * np.sum(
        X.data**2
    )


class TestStepMemory:
    def optimizer(self):
        return SteepestDescent(line_searcher=WolfeSearch(), max_iterations=1, verbosity=0)

    def test_the_next_stage_begins_with_the_last_step(self):
        Y, D, X = problem_data()
        run = SimCO(self.optimizer(), mu=0.1).begin()
        (D, X), (first,) = searches_of(run, Y, D, X)
        _, (second,) = searches_of(run, Y, D, X, iteration=1)
        # The search begins with a step of length 1, and the next where that ended.
        assert first.probes[0][0] == 1 / first.norm
        assert second.probes[0][0] == first.t

    def test_the_next_set_begins_with_the_last_step(self):
        Y, D, X = problem_data()
        _, searches = searches_of(SimCO(self.optimizer(), schedule=[[0, 1], [2, 3]]), Y, D, X)
        assert searches[1].probes[0][0] == searches[0].t

    @pytest.mark.parametrize(
        "optimizer",
        [
            lambda: None,
            lambda: SteepestDescent(line_searcher=GoldenSection(), max_iterations=2),
            lambda: SteepestDescent(max_iterations=3),  # Pymanopt's searchers begin anew each time
            lambda: ConjugateGradient(max_iterations=3),
        ],
        ids=["default", "golden section", "back-tracking", "adaptive"],
    )
    def test_a_resumed_run_goes_on_as_if_there_had_been_no_break(self, optimizer):
        Y, D, X = problem_data()
        rule = SimCO(optimizer(), mu=0.1)
        first = rule.begin()
        D, X = first(Y, D, X, iteration=0)
        second = rule.begin(memory=first.memory)
        one, other = (run(Y, D, X, iteration=1) for run in (first, second))
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1].data, other[1].data)

    @pytest.mark.parametrize(
        "optimizer", [TrustRegions(max_iterations=1), ConjugateGradient(max_iterations=3)]
    )
    def test_optimizers_without_step_memory_store_nothing(self, optimizer):
        Y, D, X = problem_data()
        run = SimCO(optimizer).begin(memory={})
        run(Y, D, X, iteration=1)
        assert run.memory == {}

    @pytest.mark.parametrize("unused", [(), (0,)], ids=["all used", "first atom unused"])
    @pytest.mark.parametrize("schedule", [AllAtoms(), OneAtATime()], ids=repr)
    @pytest.mark.parametrize("optimizer", [None, "steepest"])
    def test_every_run_begins_without_step_lengths_of_others(self, optimizer, schedule, unused):
        Y, D, X = problem_data()
        X = scipy.sparse.csc_array(scipy.sparse.diags_array(np.isin(np.arange(D_), unused) * -1.0 + 1) @ X)
        X.eliminate_zeros()
        rule = SimCO(None if optimizer is None else self.optimizer(), mu=[0.1, 0.01], schedule=schedule)
        runs = []
        for _ in range(2):
            D_run, X_run, run = D, X, rule.begin(3)
            for t in range(3):
                D_run, X_run = run(Y, D_run, X_run, iteration=t)
            runs.append((D_run, X_run.data))
        np.testing.assert_array_equal(runs[0][0], runs[1][0])
        np.testing.assert_array_equal(runs[0][1], runs[1][1])


class TestPrinting:
    @pytest.mark.parametrize(
        "optimizer",
        [
            SteepestDescent(max_iterations=2),
            ConjugateGradient(max_iterations=2),
            TrustRegions(max_iterations=2),
            LBFGS(max_iterations=2),
            NelderMead(max_iterations=2),
            ParticleSwarm(max_iterations=2),
        ],
        ids=lambda optimizer: type(optimizer).__name__,
    )
    def test_no_optimizer_prints(self, optimizer, capsys):
        Y, D, X = problem_data(n=30)
        SimCO(optimizer, schedule=Blocks(6))(Y, D, X)
        assert capsys.readouterr().out == ""
        assert optimizer._verbosity == 2  # as it was given

    def test_an_error_leaves_the_verbosity_as_it_was(self, capsys):
        class Broken(SteepestDescent):
            def run(self, problem, **kwargs):
                raise RuntimeError("out of order")

        optimizer = Broken()
        with pytest.raises(RuntimeError, match="out of order"):
            SimCO(optimizer)(*problem_data())
        assert optimizer._verbosity == 2
