"""The outer loop: what it returns, why it ends, what it records, and how well it recovers a dictionary."""

import numpy as np
import pytest
from pymanopt.optimizers import SteepestDescent

from manifold_dl import (
    KSVD,
    MOD,
    OMP,
    EarlyStopping,
    GoldenSection,
    History,
    Progress,
    Reason,
    ReplaceAtoms,
    Result,
    SimCO,
    datasets,
    learn_dictionary,
    metrics,
    regularizers,
    update_problem,
)

D_TRUE, X_TRUE, Y = datasets.synthetic(8, 12, 90, sparsity=2, snr_db=20, rng=0)
CODER = OMP(sparsity=2)
UPDATES = [SimCO(mu=0.1), KSVD(), MOD()]
NAMES = ["simco", "ksvd", "mod"]


def learn(signals=Y, n_atoms=12, **options):
    return learn_dictionary(signals, n_atoms, **{"coder": CODER, "max_iter": 5, "rng": 0, **options})


def error(signals, dictionary, codes):
    """‖Y − DX‖²/n, written out with dense arrays."""
    return np.sum((signals - dictionary @ codes.toarray()) ** 2) / signals.shape[1]


class Recorder:
    """A callback that keeps every step, and raises or stops where it is told to."""

    def __init__(self, stop_at=None, raise_at=None):
        self.steps, self.calls, self.stop_at, self.raise_at = [], [], stop_at, raise_at

    def begin(self, total):
        self.calls.append(f"begin {total}")

    def end(self):
        self.calls.append("end")

    def __call__(self, step):
        self.steps.append(step)
        if step.iteration == self.raise_at:
            raise KeyboardInterrupt
        return step.iteration == self.stop_at


class Interrupted:
    """A coder that is interrupted the k-th time it is called."""

    def __init__(self, *calls):
        self.calls, self.count = calls, 0

    def encode(self, signals, dictionary):
        self.count += 1
        if self.count in self.calls:
            raise KeyboardInterrupt
        return CODER.encode(signals, dictionary)


