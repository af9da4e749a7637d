"""Histories, progress bars, early stopping, and checkpoints from which a run goes on as if never stopped."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from pymanopt.optimizers import SteepestDescent
from rich.console import Console

from manifold_dl import (
    KSVD,
    MOD,
    OMP,
    Checkpoint,
    EarlyStopping,
    GoldenSection,
    History,
    Lasso,
    Progress,
    Reason,
    SimCO,
    Step,
    datasets,
    learn_dictionary,
    metrics,
    schedules,
)
from manifold_dl.problem.counts import Counts

Y = datasets.synthetic(8, 12, 90, sparsity=2, snr_db=20, rng=0).signals


def learn(signals=Y, **options):
    settings = {"coder": OMP(sparsity=2), "update": SimCO(mu=[0.1, 0.0]), "max_iter": 8, "tol": 0, "rng": 0}
    return learn_dictionary(signals, 12, **{**settings, **options})


def step(loss, iteration=0):
    return Step(
        iteration, np.eye(2), None, loss, loss, 0.0, Counts(), np.zeros(0, np.intp), relative_loss=loss
    )


# History


def test_history_keeps_condition_and_coherence_on_request():
    seen = []
    history = History(condition=True, coherence=True)
    learn(callbacks=[history, lambda s: seen.append((s.dictionary, s.codes))], max_iter=3)
    assert history.kappa.tolist() == [metrics.condition_number(D, X) for D, X in seen]
    assert history.coherence.tolist() == [metrics.coherence(D) for D, _ in seen]


def test_columns_have_one_length_and_the_types_of_what_they_count():
    columns = learn(max_iter=3).history.to_dict()
    assert {len(column) for column in columns.values()} == {3}
    assert columns["iteration"].dtype.kind == columns["replaced"].dtype.kind == "i"
    assert columns["loss"].dtype == columns["objective"].dtype == columns["seconds"].dtype == np.float64
    assert "kappa" not in columns and "coherence" not in columns


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match="no column 'kappa'; it has iteration, loss"):
        _ = History().kappa


def test_columns_that_an_earlier_run_did_not_keep_are_unknown():
    history = History(coherence=True)
    history.restore({"iteration": [0, 1], "loss": [2.0, 1.0]})
    assert history.loss.tolist() == [2.0, 1.0] and np.isnan(history.coherence).tolist() == [True, True]


# Progress


def test_progress_shows_loss_on_a_terminal():
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=120)
    result = learn(callbacks=[Progress("Training", console=console)], max_iter=3)
    assert "Training" in output.getvalue() and "3/3" in output.getvalue()
    assert f"loss {result.history.loss[-1]:.4g}" in output.getvalue()


def test_progress_is_silent_elsewhere(capfd):
    learn(callbacks=[Progress()], max_iter=2)
    assert capfd.readouterr() == ("", "")


def test_progress_leaves_the_terminal_alone_after_an_error():
    console = Console(file=io.StringIO(), force_terminal=True)
    progress = Progress(console=console)

    def broken(_):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        learn(callbacks=[progress, broken])
    learn(callbacks=[progress], max_iter=1)  # another live display would be refused if the first were on


# EarlyStopping


def test_early_stopping_waits_for_a_better_loss():
    stopping = EarlyStopping(patience=2, min_decrease=0.1)
    stopping.begin(10)
    # 0.95 is no tenth below 1, 0.8 is; then nothing better for two steps.
    assert [stopping(step(loss)) for loss in (1.0, 0.95, 0.8, 0.79, 0.75)] == [
        False,
        False,
        False,
        False,
        True,
    ]


def test_early_stopping_ends_a_run_and_forgets_it():
    stopping = EarlyStopping(patience=3, min_decrease=0.5)
    first, second = (learn(callbacks=[stopping], max_iter=50) for _ in range(2))
    assert first.reason is second.reason is Reason.STOPPED
    assert first.n_iter == second.n_iter < 50


@pytest.mark.parametrize("options", [{"patience": 0}, {"min_decrease": -0.1}, {"min_decrease": 1.0}])
def test_early_stopping_refuses_invalid_parameters(options):
    with pytest.raises(ValueError, match="="):
        EarlyStopping(**options)


# Checkpoint


class Killed(BaseException):
    """As if the process had been killed; an Exception would be a fault of the callback, and be named."""


def killed_at(iteration):
    def kill(step):
        if step.iteration == iteration:
            raise Killed

    return kill


def golden():
    return SimCO(SteepestDescent(line_searcher=GoldenSection(), max_iterations=2), mu=[0.1] * 3 + [0.0])


@pytest.mark.parametrize(
    ("update", "coder"),
    [
        (lambda: SimCO(mu=[0.1] * 4 + [0.0]), OMP(sparsity=2)),
        (golden, OMP(sparsity=2)),
        (lambda: SimCO(mu=0.1, schedule=schedules.RandomSubsets(4, 3)), OMP(sparsity=2)),
        (lambda: SimCO(mu=0.1, schedule=schedules.Blocks(5)), Lasso(alpha=0.1, sparsity=2)),
        (lambda: KSVD(schedule=schedules.OneAtATime("random")), OMP(sparsity=2)),
        (MOD, OMP(sparsity=2)),
    ],
    ids=["simco", "golden section", "random subsets", "blocks and lasso", "random ksvd", "mod"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("last", [0, 4])
def test_resuming_gives_the_same_bits_as_never_having_stopped(tmp_path, update, coder, dtype, last):
    path, signals = tmp_path / "run.npz", Y.astype(dtype)
    through = learn(signals, update=update(), coder=coder)
    with pytest.raises(Killed):
        learn(signals, update=update(), coder=coder, callbacks=[Checkpoint(path), killed_at(last)])
    resumed = learn(
        signals, update=update(), coder=coder, resume=path, rng=99
    )  # the seed comes from the file
    assert_same(resumed, through)


def assert_same(one, other):
    np.testing.assert_array_equal(one.dictionary, other.dictionary)
    assert one.dictionary.dtype == other.dictionary.dtype
    np.testing.assert_array_equal(one.codes.toarray(), other.codes.toarray())
    assert one.reason is other.reason
    mine, theirs = one.history.to_dict(), other.history.to_dict()
    for name in set(mine) - {"seconds"}:
        np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
    assert (np.diff(one.history.seconds) >= 0).all()


def test_stale_steps_of_the_update_do_not_leak_into_a_resumed_run(tmp_path):
    update, path = SimCO(mu=0.1), tmp_path / "run.npz"
    through = learn(update=SimCO(mu=0.1))
    learn(update=update, max_iter=8, callbacks=[Checkpoint(path, every=5)])
    learn(100 * Y[::-1], update=update, rng=5)
    assert_same(learn(update=update, resume=path), through)


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_random_generator_of_numpy_is_resumed(tmp_path, bits):
    path, update = tmp_path / "run.npz", SimCO(mu=0.1, schedule=schedules.Blocks(5))
    fresh = lambda: np.random.Generator(getattr(np.random, bits)(7))
    through = learn(update=update, rng=fresh())
    learn(update=update, rng=fresh(), callbacks=[Checkpoint(path, every=3)])
    assert_same(learn(update=update, resume=path), through)


def test_checkpoints_are_written_every_so_often(tmp_path):
    path, times = tmp_path / "run.npz", []
    learn(callbacks=[Checkpoint(path, every=3), lambda _: times.append(path.exists())])
    assert times == [False, False, True, True, True, True, True, True]
    assert (
        learn(resume=path, callbacks=[lambda s: s.iteration == 6]).n_iter == 7
    )  # the sixth was written last
    assert os.listdir(tmp_path) == ["run.npz"]


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    path = tmp_path / "run.npz"
    finished = learn(callbacks=[Checkpoint(path)])
    assert_same(learn(resume=path), finished)


def test_resuming_a_converged_run_changes_nothing(tmp_path):
    path, signals = tmp_path / "run.npz", np.eye(8)[:, list(range(8)) * 5]
    options = {"coder": OMP(sparsity=1), "tol": 1e-6, "max_iter": 20, "update": SimCO(mu=0.0)}
    finished = learn(signals, callbacks=[Checkpoint(path)], **options)
    assert finished.reason is Reason.CONVERGED and finished.n_iter < 20
    assert_same(learn(signals, resume=path, **options), finished)


def test_early_stopping_counts_iterations_before_the_checkpoint(tmp_path):
    path, options = tmp_path / "run.npz", {"max_iter": 50}
    stopping = lambda: EarlyStopping(patience=4, min_decrease=0.5)
    through = learn(callbacks=[stopping()], **options)
    with pytest.raises(Killed):
        learn(callbacks=[stopping(), Checkpoint(path), killed_at(through.n_iter - 3)], **options)
    assert_same(learn(callbacks=[stopping()], resume=path, **options), through)


def test_interrupted_resumed_run_returns_the_best_dictionary_of_both(tmp_path):
    path, steps = tmp_path / "run.npz", []

    def worse(signals, dictionary, codes, *, iteration, rng):
        D = dictionary + iteration * rng.standard_normal(dictionary.shape)
        return D / np.linalg.norm(D, axis=0), codes

    learn(update=worse, max_iter=3, callbacks=[steps.append, Checkpoint(path)], replace=None)

    def interrupt(_):
        raise KeyboardInterrupt

    result = learn(update=worse, resume=path, callbacks=[interrupt], replace=None)
    assert min(steps, key=lambda s: s.loss).iteration == 0
    assert result.reason is Reason.INTERRUPTED and result.n_iter == 4
    np.testing.assert_array_equal(result.dictionary, steps[0].dictionary)


@pytest.mark.parametrize(
    ("signals", "sentence"),
    [(2 * Y, "another run"), (Y[:, ::-1], "another run"), (Y.astype(np.float32), "another run")],
    ids=["scaled", "reversed", "other precision"],
)
def test_other_signals_are_refused(tmp_path, signals, sentence):
    path = tmp_path / "run.npz"
    learn(max_iter=2, callbacks=[Checkpoint(path)])
    with pytest.raises(ValueError, match=sentence):
        learn(signals, resume=path)


def test_another_number_of_atoms_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    learn(max_iter=2, callbacks=[Checkpoint(path)])
    with pytest.raises(ValueError, match="another run"):
        learn_dictionary(Y, 13, coder=OMP(sparsity=2), resume=path)


def test_resuming_from_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*run\.npz"):
        learn(resume=tmp_path / "run.npz")


def test_checkpoint_into_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        learn(callbacks=[Checkpoint(tmp_path / "missing" / "run.npz")])


@pytest.mark.parametrize("every", [0, -1, 1.5])
def test_checkpoint_refuses_an_invalid_interval(every):
    with pytest.raises(ValueError, match="every"):
        Checkpoint(Path("run.npz"), every=every)
