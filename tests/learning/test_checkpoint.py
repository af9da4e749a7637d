"""Checkpoints, from which a run continues with the same bits; a full disk does not end it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pymanopt.optimizers import SteepestDescent

from manifold_dl import (
    KSVD,
    MOD,
    OMP,
    Checkpoint,
    EarlyStopping,
    ForwardSelection,
    GoldenSection,
    Lasso,
    Reason,
    SimCO,
    datasets,
    learn_dictionary,
    schedules,
)

Y = datasets.synthetic(8, 12, 90, sparsity=2, snr_db=20, rng=0).signals


def learn(signals=Y, **options):
    settings = {"coder": OMP(sparsity=2), "update": SimCO(mu=[0.1, 0.0]), "max_iter": 8, "tol": 0, "rng": 0}
    return learn_dictionary(signals, 12, **{**settings, **options})


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
    resumed = learn(signals, update=update(), coder=coder, resume=path, rng=None)  # the seed is in the file
    assert_same(resumed, through)
    assert resumed.settings["seed"] == 0


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
    assert_same(learn(update=update, rng=None, resume=path), through)


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


@pytest.mark.filterwarnings("ignore:.* atoms are used by none:UserWarning")
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


# --- Other arguments than before ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        (
            {"coder": OMP(sparsity=3)},
            r"coder was OMP\(sparsity=2, tol=None, nonnegative=False\), now OMP\(sparsity=3",
        ),
        ({"coder": ForwardSelection(sparsity=2)}, "coder was OMP.*now ForwardSelection"),
        ({"update": KSVD()}, "update was SimCO.*now KSVD"),
        ({"update": SimCO(mu=0.2)}, r"update was SimCO.*mu=\[0.1, 0.0\].*mu=0.2"),
        ({"rng": 1}, "seed was 0, now 1"),
        ({"replace": None}, "replace was ReplaceAtoms.*now None"),
        ({"restarts": 2}, "restarts was 1, now 2"),
    ],
    ids=["sparsity", "coder", "update", "ridge", "seed", "replacement", "restarts"],
)
def test_resuming_with_other_arguments_is_refused_with_what_differs(tmp_path, options, difference):
    path = tmp_path / "run.npz"
    learn(max_iter=2, callbacks=[Checkpoint(path)])
    with pytest.raises(ValueError, match=f"belongs to another run: {difference}"):
        learn(resume=path, **options)


def test_resuming_with_another_number_of_threads_gives_the_same_bits(tmp_path):
    path = tmp_path / "run.npz"
    through = learn(update=KSVD(threads=1))
    learn(max_iter=2, update=KSVD(threads=1), callbacks=[Checkpoint(path)])
    assert_same(learn(resume=path, update=KSVD(threads=2), threads=2), through)


def test_functions_are_compared_by_name_and_not_by_their_place_in_memory(tmp_path):
    path = tmp_path / "run.npz"

    def make():
        def still(signals, dictionary, codes):
            return dictionary, codes

        return still

    learn(max_iter=2, update=make(), callbacks=[Checkpoint(path)])
    assert learn(max_iter=3, update=make(), resume=path).n_iter == 3


# --- Restarts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("run", "last"), [(0, 3), (1, 0), (1, 7), (2, 5)])
@pytest.mark.parametrize("every", [1, 2])
def test_restarts_are_resumed_with_the_same_bits(tmp_path, run, last, every):
    path, options = (
        tmp_path / "run.npz",
        {"restarts": 3, "update": SimCO(mu=0.1, schedule=schedules.Blocks(5))},
    )
    begun = []

    def kill(step):
        begun.extend([1] * (step.iteration == 0))
        if len(begun) == run + 1 and step.iteration == last:
            raise Killed

    through = learn(**options)
    with pytest.raises(Killed):
        learn(callbacks=[Checkpoint(path, every=every), kill], **options)
    assert_same(learn(resume=path, **options), through)
    assert_same(learn(resume=path, **{**options, "rng": None}), through)


# --- Where the file cannot be written -----------------------------------------------------------------------


def test_a_vanished_folder_is_a_warning_and_the_result_is_kept(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()

    def vanish(step):
        if step.iteration == 3 and folder.exists():
            (folder / "run.npz").unlink()
            folder.rmdir()

    with pytest.warns(UserWarning, match=r"of iteration 4 could not be written: there is no folder") as given:
        result = learn(callbacks=[Checkpoint(folder / "run.npz"), vanish], restarts=2)
    assert len(given) == 1  # not one for each iteration or run
    assert_same(result, learn(restarts=2))


FULL_DISK = """
import resource, sys, warnings
import numpy as np
import manifold_dl as mdl
Y = mdl.datasets.synthetic(8, 12, 90, sparsity=2, snr_db=20, rng=0).signals
def fill(step):
    if step.iteration == 2:  # no file may have more than 100 bytes: writing ends as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    options = dict(coder=mdl.OMP(sparsity=2), max_iter=8, tol=0, rng=0)
    callbacks = [mdl.Checkpoint(sys.argv[1]), fill]
    result = mdl.learn_dictionary(Y, 12, callbacks=callbacks, **options)
print(len(given), given[0].message, result.n_iter)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of files")
def test_a_full_disk_is_a_warning_and_the_old_checkpoint_stays(tmp_path):
    path = tmp_path / "run.npz"
    learn(update=SimCO(), max_iter=1)  # compiles what cannot be stored later
    process = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith(f"1 the checkpoint {path} of iteration 3 could not be written: ")
    assert "Learning goes on" in process.stdout and process.stdout.endswith(" 8\n")
    assert os.listdir(tmp_path) == ["run.npz"]
    resumed = learn(update=SimCO(), resume=path)
    assert_same(resumed, learn(update=SimCO()))
