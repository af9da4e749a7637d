"""A run owns what changes in it: rules and optimizers are values, and loops bind schedules of μ."""

import inspect
import threading
from dataclasses import dataclass, replace

import numpy as np
import pymanopt
import pytest
from pymanopt.optimizers import ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions
from typer.testing import CliRunner

from manifold_dl import (
    LBFGS,
    OMP,
    Checkpoint,
    ComponentError,
    GoldenSection,
    ManifoldDictionaryLearning,
    SimCO,
    WolfeSearch,
    datasets,
    learn_dictionary,
    load,
)
from manifold_dl.cli import app
from manifold_dl.learning.minibatch import SCHEDULED_BATCHES, OnlineState, online_step
from manifold_dl.optimizers import OptimizerRun
from manifold_dl.schedules import Blocks, OneAtATime
from manifold_dl.updates import begin
from manifold_dl.updates.ridge import Sawtooth, TwoStep

CODER = OMP(sparsity=2)
Y = datasets.synthetic(8, 12, 80, sparsity=2, snr_db=20, rng=0).signals
START = Y[:, :12] / np.linalg.norm(Y[:, :12], axis=0)
CODES = CODER.encode(Y, START)

OPTIMIZERS = {
    "default": lambda: None,
    "golden section": lambda: SteepestDescent(line_searcher=GoldenSection(), max_iterations=2),
    "conjugate gradients": lambda: ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=3),
    "back-tracking": lambda: SteepestDescent(max_iterations=3),
    "adaptive": lambda: ConjugateGradient(max_iterations=3),
    "trust region": lambda: TrustRegions(max_iterations=2),
    "L-BFGS": lambda: LBFGS(max_iterations=3),
}
every_optimizer = pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())


def learned(signals, **settings):
    return learn_dictionary(signals, 12, coder=CODER, rng=0, threads=1, **settings).dictionary


