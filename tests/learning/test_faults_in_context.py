"""Callbacks that fail, restarts, interrupts; and what the estimator and the command line do with a fault."""

import pickle
import sys

import numpy as np
import pytest
from faulty_parts import CODER, LAST, Broken, Coder, Switch, Y, fault, require_complete, run, run_with_fault
from typer.testing import CliRunner

import manifold_dl as mdl
from manifold_dl.cli import app
from manifold_dl.components.errors import ComponentError


class Watcher:
    """A callback that fails at a given call."""

    def __init__(self, where, answer=None):
        self.where, self.answer, self.ended = where, answer, False

    def begin(self, total):
        if self.where == "begin":
            raise Broken("it is broken.")

    def __call__(self, step):
        if step.iteration == LAST and self.where == "call":
            raise Broken("it is broken.")
        return self.answer

    def resume(self, history):
        if self.where == "resume":
            raise Broken("it is broken.")

    def end(self):
        self.ended = True
        if self.where == "end":
            raise Broken("it is broken.")


@pytest.mark.parametrize("where", ["begin", "call", "end"])
def test_a_callback_that_fails_is_named(where, tmp_path):
    faulty, other = Watcher(where), Watcher("nowhere")
    error, steps = run_with_fault(99, callbacks=[other, faulty])
    assert isinstance(error, ComponentError) and isinstance(error.__cause__, Broken)
    assert error.component is faulty and error.role == "callback" and "Watcher" in str(error)
    require_complete(error.partial, steps, tmp_path)
    assert len(steps) == {"begin": 0, "call": LAST + 1, "end": 6}[where]
    assert error.iteration == {"begin": None, "call": LAST, "end": 5}[where]
    assert other.ended and faulty.ended == (where != "begin")


def test_a_callback_that_fails_when_a_run_is_resumed(tmp_path):
    path, faulty = tmp_path / "run.npz", Watcher("resume")
    run(callbacks=[mdl.Checkpoint(path), lambda step: step.iteration == 2])
    error, _ = run_with_fault(99, callbacks=[faulty], resume=path)
    assert error.component is faulty and error.partial.n_iter == 3
    expected = run(max_iter=6, callbacks=[lambda step: step.iteration == 2])
    np.testing.assert_array_equal(error.partial.history.loss, expected.history.loss)


@pytest.mark.parametrize("last_is_best", [True, False])
def test_coder_failing_in_a_resumed_run_leaves_the_best_codes(last_is_best, tmp_path):
    path, steps = tmp_path / "run.npz", []

    class Worse:
        """K-SVD, except in the last iteration, which returns the dictionary of the start."""

        def __call__(self, signals, dictionary, codes, iteration=0):
            if iteration == 2 and not last_is_best:
                D = mdl.learning.initialization.initial_dictionary(signals, 12, "dct", rng=0)
                return D, CODER.encode(signals, D)
            return mdl.KSVD()(signals, dictionary, codes)

    def stop(step):
        steps.append(step)
        return step.iteration == 2

    run(coder=Coder(), update=Worse(), callbacks=[mdl.Checkpoint(path), stop])
    best = min(steps, key=lambda step: step.loss)
    assert (best is steps[-1]) == last_is_best
    error, _ = run_with_fault(0, coder=Coder(), update=Worse(), resume=path)
    assert isinstance(error, ComponentError) and error.role == "coder" and error.iteration == 3
    np.testing.assert_array_equal(error.partial.dictionary, best.dictionary)
    np.testing.assert_array_equal(error.partial.codes.toarray(), best.codes.toarray())
    assert error.partial.explained == pytest.approx(1 - best.relative_loss, abs=1e-12)  # order of sums


def test_first_error_is_raised_and_later_ones_become_notes():
    ending = Watcher("end")
    error, _ = run_with_fault(callbacks=[ending], coder=Coder())
    assert error.role == "coder" and ending.ended
    assert any("Watcher" in note and "it is broken" in note for note in error.__notes__)