# What comes out


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_result_has_the_dtype_of_the_data_and_unit_atoms(update, dtype):
    recorder = Recorder()
    result = learn(Y.astype(dtype), update=update, callbacks=[recorder])
    assert result.dictionary.dtype == result.codes.dtype == dtype
    assert all(step.dictionary.dtype == step.codes.dtype == dtype for step in recorder.steps)
    assert result.dictionary.shape == (8, 12) and result.codes.shape == (12, 90)
    # A norm of 8 numbers is exact to a few units in the last place.
    np.testing.assert_allclose(np.linalg.norm(result.dictionary, axis=0), 1, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
def test_codes_are_the_coders_codes_for_the_final_dictionary(update):
    result = learn(update=update)
    expected = CODER.encode(Y, result.dictionary)
    np.testing.assert_array_equal(result.codes.toarray(), expected.toarray())


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
def test_learning_lowers_the_loss(update):
    first = learn(update=update, max_iter=1)
    last = learn(update=update, max_iter=20)
    assert error(Y, last.dictionary, last.codes) < error(Y, first.dictionary, first.codes)


def test_an_update_is_simco_unless_another_is_named():
    # SimCO's own default supposes 50 iterations; the loop's ends the ridge at three fifths of any number.
    one, other = learn(max_iter=50, tol=0.0), learn(update=SimCO(), max_iter=50, tol=0.0)
    np.testing.assert_array_equal(one.dictionary, other.dictionary)
    ridge = [0.2] * 6 + [0.0]
    one, other = learn(max_iter=10), learn(update=SimCO(mu=ridge), max_iter=10)
    np.testing.assert_array_equal(one.dictionary, other.dictionary)


def test_layout_of_the_signals_does_not_matter():
    expected = learn().dictionary
    frozen = Y.copy()
    frozen.flags.writeable = False
    wide = np.repeat(Y, 2, axis=1)[:, ::2]
    for signals in (np.asfortranarray(Y), frozen, wide, Y.tolist()):
        np.testing.assert_array_equal(learn(signals).dictionary, expected)


def test_signals_are_left_alone():
    before = Y.copy()
    learn()
    np.testing.assert_array_equal(Y, before)


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
def test_scaling_the_signals_scales_the_codes_and_nothing_else(update):
    one, other = learn(update=update), learn(Y * 2.0**-40, update=update)
    np.testing.assert_array_equal(other.dictionary, one.dictionary)  # a power of two rounds nothing
    np.testing.assert_array_equal(other.codes.toarray(), one.codes.toarray() * 2.0**-40)
    assert other.history.replaced.tolist() == one.history.replaced.tolist()


@pytest.mark.parametrize(
    ("signals", "n_atoms"),
    [(np.zeros((8, 20)), 5), (Y[:, :1], 5), (Y[:, :4], 12), (Y, 1), (np.repeat(Y[:, :1], 20, axis=1), 3)],
    ids=["zeros", "one signal", "fewer signals than atoms", "one atom", "equal signals"],
)
def test_degenerate_data(signals, n_atoms):
    result = learn(signals, n_atoms, coder=OMP(sparsity=1))
    assert np.isfinite(result.dictionary).all() and np.isfinite(result.codes.data).all()
    np.testing.assert_allclose(np.linalg.norm(result.dictionary, axis=0), 1, rtol=1e-15)


# Why it ends


def test_iteration_limit():
    result = learn(max_iter=3, tol=0)
    assert result.reason is Reason.ITERATION_LIMIT and result.n_iter == 3


def test_converged_after_three_calm_iterations_and_not_before():
    # Signals that are multiples of the atoms: nothing is left to learn from the first iteration on.
    signals = np.eye(4)[:, [0, 1, 2, 3] * 10]
    options = {"coder": OMP(sparsity=1), "init": np.eye(4), "max_iter": 50}
    result = learn(signals, 4, update=SimCO(mu=0.0), **options)
    assert result.reason is Reason.CONVERGED and result.n_iter == 4


def test_not_converged_before_the_ridge_has_its_last_value():
    signals = np.eye(4)[:, [0, 1, 2, 3] * 10]
    options = {"coder": OMP(sparsity=1), "init": np.eye(4), "max_iter": 50}
    result = learn(signals, 4, update=SimCO(mu=[0.1] * 10 + [0.0]), **options)
    # The ridge falls to 0 at iteration 10, where the loss changes for the last time; 11, 12 and 13 are calm.
    assert result.reason is Reason.CONVERGED and result.n_iter == 14


def test_no_tolerance_no_convergence():
    signals = np.eye(4)[:, [0, 1, 2, 3] * 10]
    result = learn(signals, 4, coder=OMP(sparsity=1), init=np.eye(4), max_iter=8, tol=0)
    assert result.reason is Reason.ITERATION_LIMIT and result.n_iter == 8


def test_a_callback_stops_it():
    recorder = Recorder(stop_at=2)
    result = learn(callbacks=[recorder], max_iter=9)
    assert result.reason is Reason.STOPPED and result.n_iter == 3
    # The dictionary is the one that the callback saw, before any replacement.
    np.testing.assert_array_equal(result.dictionary, recorder.steps[-1].dictionary)


@pytest.mark.parametrize("k", [0, 3])
def test_interrupted_in_a_callback(k):
    recorder = Recorder(raise_at=k)
    result = learn(callbacks=[recorder], max_iter=9)
    assert result.reason is Reason.INTERRUPTED and result.n_iter == k + 1
    best = min(recorder.steps, key=lambda step: step.loss)
    np.testing.assert_array_equal(result.dictionary, best.dictionary)
    np.testing.assert_array_equal(result.codes.toarray(), CODER.encode(Y, best.dictionary).toarray())
    assert recorder.calls == ["begin 9", "end"]


def test_interrupted_while_the_loss_is_rising_returns_the_best():
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
def test_interrupted_in_the_coder(k):
    recorder = Recorder()
    result = learn(coder=Interrupted(k), callbacks=[recorder], max_iter=9, init="dct")
    assert result.reason is Reason.INTERRUPTED and result.n_iter == k - 1
    np.testing.assert_array_equal(result.codes.toarray(), CODER.encode(Y, result.dictionary).toarray())
    if k > 1:
        best = min(recorder.steps, key=lambda step: step.loss)
        np.testing.assert_array_equal(result.dictionary, best.dictionary)


def test_interrupted_twice_returns_the_codes_of_the_update():
    recorder = Recorder()
    result = learn(coder=Interrupted(3, 4), callbacks=[recorder])
    best = min(recorder.steps, key=lambda step: step.loss)
    np.testing.assert_array_equal(result.codes.toarray(), best.codes.toarray())


def test_interrupted_twice_before_there_is_anything_is_an_interrupt():
    with pytest.raises(KeyboardInterrupt):
        learn(coder=Interrupted(1, 2))


def test_an_error_is_not_swallowed_and_callbacks_end():
    recorder = Recorder()

    def broken(signals, dictionary, codes, **_):
        raise RuntimeError("broken update")

    with pytest.raises(RuntimeError, match="broken update"):
        learn(update=broken, callbacks=[recorder])
    assert recorder.calls == ["begin 5", "end"]


# What it records


def test_history_holds_what_the_callbacks_saw():
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


def test_a_history_of_ones_own_is_filled_and_begins_afresh():
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


# Reproducibility


def test_threads_do_not_change_a_bit():
    signals = datasets.synthetic(8, 12, 5000, sparsity=2, snr_db=20, rng=1).signals  # several blocks
    one, two = (learn(signals, max_iter=3, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.dictionary, two.dictionary)
    np.testing.assert_array_equal(one.codes.data, two.codes.data)
    np.testing.assert_array_equal(one.history.loss, two.history.loss)


def test_the_seed_decides_and_nothing_else():
    same = [learn(rng=seed).dictionary for seed in (3, 3, np.random.default_rng(3))]
    for D in same[1:]:
        np.testing.assert_array_equal(D, same[0])
    assert not np.array_equal(learn(rng=4).dictionary, same[0])
    generator = np.random.default_rng(3)
    assert not np.array_equal(learn(rng=generator).dictionary, learn(rng=generator).dictionary)


def test_the_same_update_object_may_serve_many_runs():
    update = SimCO(mu=0.1)
    first = learn(update=update)
    learn(3 * Y[::-1], update=update, rng=1)  # leaves another step length behind
    np.testing.assert_array_equal(learn(update=update).dictionary, first.dictionary)


def test_the_global_generator_is_neither_read_nor_changed():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = learn(rng=5).dictionary
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(learn(rng=5).dictionary, first)


# What is refused


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"signals": np.where(Y > 1, np.nan, Y)}, "signals holds nan at row"),
        ({"signals": Y[0]}, "a matrix with two axes"),
        ({"signals": Y[:1], "coder": OMP(sparsity=1)}, "m=1"),
        ({"signals": Y * 1j}, "only real numbers"),
        ({"signals": np.zeros((8, 0))}, "it is empty"),
        ({"n_atoms": 0}, "n_atoms=0: give a whole number"),
        ({"n_atoms": 2.0}, r"n_atoms=2\.0: give a whole number"),
        ({"n_atoms": None}, "n_atoms=None: give a whole number"),
        ({"n_atoms": True}, "n_atoms=True: give a whole number"),
        ({"max_iter": 0}, "max_iter=0: give a whole number"),
        ({"max_iter": np.inf}, "max_iter=inf: give a whole number"),
        ({"tol": -1e-3}, "tol=-0.001"),
        ({"tol": None}, "tol=None"),
        ({"tol": np.nan}, "tol=nan"),
        ({"init": "svd"}, "init='svd': give 'data', 'random', 'dct' or"),
        ({"init": None}, "init has dtype object"),
        ({"init": np.ones((8, 11))}, "init has 11 atoms, but n_atoms=12"),
        ({"init": np.ones((7, 12))}, "init has atoms of length 7"),
        ({"init": np.zeros((8, 12))}, "init column 0 is zero"),
        ({"threads": 0}, "threads=0"),
        ({"coder": None}, "pass an object with a method encode"),
        ({"coder": OMP}, "pass an object with a method encode"),
        ({"coder": OMP(sparsity=9)}, "sparsity=9 exceeds the signal dimension"),
        ({"update": SimCO}, "update: .* cannot be called as such"),
        ({"update": 3}, "update: 3 cannot be called"),
        ({"replace": ReplaceAtoms}, "replace: .* cannot be called as such"),
        ({"callbacks": [EarlyStopping]}, "callbacks: .* cannot be called as such"),
        ({"callbacks": Progress()}, "pass a list of them"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value,
)
def test_refused_with_a_sentence(options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        learn(**options)


# What is shown


def test_a_result_prints_a_short_summary():
    result = learn(max_iter=2)
    text = str(result)
    assert text == repr(result) and text.count("\n") == 2
    assert "12 atoms of length 8 learned from 90 signals in 2 iterations." in text
    assert str(Reason.ITERATION_LIMIT) in text and f"{result.history.loss[-1]:.4g}" in text


def test_a_result_without_iterations_prints_too():
    assert "0 iterations" in str(learn(coder=Interrupted(1)))


@pytest.mark.parametrize("reason", Reason)
def test_reasons_are_sentences(reason):
    assert str(reason)[0].isupper() and str(reason).endswith(".") and " " in str(reason)


def test_results_are_not_compared_entry_by_entry():
    result = learn(max_iter=1)
    assert result == result and result != Result(
        result.dictionary, result.codes, result.history, result.reason
    )


# How well it learns: m = 16, d = 32, S = 4, noiseless, 50 outer iterations, one random start


def papers_update():
    """Section VI-B: one golden-section step an iteration, μ = 0.1 for 30 of them and then 0."""
    return SimCO(SteepestDescent(line_searcher=GoldenSection(), max_iterations=1), mu=[0.1] * 30 + [0.0])


def recover(n, seed, update):
    """The share of atoms recovered and the loss."""
    D, _, signals = datasets.synthetic(16, 32, n, sparsity=4, rng=seed)
    result = learn_dictionary(
        signals, 32, coder=OMP(sparsity=4), update=update, max_iter=50, init="random", tol=0, rng=1000 + seed
    )
    return metrics.recovery(result.dictionary, D), error(signals, result.dictionary, result.codes)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share"), [(500, 0.75), (1500, 0.9)])
def test_default_update_recovers_the_dictionary(n, share):
    assert np.mean([recover(n, seed, SimCO())[0] for seed in range(10)]) >= share


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 500, 1500])
def test_papers_setting_beats_mod_and_ksvd(n):
    ours, mod, ksvd = (
        np.mean([recover(n, seed, update)[1] for seed in range(10)])
        for update in (papers_update(), MOD(), KSVD())
    )
    assert ours < mod and ours < ksvd


def test_recovery_in_small():
    """Two of the ten seeds above, with the shares that the ten have to reach on average."""
    assert np.mean([recover(500, seed, SimCO())[0] for seed in (0, 1)]) >= 0.75


def test_papers_setting_beats_mod_and_ksvd_in_small():
    ours, mod, ksvd = (
        np.mean([recover(200, seed, update)[1] for seed in range(2)])
        for update in (papers_update(), MOD(), KSVD())
    )
    assert ours < mod and ours < ksvd