class TestOwnership:
    @every_optimizer
    def test_two_threads_share_a_rule_and_get_the_bits_of_one_after_the_other(self, optimizer):
        both = [datasets.synthetic(8, 12, 600, sparsity=2, rng=seed).signals for seed in (0, 9)]
        rule, found, together = SimCO(optimizer(), mu=0.1), {}, threading.Barrier(2)

        def learn(i):
            together.wait()
            found[i] = learned(both[i], update=rule, max_iter=6, tol=0)

        alone = [learned(signals, update=rule, max_iter=6, tol=0) for signals in both]
        threads = [threading.Thread(target=learn, args=(i,)) for i in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in (0, 1):
            np.testing.assert_array_equal(found[i], alone[i])

    @every_optimizer
    @pytest.mark.parametrize("schedule", [None, Blocks(5), OneAtATime()], ids=repr)
    def test_a_second_run_with_the_same_rule_is_the_first_again(self, optimizer, schedule):
        rule = SimCO(optimizer(), mu=0.1)
        rule = rule if schedule is None else replace(rule, schedule=schedule)
        np.testing.assert_array_equal(*(learned(Y, update=rule, max_iter=3) for _ in range(2)))

    @pytest.mark.parametrize(
        "optimizer",
        [make() for name, make in OPTIMIZERS.items() if name != "default"]
        + [NelderMead(max_iterations=2), ParticleSwarm(max_iterations=2)],
        ids=lambda optimizer: type(optimizer).__name__,
    )
    def test_the_users_optimizer_is_left_as_it_was(self, optimizer):
        before = vars(optimizer).copy()
        searcher = getattr(optimizer, "_line_searcher", None)
        state = dict(vars(searcher)) if searcher else {}
        SimCO(optimizer, schedule=Blocks(6))(Y, START, CODES, rng=0)
        learned(Y, update=SimCO(optimizer), max_iter=2)
        assert vars(optimizer) == before and before["_verbosity"] == 2
        assert (dict(vars(searcher)) if searcher else {}) == state

    def test_an_optimizer_used_before_gives_the_same_bits_as_a_new_one(self):
        fresh, used = (SteepestDescent(line_searcher=WolfeSearch(), max_iterations=2) for _ in range(2))
        problem_of_another = learned(Y, update=SimCO(fresh), max_iter=2)
        used.line_searcher = WolfeSearch()
        used.line_searcher._memory = 1e-3  # as an earlier run of the user's would leave it
        np.testing.assert_array_equal(learned(Y, update=SimCO(used), max_iter=2), problem_of_another)

    def test_restarts_do_not_share_their_steps(self):
        # From a given dictionary every restart of a rule without randomness is the same run.
        rule = SimCO(mu=0.1)
        once = learned(Y, update=rule, init=START, replace=None, max_iter=4)
        again = learned(Y, update=rule, init=START, replace=None, max_iter=4, restarts=3)
        np.testing.assert_array_equal(once, again)

    def test_limits_that_a_population_method_sets_for_one_block_do_not_hold_for_another(self):
        # Pymanopt's particle swarm keeps the population and the limits of its first problem.
        seen = []

        class Swarm(ParticleSwarm):
            def run(self, problem, *, initial_point=None):
                seen.append((problem.manifold.dim, len(initial_point)))
                return super().run(problem, initial_point=initial_point)

        SimCO(Swarm(max_iterations=1), schedule=[[0], [1, 2, 3]], mu=0.1)(Y[:2], START[:2], CODES, rng=0)
        assert seen == [(1, 10), (3, 30)]  # ten particles a dimension

    def test_an_optimizer_that_cannot_be_copied_is_named(self):
        class Locked(SteepestDescent):
            def __init__(self):
                super().__init__()
                self.lock = threading.Lock()

        with pytest.raises(ComponentError, match=r"optimizer .*Locked.* cannot be copied.*__deepcopy__"):
            SimCO(Locked())(Y, START, CODES)

    @every_optimizer
    def test_a_resumed_run_has_the_bits_of_one_without_a_break(self, optimizer, tmp_path):
        rule, path = SimCO(optimizer()), tmp_path / "run.npz"

        def stop(step):
            return step.iteration == 2

        whole = learned(Y, update=rule, max_iter=6, tol=0)
        learned(Y, update=rule, max_iter=6, tol=0, callbacks=[Checkpoint(path, every=1), stop])
        np.testing.assert_array_equal(learned(Y, update=rule, max_iter=6, tol=0, resume=path), whole)

    def test_a_rule_of_the_users_may_begin_a_run_of_its_own(self, tmp_path):
        @dataclass
        class Counting:
            rule: SimCO
            max_iter: int
            calls: int

            def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
                self.calls += 1
                return self.rule(signals, dictionary, codes)

            @property
            def memory(self):
                return {"calls": self.calls}

        @dataclass(frozen=True)
        class Rule:
            begun: list

            def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
                raise AssertionError("a loop calls the run, not the rule")

            def begin(self, max_iter, memory):
                self.begun.append(Counting(SimCO(mu=0.1), max_iter, int(memory.get("calls", 0))))
                return self.begun[-1]

        rule, path = Rule([]), tmp_path / "run.npz"
        learned(Y, update=rule, max_iter=3, tol=0, restarts=2)
        assert [(run.max_iter, run.calls) for run in rule.begun] == [(3, 3), (3, 3)]
        learned(Y, update=rule, max_iter=3, callbacks=[Checkpoint(path, every=1), lambda step: True])
        learned(Y, update=rule, max_iter=3, tol=0, resume=path)
        assert rule.begun[-1].calls == 3


class TestOneProblemPerSupport:
    @pytest.fixture
    def problems(self, monkeypatch):
        """What the optimizers of a run are given: problem, start, and the value of the objective there."""
        seen, minimize = [], OptimizerRun.minimize

        def watched(self, problem, start, rng=None):
            codes = problem.codes(start)
            seen.append((problem.objective, codes, problem.objective.value(start), start.copy()))
            return minimize(self, problem, start, rng)

        monkeypatch.setattr(OptimizerRun, "minimize", watched)
        return seen

    def test_each_new_support_has_an_objective_and_a_cache_of_its_own(self, problems):
        run = SimCO(mu=0.1).begin(3)
        supports = [OMP(sparsity=s).encode(Y, START) for s in (1, 2, 3)]
        for iteration, codes in enumerate(supports):
            run(Y, START, codes, iteration=iteration)
        objectives = [objective for objective, *_ in problems]
        assert len({id(one) for one in objectives}) == len({id(one.cache) for one in objectives}) == 3
        for (_, codes, value, start), given in zip(problems, supports, strict=True):
            np.testing.assert_array_equal(codes.indices, given.indices)
            # At the same dictionary another support has another value: nothing of the last cache is left.
            expected = 0.0
            mu = run.mu_at(0)
            for j in range(Y.shape[1]):
                D = start[:, given.indices[given.indptr[j] : given.indptr[j + 1]]]
                x = np.linalg.solve(D.T @ D + mu * np.eye(D.shape[1]), D.T @ Y[:, j])
                expected += np.sum((Y[:, j] - D @ x) ** 2) + mu * np.sum(x**2)
            np.testing.assert_allclose(value, expected, rtol=1e-12)  # sums of 80 signals, rounded

    def test_signatures_are_inspected_once_per_run_and_not_per_problem(self, problems, monkeypatch):
        inspected = []

        def counting(function):
            def counted(*given, **options):
                inspected.append(given)
                return function(*given, **options)

            return counted

        learned(Y, max_iter=1, tol=0)  # what is inspected once for all runs
        for name in ("signature", "getfullargspec"):  # Pymanopt uses the latter
            monkeypatch.setattr(inspect, name, counting(getattr(inspect, name)))
        numbers = []
        for iterations in (2, 8):
            inspected.clear()
            problems.clear()
            learned(Y, max_iter=iterations, tol=0)
            assert len(problems) == iterations
            numbers.append(len(inspected))
        assert numbers[0] == numbers[1]

    def test_pymanopt_makes_one_problem_per_manifold_and_run(self, monkeypatch):
        made, initialise = [], pymanopt.Problem.__init__

        def counted(self, *given, **options):
            made.append(self)
            initialise(self, *given, **options)

        monkeypatch.setattr(pymanopt.Problem, "__init__", counted)
        rule = SimCO(TrustRegions(max_iterations=2), schedule=Blocks(5), mu=0.1)  # sets of 5, 5 and 2 atoms
        run, D, X = rule.begin(3), START, CODES
        for iteration in range(3):
            # With problems that were made for this iteration alone.
            expected = rule.begin(3)(Y, D, X, iteration=iteration, rng=iteration)
            made_for_others = len(made)
            D, X = run(Y, D, X, iteration=iteration, rng=iteration)
            assert len(made) - made_for_others == (2 if iteration == 0 else 0)
            np.testing.assert_array_equal(D, expected[0])
            np.testing.assert_array_equal(X.data, expected[1].data)

    def test_a_problem_of_another_set_has_new_counts_and_a_new_record(self, monkeypatch):
        seen, minimize = [], OptimizerRun.minimize

        def watched(self, problem, start, rng=None):
            point = minimize(self, problem, start, rng)
            seen.append((problem, problem.record, problem.counts))
            return point

        monkeypatch.setattr(OptimizerRun, "minimize", watched)
        SimCO(OPTIMIZERS["trust region"](), schedule=Blocks(4), mu=0.1).begin()(Y, START, CODES, rng=0)
        (problem, first, counts), (other, second, other_counts), _ = seen
        assert problem is other and first is not second and counts is not other_counts
        # An optimizer evaluates the start of its problem first: one value has been counted there.
        assert [record[0].evaluations for record in (first, second)] == [2, 2]
        assert all(record[0].value > record[-1].value for record in (first, second))

    @pytest.mark.parametrize("keeps_step", [False, True])
    def test_memory_of_a_foreign_line_searcher_ends_with_its_problem(self, keeps_step):
        seen = []

        class Remembering:
            """A user's line searcher: short steps, and how many of them it has made."""

            n_searches = 0

            def search(self, objective, manifold, x, d, f0, df0):
                seen.append(self.n_searches)
                self.n_searches += 1
                return 1e-3, manifold.retraction(x, d * (1e-3 / manifold.norm(x, d)))

        if keeps_step:
            Remembering.keeps_step = True
        optimizer = SteepestDescent(line_searcher=Remembering(), max_iterations=2)
        run, D, X = SimCO(optimizer, schedule=Blocks(4), mu=0.1).begin(2), START, CODES
        for iteration in range(2):
            D, X = run(Y, D, X, iteration=iteration, rng=iteration)
        assert seen == (list(range(12)) if keeps_step else [0, 1] * 6)


@dataclass(frozen=True)
class Falling:
    """A schedule of the user's: half of the iterations with a ridge, which `bind` says how many."""

    bound_to: tuple = ()

    def __call__(self, iteration):
        return 0.05

    def bind(self, max_iter):
        return [0.3] * (max_iter // 2) + [0.05]


class TestSchedulesOfTheRidge:
    def test_update_none_is_the_default_rule(self):
        for max_iter in (1, 4, 7):
            np.testing.assert_array_equal(
                learned(Y, max_iter=max_iter), learned(Y, update=SimCO(), max_iter=max_iter)
            )

    @pytest.mark.parametrize("max_iter", [1, 5, 10, 30, 50, 200])
    def test_the_default_has_a_ridge_in_three_fifths_of_the_iterations(self, max_iter):
        run, with_ridge = begin(SimCO(), max_iter), 3 * max_iter // 5
        assert [run.mu_at(t) for t in range(max_iter)] == [0.2] * with_ridge + [0.0] * (max_iter - with_ridge)

    @pytest.mark.parametrize(
        ("max_iter", "warm"),
        [(5, False), (10, False), (30, False), (50, False), (200, False), (5, True), (30, True)],
    )
    def test_function_and_estimator_give_the_same_bits(self, max_iter, warm):
        init = START if warm else "data"
        result = learn_dictionary(Y, 12, coder=CODER, max_iter=max_iter, rng=3, init=init)
        model = ManifoldDictionaryLearning(
            12, coder=CODER, max_iter=max_iter, random_state=3, init=START.T if warm else "data"
        ).fit(Y.T)
        np.testing.assert_array_equal(model.components_.T, result.dictionary)
        np.testing.assert_array_equal(model.history_.loss, result.history.loss)

    @pytest.mark.parametrize("max_iter", [5, 10, 30, 50, 200])
    def test_the_command_line_gives_the_bits_of_the_function(self, max_iter, tmp_path):
        data, out = tmp_path / "signals.npy", tmp_path / "result.npz"
        np.save(data, np.ascontiguousarray(Y.T))
        options = [
            "--atoms",
            "12",
            "--sparsity",
            "2",
            "--iterations",
            str(max_iter),
            "--seed",
            "3",
            "--quiet",
        ]
        outcome = CliRunner().invoke(app, ["learn", str(data), *options, "--out", str(out)])
        assert outcome.exit_code == 0, outcome.output
        result = learn_dictionary(Y, 12, coder=CODER, max_iter=max_iter, rng=3)
        np.testing.assert_array_equal(load(out).dictionary, result.dictionary)

    def test_a_loop_binds_a_schedule_of_the_users(self):
        run = begin(SimCO(mu=Falling()), 4)
        assert [run.mu_at(t) for t in range(5)] == [0.3, 0.3, 0.05, 0.05, 0.05]
        assert SimCO(mu=Falling()).mu_at(0) == 0.05
        bound = SimCO(mu=[0.3, 0.3, 0.05])
        np.testing.assert_array_equal(
            learned(Y, update=SimCO(mu=Falling()), max_iter=4), learned(Y, update=bound, max_iter=4)
        )

    def test_functions_and_sawtooth_schedules_do_not_depend_on_the_length(self):
        for mu in (Sawtooth(0.4, 0.1, period=3, until=5), lambda t: 0.1 / (1 + t)):
            assert [begin(SimCO(mu=mu), 20).mu_at(t) for t in range(4)] == [mu(t) for t in range(4)]
            assert SimCO(mu=mu).mu_at(None) == mu(0)

    def test_a_schedule_with_a_length_is_not_bound_again(self):
        assert TwoStep(max_iter=10).bind(50)(5) == 0.2 and TwoStep(max_iter=10).bind(50)(6) == 0.0
        assert TwoStep(ridge=0.3, fraction=0.5).bind(4)(1) == 0.3

    @pytest.mark.parametrize(
        ("mu", "error", "sentence"),
        [
            (lambda: TwoStep, TypeError, "pass an object, such as TwoStep"),
            (lambda: None, TypeError, "mu=None: the ridge is one number"),
            (lambda: TwoStep(fraction=1.5), ValueError, "fraction=1.5: a fraction of the iterations"),
            (lambda: TwoStep(ridge=-1), ValueError, "the ridge must be finite and not negative"),
        ],
    )
    def test_invalid_schedules_are_refused(self, mu, error, sentence):
        with pytest.raises(error, match=sentence):
            SimCO(mu=mu())

    def test_a_schedule_that_fails_is_named(self):
        def broken(iteration):
            raise KeyError(iteration)

        with pytest.raises(ComponentError, match=r"schedule of mu .* raised KeyError: 0"):
            SimCO(mu=broken)(Y, START, CODES)

    def test_a_warm_start_ends_about_where_it_began_or_below(self):
        # The ridge moves the atoms away for three fifths of the iterations, and then back. What remains is
        # the effect of OMP, whose codes need not be better for a better dictionary: over 12 draws and 2 to 30
        # iterations the most was 2.5 % above the start (with mu = 0, too), and the mean was always below it.
        ratios = []
        for seed in range(4):
            signals = datasets.synthetic(16, 32, 500, sparsity=4, snr_db=20, rng=seed).signals
            first = learn_dictionary(signals, 32, coder=OMP(sparsity=4), max_iter=20, rng=seed)
            for max_iter in (5, 10):
                second = learn_dictionary(
                    signals, 32, coder=OMP(sparsity=4), max_iter=max_iter, init=first.dictionary, rng=seed
                )
                errors = [np.sum((signals - r.dictionary @ r.codes) ** 2) for r in (second, first)]
                ratios.append(errors[0] / errors[1])
        assert np.mean(ratios) < 1 and max(ratios) < 1.05


class TestStreams:
    def test_a_schedule_is_bound_to_the_first_batches(self):
        for batch, mu in ((0, 0.2), (29, 0.2), (30, 0.0), (SCHEDULED_BATCHES + 7, 0.0)):
            one, other = (
                online_step(Y, START, OnlineState(np.zeros(12)), CODER, SimCO(mu=ridge), iteration=batch)[0]
                for ridge in (TwoStep(), mu)
            )
            np.testing.assert_array_equal(one, other)

    def test_after_fit_a_stream_continues_without_a_ridge(self):
        one, other = (
            ManifoldDictionaryLearning(12, coder=CODER, max_iter=5, random_state=0).fit(Y.T) for _ in range(2)
        )
        other.update = SimCO(mu=0.0)
        for model in (one, other):
            model.partial_fit(Y[:, :40].T)
        np.testing.assert_array_equal(one.components_, other.components_)

    def test_a_stream_does_not_change_its_rule(self):
        rule, ends = SimCO(mu=0.1), []
        for _ in range(2):
            D, state = START, OnlineState(np.zeros(12))
            for t in range(3):
                D, state, _ = online_step(Y[:, 20 * t : 20 * t + 20], D, state, CODER, rule, iteration=t)
            ends.append(D)
        np.testing.assert_array_equal(*ends)