@pytest.mark.parametrize("answer", [0.35, 1, "stop", [], np.zeros(3)], ids=repr)
def test_a_callback_that_returns_neither_true_nor_false_is_named(answer):
    error, _ = run_with_fault(99, callbacks=[Watcher("nowhere", answer)])
    assert isinstance(error, ComponentError) and error.iteration == 0
    assert "a callback returns True to stop the learning" in str(error)


@pytest.mark.parametrize("answer", [True, np.True_, False, np.False_, None], ids=repr)
def test_callbacks_stop_by_true_alone(answer):
    result = run(callbacks=[Watcher("nowhere", answer)])
    assert result.n_iter == (1 if answer else 6)


class Diary(mdl.History):
    """A history with a column of its own, which it fails to write in the end."""

    def begin(self, total=None):
        super().begin(total)
        self._columns["size"] = []

    def __call__(self, step):
        super_columns = {name: column for name, column in self._columns.items() if name != "size"}
        own, self._columns = self._columns, super_columns
        super().__call__(step)
        self._columns = own
        if step.iteration == LAST:
            raise Broken("it is broken.")
        own["size"].append(np.abs(step.dictionary).max())


def test_failing_history_subclass_keeps_complete_rows(tmp_path):
    diary = Diary()
    error, steps = run_with_fault(99, callbacks=[diary])
    assert error.component is diary and error.iteration == LAST
    assert error.partial.n_iter == len(error.partial.history.size) == len(steps) == LAST
    mdl.save(error.partial, tmp_path / "partial.npz")


# Around the loop


def test_a_coder_that_fails_after_the_last_iteration():
    class Last:
        def encode(self, signals, dictionary, iteration=None):
            return CODER.encode(signals, dictionary) if iteration is not None else fault()

    error, steps = run_with_fault(99, coder=Last())
    assert isinstance(error, ComponentError) and error.iteration == 5
    assert "after the last iteration" in " ".join(error.__notes__)
    assert error.partial.n_iter == len(steps) == 6


def test_error_in_a_restart_keeps_the_best_finished_run():
    starts = []

    class Third:
        def encode(self, signals, dictionary, iteration=None):
            starts.append(iteration == 0)
            return fault() if sum(starts) == 3 and iteration == 1 else CODER.encode(signals, dictionary)

    with pytest.raises(ComponentError, match=r"Third.* in iteration 1\.") as caught:
        run(coder=Third(), restarts=4)
    best = run(restarts=2)
    partial = caught.value.partial
    np.testing.assert_array_equal(partial.dictionary, best.dictionary)
    assert partial.reason is mdl.Reason.FAILED and partial.n_iter == best.n_iter
    assert "run 3 of 4" in " ".join(caught.value.__notes__)


def test_validation_error_in_a_run_keeps_its_type_and_has_the_partial_result():
    class Growing:
        """Supports of more atoms than entries, from the third iteration on."""

        def encode(self, signals, dictionary, iteration=None):
            return CODER.encode(signals, dictionary) if (iteration or 0) < 2 else dictionary.T @ signals

    with pytest.raises(ValueError, match="uses 12 atoms, more than its m=8 entries") as caught:
        run(coder=Growing(), update=mdl.SimCO(mu=0.0))
    assert type(caught.value) is ValueError and caught.value.partial.n_iter == 2
    assert "iteration 2 of learn_dictionary" in caught.value.__notes__[0]


def test_validation_error_before_a_run_has_no_partial_result():
    with pytest.raises(ValueError, match="init has 3 atoms") as caught:
        run(init=np.eye(8)[:, :3])
    assert not hasattr(caught.value, "partial")


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise ValueError("the disk is full.")


@pytest.mark.parametrize("init", [Unreadable(), [[1.0, 2.0], [3.0]]], ids=["object", "ragged list"])
def test_unreadable_initial_dictionary_is_named(init):
    with pytest.raises(ComponentError, match=r"The initial dictionary .* raised ValueError"):
        run(init=init)


