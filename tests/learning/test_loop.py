"""The outer loop: why it ends, and what it records."""

import numpy as np
import pytest
from learning_runs import CODER, D_TRUE, Interrupted, Recorder, Y, error, learn
from pymanopt.optimizers import SteepestDescent

from manifold_dl import (
    KSVD,
    MOD,
    OMP,
    GoldenSection,
    History,
    Reason,
    ReplaceAtoms,
    SimCO,
    regularizers,
    update_problem,
)

# Why it ends


def test_run_ends_at_the_iteration_limit():
    result = learn(max_iter=3, tol=0)
    assert result.reason is Reason.ITERATION_LIMIT and result.n_iter == 3


def test_run_converges_after_three_iterations_without_change():
    # Signals that are multiples of the atoms: nothing is left to learn from the first iteration on.
    signals = np.eye(4)[:, [0, 1, 2, 3] * 10]
    options = {"coder": OMP(sparsity=1), "init": np.eye(4), "max_iter": 50}
    result = learn(signals, 4, update=SimCO(mu=0.0), **options)
    assert result.reason is Reason.CONVERGED and result.n_iter == 4


def test_not_converged_before_the_ridge_has_its_last_value():
    signals = np.eye(4)[:, [0, 1, 2, 3] * 10]
    options = {"coder": OMP(sparsity=1), "init": np.eye(4), "max_iter": 50}
    result = learn(signals, 4, update=SimCO(mu=[0.1] * 10 + [0.0]), **options)
    # The ridge falls to 0 at iteration 10, where the loss changes for the last time: 11, 12 and 13 stagnate.
    assert result.reason is Reason.CONVERGED and result.n_iter == 14


def test_run_without_tolerance_never_converges():
    signals = np.eye(4)[:, [0, 1, 2, 3] * 10]
    result = learn(signals, 4, coder=OMP(sparsity=1), init=np.eye(4), max_iter=8, tol=0)
    assert result.reason is Reason.ITERATION_LIMIT and result.n_iter == 8


def test_callback_returning_true_stops_the_run():
    recorder = Recorder(stop_at=2)
    result = learn(callbacks=[recorder], max_iter=9)
    assert result.reason is Reason.STOPPED and result.n_iter == 3
    # The dictionary is the one that the callback saw, before any replacement.
    np.testing.assert_array_equal(result.dictionary, recorder.steps[-1].dictionary)


@pytest.mark.parametrize("k", [0, 3])
def test_interrupt_in_a_callback_returns_the_best_dictionary(k):
    recorder = Recorder(raise_at=k)
    result = learn(callbacks=[recorder], max_iter=9)
    assert result.reason is Reason.INTERRUPTED and result.n_iter == k + 1
    best = min(recorder.steps, key=lambda step: step.loss)
    np.testing.assert_array_equal(result.dictionary, best.dictionary)
    np.testing.assert_array_equal(result.codes.toarray(), CODER.encode(Y, best.dictionary).toarray())
    assert recorder.calls == ["begin 9", "end"]


def test_interrupt_while_the_loss_rises_returns_the_best_dictionary():
    """An update that gets worse: the best dictionary is the first one."""
    rng = np.random.default_rng(0)

    def worse(signals, dictionary, codes, *, iteration, rng=rng):
        if iteration == 0:
            return dictionary, codes
        D = dictionary + iteration * rng.standard_normal(dictionary.shape)
        return D / np.linalg.norm(D, axis=0), codes

    recorder = Recorder(raise_at=3)
    result = learn(update=worse, callbacks=[recorder], max_iter=9, replace=None)
    assert min(range(4), key=lambda k: recorder.steps[k].loss) == 0
    np.testing.assert_array_equal(result.dictionary, recorder.steps[0].dictionary)


@pytest.mark.parametrize("k", [1, 4])
def test_interrupt_in_the_coder_returns_the_best_dictionary(k):
    recorder = Recorder()
    result = learn(coder=Interrupted(k), callbacks=[recorder], max_iter=9, init="dct")
    assert result.reason is Reason.INTERRUPTED and result.n_iter == k - 1
    np.testing.assert_array_equal(result.codes.toarray(), CODER.encode(Y, result.dictionary).toarray())
    if k > 1:
        best = min(recorder.steps, key=lambda step: step.loss)
        np.testing.assert_array_equal(result.dictionary, best.dictionary)


def test_second_interrupt_returns_the_codes_of_the_update():
    recorder = Recorder()
    result = learn(coder=Interrupted(3, 4), callbacks=[recorder])
    best = min(recorder.steps, key=lambda step: step.loss)
    np.testing.assert_array_equal(result.codes.toarray(), best.codes.toarray())


def test_second_interrupt_before_any_codes_is_raised():
    with pytest.raises(KeyboardInterrupt):
        learn(coder=Interrupted(1, 2))


def test_error_is_raised_after_the_callbacks_end():
    recorder = Recorder()

    def broken(signals, dictionary, codes, **_):
        raise RuntimeError("broken update")

    with pytest.raises(RuntimeError, match="broken update"):
        learn(update=broken, callbacks=[recorder])
    assert recorder.calls == ["begin 5", "end"]