def test_interrupt_is_not_reported_as_a_component_error():
    def interrupt(step):
        if step.iteration == 2:
            raise KeyboardInterrupt

    assert run(callbacks=[interrupt]).reason is mdl.Reason.INTERRUPTED


def test_an_interrupt_ends_all_restarts():
    begun = []

    def interrupt(step):
        begun.append(step.iteration == 0)
        if sum(begun) == 2 and step.iteration == 1:
            raise KeyboardInterrupt

    result = run(callbacks=[interrupt], restarts=3)
    assert sum(begun) == 2 and result.reason is mdl.Reason.INTERRUPTED


def test_component_error_can_be_pickled():
    error, _ = run_with_fault(coder=Coder())
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.iteration == LAST and again.role == "coder"
    np.testing.assert_array_equal(again.partial.dictionary, error.partial.dictionary)


def test_component_whose_repr_fails_is_named_by_its_class():
    class Mute(Coder):
        def __repr__(self):
            raise Broken("no words.")

    error, _ = run_with_fault(coder=Mute())
    assert f"The coder {__name__}." in str(error) and "Mute raised Broken" in str(error)


# Those who call the loop


def test_failed_fit_leaves_the_estimator_unchanged():
    model = mdl.ManifoldDictionaryLearning(12, coder=Coder(), max_iter=4, random_state=0)
    Switch.on = True
    try:
        for method in (model.fit, model.partial_fit):
            with pytest.raises(ComponentError, match="Coder"):
                method(Y.T)
            assert not [name for name in vars(model) if name.endswith("_")]
        Switch.on = False
        model.fit(Y.T)
        before = {name: value for name, value in vars(model).items() if name.endswith("_")}
        Switch.on = True
        with pytest.raises(ComponentError) as caught:
            model.fit(Y.T[:, :6])
        assert caught.value.partial.dictionary.shape == (6, 12)
        with pytest.raises(ComponentError):
            model.partial_fit(Y.T)
    finally:
        Switch.on = False
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys() and all(after[name] is before[name] for name in before)
    assert model.transform(Y.T).shape == (100, 12)


def test_denoising_with_a_failing_coder_names_it():
    pytest.importorskip("skimage")
    picture = np.random.default_rng(0).random((20, 20))
    Switch.on = True
    try:
        with pytest.raises(ComponentError, match="Coder") as caught:
            mdl.images.denoise(picture, sigma=0.1, patch_size=4, n_atoms=20, coder=Coder(), rng=0)
    finally:
        Switch.on = False
    assert caught.value.partial is not None


@pytest.mark.parametrize("iteration", [0, LAST])
def test_the_command_line_says_which_part_failed_and_keeps_the_result(iteration, tmp_path, monkeypatch):
    class Plugin:
        def encode(self, signals, dictionary, iteration=None):
            return fault() if iteration == failing else CODER.encode(signals, dictionary)

    failing = iteration
    monkeypatch.setattr(sys.modules["manifold_dl.cli.learn"], "coder_named", lambda *_: Plugin())
    np.save(tmp_path / "rows.npy", Y.T)
    data, out, kept = (tmp_path / name for name in ("rows.npy", "model.npz", "model.partial.npz"))
    options = ["--atoms", "12", "--sparsity", "3", "--out", str(out), "--quiet"]
    done = CliRunner().invoke(app, ["learn", str(data), *options])
    assert done.exit_code == 1 and not out.exists()
    sentence = " ".join(done.stderr.split())
    assert sentence.startswith("manifold-dl: The coder") and "Traceback" not in sentence
    assert f"Plugin raised Broken: it is broken, in iteration {iteration}." in sentence.replace(
        "(", ""
    ).replace(")", "")
    assert kept.exists() == (str(kept) in sentence) == (iteration > 0)
    if iteration:
        assert mdl.load(kept).n_iter == iteration