# What it records


def test_history_holds_loss_and_objective_of_every_step():
    recorder = Recorder()
    update = SimCO(mu=[0.1, 0.05, 0.0], regularizers=[regularizers.Coherence(0.01)])
    result = learn(update=update, callbacks=[recorder])
    history, steps = result.history, recorder.steps
    assert history.iteration.tolist() == list(range(5)) and len(history) == len(steps) == 5
    for t, step in enumerate(steps):
        D, X = step.dictionary, step.codes.toarray()
        # The same sums in another order: a thousand terms, each rounded once.
        assert history.loss[t] == pytest.approx(error(Y, D, step.codes), rel=1e-12)
        objective = np.sum((Y - D @ X) ** 2) + [0.1, 0.05, 0.0, 0.0, 0.0][t] * np.sum(X**2)
        objective += regularizers.Coherence(0.01).value(D)
        assert history.objective[t] == pytest.approx(objective, rel=1e-12)
        assert history.replaced[t] == len(step.replaced)
    assert (np.diff(history.seconds) > 0).all()
    assert history.replaced[-1] == 0  # the last iteration replaces nothing, or the result would be unlearned


def test_ksvds_ridge_is_part_of_its_objective():
    recorder = Recorder()
    history = learn(update=KSVD(mu=0.3), callbacks=[recorder], max_iter=1).history
    step = recorder.steps[0]
    expected = np.sum((Y - step.dictionary @ step.codes) ** 2) + 0.3 * np.sum(step.codes.data**2)
    assert history.objective[0] == pytest.approx(expected, rel=1e-12)


def test_evaluations_are_counted():
    def three_values_and_a_gradient(signals, dictionary, codes, **_):
        problem = update_problem(signals, codes)
        for shift in (0, 1, 2):
            moved = dictionary + 0.01 * shift
            problem.cost(moved / np.linalg.norm(moved, axis=0))
        problem.euclidean_gradient(moved / np.linalg.norm(moved, axis=0))
        return dictionary, codes

    history = learn(update=three_values_and_a_gradient, max_iter=2, replace=None).history
    assert history.value.tolist() == [3, 3] and history.gradient.tolist() == [1, 1]
    assert history.hessian.tolist() == history.probe.tolist() == [0, 0]
    closed_form = learn(update=MOD(), max_iter=2).history
    assert closed_form.value.tolist() == [0, 0]


def test_golden_section_probes_are_counted():
    update = SimCO(SteepestDescent(line_searcher=GoldenSection(), max_iterations=1), mu=0.1)
    history = learn(update=update, max_iter=3).history
    assert (history.probe >= 5).all() and (history.gradient >= 1).all() and (history.hessian == 0).all()


def test_replacements_are_recorded_and_used():
    calls = []

    def policy(signals, dictionary, codes):
        calls.append(dictionary)
        changed = dictionary.copy()
        changed[:, [1, 3]] = dictionary[:, [3, 1]]
        return changed, np.array([1, 3])

    recorder = Recorder()
    result = learn(replace=policy, max_iter=4, callbacks=[recorder], tol=1.0)
    assert result.history.replaced.tolist() == [2, 2, 2, 0]
    assert [step.replaced.tolist() for step in recorder.steps] == [[1, 3]] * 3 + [[]]
    assert len(calls) == 3
    for step, seen in zip(recorder.steps, calls, strict=False):
        np.testing.assert_array_equal(step.dictionary, seen)  # a step shows the dictionary that was fitted


def test_without_a_policy_nothing_is_replaced():
    duplicated = np.repeat(D_TRUE[:, :6], 2, axis=1)
    assert learn(init=duplicated, replace=None).history.replaced.sum() == 0
    assert learn(init=duplicated, replace=ReplaceAtoms(), update=MOD()).history.replaced.sum() > 0


def test_given_history_is_filled_and_cleared_by_the_next_run():
    history = History(condition=True, coherence=True)
    first = learn(callbacks=[history], max_iter=3)
    assert len(history) == 3 and first.history.kappa.shape == (3,)
    second = learn(callbacks=[history], max_iter=2)
    assert len(history) == 2 and second.n_iter == 2
    assert first.n_iter == 3  # not taken away from the earlier result


def test_codes_of_the_last_iteration_are_offered_as_a_warm_start():
    seen = []

    class Warm:
        def encode(self, signals, dictionary, codes=None):
            seen.append(codes)
            return CODER.encode(signals, dictionary)

    recorder = Recorder()
    learn(coder=Warm(), max_iter=3, callbacks=[recorder])
    assert seen[0] is None
    assert [codes is step.codes for codes, step in zip(seen[1:], recorder.steps, strict=True)] == [True] * 3


def test_callbacks_may_come_from_a_generator():
    result = learn(callbacks=(c for c in [Recorder(stop_at=0)]))
    assert result.reason is Reason.STOPPED
