"""The machinery of the experiments, and the claims of those that average over draws, at small sizes.

The full runs are in docs/results; what they show is written in docs/reproduction.md. Here the same functions
run on problems small enough for every day.
"""

import contextlib
import dataclasses
import importlib.util
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.figure
import matplotlib.pyplot as plt
import numpy as np
import pytest
import typer

from manifold_dl import experiments
from manifold_dl.cli.errors import Failure
from manifold_dl.cli.reproduce import reproduce
from manifold_dl.datasets import synthetic
from manifold_dl.experiments import fig1, fig2, fig4, recovery, solvers, table1, theorem1
from manifold_dl.experiments.identifiability import counting_bound, determined_atoms
from manifold_dl.experiments.methods import PAPER, TRUTH
from manifold_dl.experiments.running import redraw, run
from manifold_dl.experiments.tables import as_csv, means, read_csv, select

TINY = {"shape": [4, 6], "sparsity": 2, "signals": [12], "iterations": 3, "trials": 5}


def tiny():
    """A study of a few milliseconds, in five parts."""
    study = experiments.find("fig2a")
    return study, {**study.parameters(quick=True), **TINY}


def undrawn():
    """The same, for tests that do not look at the figure: drawing is what takes time."""
    study, parameters = tiny()
    return dataclasses.replace(study, draw=lambda table: plt.figure(figsize=(1, 1))), parameters


def stop_at(number):
    """A progress function, like somebody who presses Ctrl-C when so many parts are done."""

    def progress(done, total):
        if done == number:
            raise KeyboardInterrupt

    return progress


def written(folder, name="fig2a"):
    """Table and record, the latter without the times."""
    record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return (folder / f"{name}.csv").read_bytes(), record["seed"], record["parameters"]


def ones(parameters, seed, n, trial):
    """Instead of `fig2.measure`: what other processes import from here."""
    return [{"method": "MOD", "n": n, "trial": trial, "error": 1.0, "kappa": 1.0, "recovered": 1.0}]


class TestRunning:
    def test_writes_table_record_and_figures_and_nothing_else(self, tmp_path):
        study, parameters = tiny()
        table = run(study, tmp_path, parameters=parameters)
        assert {path.name for path in tmp_path.iterdir()} == {
            "fig2a.csv",
            "fig2a.json",
            "fig2a.png",
            "fig2a.svg",
        }
        assert len(table["error"]) == 5 * 4
        record = json.loads((tmp_path / "fig2a.json").read_text(encoding="utf-8"))
        assert record["seed"] == 0
        assert record["parameters"] == parameters
        assert record["versions"]["pymanopt"].startswith("2.")
        assert ("scikit-image" in record["versions"]) == (importlib.util.find_spec("skimage") is not None)
        assert record["timings"]["parts"] == 5

    def test_processes_do_not_change_the_results(self, tmp_path):
        study, parameters = tiny()
        for jobs in (1, 2):
            (tmp_path / str(jobs)).mkdir()
            run(study, tmp_path / str(jobs), parameters=parameters, jobs=jobs)
        one, two = ((tmp_path / jobs / "fig2a.csv").read_bytes() for jobs in "12")
        assert one == two

    def test_an_interrupted_run_goes_on_where_it_stopped(self, tmp_path):
        study, parameters = tiny()
        whole, half = tmp_path / "whole", tmp_path / "half"
        whole.mkdir()
        half.mkdir()
        run(study, whole, parameters=parameters)
        seen = []

        def interrupt(done, total):
            seen.append(done)
            if done == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(study, half, parameters=parameters, progress=interrupt)
        journal = half / "fig2a.partial.jsonl"
        with open(journal, "a", encoding="utf-8") as file:
            file.write('{"part": 3, "rows": [{"sta')  # as a power cut would leave it
        seen.clear()
        run(study, half, parameters=parameters, progress=lambda done, total: seen.append(done))
        assert seen == [3, 4, 5]  # three parts were there already
        assert (half / "fig2a.csv").read_bytes() == (whole / "fig2a.csv").read_bytes()
        assert not journal.exists()

    def test_finished_results_are_drawn_again_and_not_measured(self, tmp_path):
        study, parameters = tiny()
        run(study, tmp_path, parameters=parameters)
        (tmp_path / "fig2a.png").unlink()
        run(study, tmp_path, parameters=parameters, progress=lambda done, total: pytest.fail("measured"))
        assert (tmp_path / "fig2a.png").exists()

    def test_results_of_other_parameters_are_not_overwritten(self, tmp_path):
        study, parameters = tiny()
        run(study, tmp_path, parameters=parameters)
        before = (tmp_path / "fig2a.csv").read_bytes()
        with pytest.raises(ValueError, match=r"other seed.*--out.*--force"):
            run(study, tmp_path, parameters=parameters, seed=1)
        assert (tmp_path / "fig2a.csv").read_bytes() == before
        run(study, tmp_path, parameters=parameters, seed=1, force=True)
        assert (tmp_path / "fig2a.csv").read_bytes() != before

    def test_unfinished_results_of_other_parameters_are_not_mixed_in(self, tmp_path):
        study, parameters = tiny()
        (tmp_path / "fig2a.partial.jsonl").write_text(
            json.dumps({"experiment": "fig2a", "parameters": {}, "seed": 0}) + "\n", encoding="utf-8"
        )
        with pytest.raises(ValueError, match="other parameters"):
            run(study, tmp_path, parameters=parameters)
        run(study, tmp_path, parameters=parameters, force=True)
        assert written(tmp_path)[2] == parameters

    @pytest.mark.parametrize("force", [True, False])
    def test_an_interrupted_forced_run_goes_on_too(self, tmp_path, force):
        study, parameters = undrawn()
        old, new = tmp_path / "old", tmp_path / "new"
        old.mkdir()
        new.mkdir()
        run(study, new, parameters=parameters, seed=1)
        run(study, old, parameters=parameters, seed=0)
        before = written(old)
        with pytest.raises(KeyboardInterrupt):
            run(study, old, parameters=parameters, seed=1, force=True, progress=stop_at(3))
        assert written(old) == before
        seen = []
        run(study, old, parameters=parameters, seed=1, force=force, progress=lambda i, _: seen.append(i))
        assert seen == [3, 4, 5]
        assert written(old) == written(new)

    @pytest.mark.parametrize("name", ["fig2a.csv", "fig2a.json", "fig2a.png"])
    def test_a_table_never_stands_under_the_record_of_another_run(self, tmp_path, monkeypatch, name):
        """A forced run is killed before it writes its table, its record, its figure."""
        study, parameters = undrawn()
        run(study, tmp_path, parameters=parameters, seed=0)
        old = written(tmp_path)
        replace = os.replace

        def killed(source, target):
            if target.name == name:
                raise KeyboardInterrupt
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", killed)
            with pytest.raises(KeyboardInterrupt):
                run(study, tmp_path, parameters=parameters, seed=1, force=True)
        if (tmp_path / "fig2a.json").exists():
            table, seed, _ = written(tmp_path)
            assert (table == old[0]) == (seed == 0)
        with pytest.raises(ValueError, match="other seed"):  # the journal is another run's
            run(study, tmp_path, parameters=parameters, seed=0)
        seen = []
        run(study, tmp_path, parameters=parameters, seed=1, progress=lambda done, _: seen.append(done))
        assert seen == [5]  # nothing is measured again
        table, seed, _ = written(tmp_path)
        assert seed == 1 and table != old[0]
        assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".json", ".png", ".svg"}

    @pytest.mark.parametrize("end", ["json", "partial.jsonl"])
    @pytest.mark.parametrize("line", [b'{"experiment"\n', b"[]\n", b"\xff\x00\n"])
    def test_damaged_files_get_a_sentence(self, tmp_path, end, line):
        study, parameters = undrawn()
        run(study, tmp_path, parameters=parameters)
        (tmp_path / f"fig2a.{end}").write_bytes(line)
        with pytest.raises(ValueError, match=rf"fig2a\.{end} is damaged.*--force"):
            run(study, tmp_path, parameters=parameters)
        run(study, tmp_path, parameters=parameters, force=True)
        assert written(tmp_path)[2] == parameters

    def test_a_damaged_line_within_a_journal_gets_a_sentence(self, tmp_path):
        study, parameters = undrawn()
        with pytest.raises(KeyboardInterrupt):
            run(study, tmp_path, parameters=parameters, progress=stop_at(2))
        with open(tmp_path / "fig2a.partial.jsonl", "a", encoding="utf-8") as file:
            file.write('{"part": 2}\n')  # whole, but without its rows
        with pytest.raises(ValueError, match=r"partial\.jsonl is damaged"):
            run(study, tmp_path, parameters=parameters)

    def test_two_runs_do_not_write_to_one_folder(self, tmp_path):
        study, parameters = undrawn()
        lock = tmp_path / ".fig2a.lock"
        lock.write_text(str(os.getppid()), encoding="utf-8")  # somebody who is alive
        sentence = rf"fig2a\.lock says that process {os.getppid()} is measuring fig2a"
        # That the file is open is what counts on Windows.
        with open(lock, encoding="utf-8"), pytest.raises(ValueError, match=sentence):
            run(study, tmp_path, parameters=parameters)
        assert list(tmp_path.iterdir()) == [lock]

    def test_the_lock_of_a_run_that_was_killed_is_no_obstacle(self, tmp_path):
        study, parameters = undrawn()
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        lock = tmp_path / ".fig2a.lock"
        lock.write_text(str(gone.pid), encoding="utf-8")

        def locked(done, total):
            assert lock.read_text(encoding="utf-8") == str(os.getpid())

        run(study, tmp_path, parameters=parameters, progress=locked)
        assert not lock.exists()

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_measures_with_the_function_of_the_study_it_was_given(self, tmp_path, jobs):
        study, parameters = undrawn()
        other = dataclasses.replace(study, measure=ones)
        assert run(other, tmp_path, parameters=parameters, jobs=jobs)["error"].tolist() == [1.0] * 5

    def test_no_process_outlives_an_error(self, tmp_path):
        study, parameters = undrawn()
        study = dataclasses.replace(study, measure=ones)
        before = set(multiprocessing.active_children())  # another test's, such as those of scikit-learn
        with pytest.raises(KeyboardInterrupt) as caught:
            run(study, tmp_path, parameters=parameters, jobs=2, progress=stop_at(1))
        assert caught.tb  # the frames, and all that is in them, are alive
        assert not set(multiprocessing.active_children()) - before

    def test_drawing_leaves_the_backend_alone(self, tmp_path):
        study, parameters = tiny()
        before = matplotlib.get_backend()
        plt.switch_backend("pdf")
        try:
            run(study, tmp_path, parameters=parameters)
            assert matplotlib.get_backend() == "pdf"
            assert not plt.get_fignums()
        finally:
            plt.switch_backend(before)
        assert (tmp_path / "fig2a.png").read_bytes().startswith(b"\x89PNG")

    def test_drawing_needs_the_table_alone(self, tmp_path):
        study, parameters = tiny()
        run(study, tmp_path, parameters=parameters)
        first = (tmp_path / "fig2a.svg").read_bytes()
        for name in ("fig2a.json", "fig2a.png", "fig2a.svg"):
            (tmp_path / name).unlink()
        redraw(study, tmp_path)
        assert (tmp_path / "fig2a.svg").read_bytes() == first

    def test_without_a_table_there_is_nothing_to_draw(self, tmp_path):
        with pytest.raises(ValueError, match="without --plot-only first"):
            redraw(tiny()[0], tmp_path)


class TestStudies:
    @pytest.mark.parametrize("name", experiments.NAMES)
    def test_every_name_leads_to_its_study(self, name):
        study = experiments.find(name)
        assert study.name == name
        # Quick parameters change values of the full ones and invent none.
        assert set(study.quick) <= set(study.full)
        assert study.parts(study.parameters(quick=True))
        assert len(study.parts(study.parameters(quick=True))) <= len(study.parts(study.parameters()))

    def test_unknown_names_are_refused(self):
        with pytest.raises(ValueError, match=r"no experiment 'fig9'.*fig2a"):
            experiments.find("fig9")

    def test_trials_belong_to_averages(self):
        assert experiments.find("fig3").parameters(trials=7)["trials"] == 7
        with pytest.raises(ValueError, match="no trials to set"):
            experiments.find("theorem1").parameters(trials=7)

    def test_tables_come_back_from_their_file(self, tmp_path):
        rows = [{"method": "K-SVD", "n": 60, "error": 1e-30}, {"method": "MOD, again", "n": 8, "error": 0.25}]
        (tmp_path / "t.csv").write_text(as_csv(rows), encoding="utf-8")
        table = read_csv(tmp_path / "t.csv")
        assert table["method"].tolist() == ["K-SVD", "MOD, again"]
        assert table["n"].tolist() == [60, 8]
        assert table["error"].tolist() == [1e-30, 0.25]

    def test_a_damaged_table_is_refused(self, tmp_path):
        (tmp_path / "t.csv").write_text("a,b\n1,2\n3\n", encoding="utf-8")
        with pytest.raises(ValueError, match="2 entries"):
            read_csv(tmp_path / "t.csv")


def measured(study, parameters, seed=0):
    rows = [row for part in study.parts(parameters) for row in study.measure(parameters, seed, **part)]
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


class TestFigure2:
    @pytest.fixture(scope="class")
    @classmethod
    def table(cls):
        study = experiments.find("fig2a")
        parameters = {**study.parameters(quick=True), "signals": [60], "iterations": 120, "trials": 5}
        return measured(study, parameters)

    def test_few_signals_need_the_ridge(self, table):
        # The paper's order: regularized SimCO below MOD and K-SVD. Full runs put a factor of 13
        # between them at n = 60; five draws of 120 iterations must keep a factor of one.
        errors = {method: errors[60] for method, errors in means(table, "error").items()}
        assert errors["regularized SimCO"] < min(errors["MOD"], errors["K-SVD"])

    def test_the_ridge_keeps_dictionaries_well_conditioned(self, table):
        kappa = {method: np.median(select(table, method=method)["kappa"]) for method in set(table["method"])}
        assert kappa["regularized SimCO"] < 10 < kappa["primitive SimCO"]

    def test_noise_leaves_a_floor(self):
        study = experiments.find("fig2b")
        parameters = {**study.parameters(quick=True), "signals": [300], "iterations": 5, "trials": 2}
        floor = select(measured(study, parameters), method="true dictionary")["error"]
        # At 20 dB noise has 1 % of the energy S = 4 of a signal; S of its m directions are fitted. With 300
        # signals of 12 free directions the mean is within 3 % or so of that.
        np.testing.assert_allclose(floor, 0.04 * (16 - 4) / 16, rtol=0.15)

    def test_the_figure_shows_the_means(self, table):
        figure = fig2.draw(table)
        assert isinstance(figure, matplotlib.figure.Figure)
        ax = figure.axes[0]
        assert "signals" in ax.get_xlabel()
        drawn = {curve.get_label(): curve.lines[0].get_ydata()[0] for curve in ax.containers}
        expected = {method: errors[60] for method, errors in means(table, "error").items()}
        assert drawn == pytest.approx(expected)
        matplotlib.pyplot.close(figure)


def test_figure_3_the_ridge_helps_learning_too():
    study = experiments.find("fig3")
    parameters = {**study.parameters(quick=True), "signals": [500], "trials": 3}
    table = measured(study, parameters)
    # In the full run regularized SimCO finds 17 % of the atoms at n = 500, MOD and K-SVD 1 %, and it leaves
    # three quarters of their error.
    for column, sign in (("recovered", 1), ("error", -1)):
        values = {method: sign * of_n[500] for method, of_n in means(table, column).items()}
        assert values["regularized SimCO"] > max(values["MOD"], values["K-SVD"], values["primitive SimCO"])


class TestRecovery:
    @pytest.fixture(scope="class")
    @classmethod
    def table(cls):
        study = experiments.find("recovery")
        parameters = {
            **study.parameters(quick=True),
            "shapes": [[8, 12, 2]],
            "signals": [[18, 60]],
            "trials": 3,
        }
        return measured(study, parameters)

    def test_the_trust_region_recovers_near_the_bound_where_the_papers_methods_fail(self, table):
        assert counting_bound(8, 12, 2) == 14
        near = select(table, n=18)
        rates = {method: select(near, method=method)["success"].mean() for method in set(near["method"])}
        assert rates["SimCO, trust region, up to 3 starts"] == 1
        assert rates["MOD"] == rates["K-SVD"] == rates["primitive SimCO"] == 0

    def test_an_error_of_zero_means_the_dictionary_was_found(self, table):
        # As far as the signals determine it, which 60 of these do and 18 do not always.
        found = select(table, n=60, success=1)
        assert len(found["recovered"])
        assert (found["determined"] == 12).all()
        assert (found["recovered"] == 1).all()

    def test_two_atoms_that_always_come_together_are_not_determined(self):
        D, X, _ = synthetic(6, 8, 80, sparsity=3, rng=1)
        X = X.toarray()
        assert determined_atoms(D, X).all()
        X[1] *= X[0] != 0  # atom 1 only beside atom 0: it may lean towards it, unnoticed
        determined = determined_atoms(D, X)
        assert not determined[1]
        assert determined[[0, *range(2, 8)]].all()

    def test_starting_again_never_loses(self, table):
        once = select(table, method="SimCO, trust region")
        again = select(table, method="SimCO, trust region, up to 3 starts")
        assert (again["error"] <= once["error"]).all()
        assert (again["starts"][once["success"] == 1] == 1).all()

    def test_the_figure_has_the_bound(self, table):
        figure = recovery.draw(table)
        assert any("14" in text.get_text() for text in figure.axes[0].texts)
        matplotlib.pyplot.close(figure)


def columns(*rows, names):
    return {
        name: np.array(column) for name, column in zip(names.split(), zip(*rows, strict=True), strict=True)
    }


def with_methods_swapped(table, one, other):
    names = {one: other, other: one}
    return {**table, "method": np.array([names.get(name, name) for name in table["method"].tolist()])}


class TestClaims:
    """A claim holds for a table that shows it, and does not for one that does not."""

    def test_figure_2(self):
        rng = np.random.default_rng(0)
        level = {"MOD": 0.2, "K-SVD": 0.2, "primitive SimCO": 0.4, "regularized SimCO": 0.1}
        rows = [(m, n, e + 0.01 * rng.random()) for n in (60, 80) for m, e in level.items() for _ in range(6)]
        table = columns(*rows, names="method n error")
        assert [claim.holds for claim in fig2.claims(table)] == [True, True]
        swapped = with_methods_swapped(table, "primitive SimCO", "regularized SimCO")
        assert [claim.holds for claim in fig2.claims(swapped)] == [False, False]

    def test_figure_2_leaves_open_what_one_draw_decides(self):
        # Everybody is exact but for a single draw in which K-SVD fails.
        rows = [(m, 60, 0.5 if (m, t) == ("K-SVD", 0) else 0.0) for m in PAPER for t in range(20)]
        claim = fig2.claims(columns(*rows, names="method n error"))[0]
        assert "undecided at n = 60" in claim.measured
        assert not claim.holds

    def test_figure_2_does_not_compare_with_the_true_dictionary(self):
        level = {"MOD": 0.2, "K-SVD": 0.2, "primitive SimCO": 0.4, "regularized SimCO": 0.1, TRUTH: 0.9}
        rows = [(m, 60, e + 0.001 * t) for m, e in level.items() for t in range(4)]
        assert fig2.claims(columns(*rows, names="method n error"))[1].holds

    def test_figure_1(self):
        rows = [
            (method, 3, t, 50.0 if t == 0 else 4.0, kappa)
            for method, kappa in zip(PAPER, (100.0, 80.0, 200.0, 4.0), strict=True)
            for t in range(101)
        ]
        table = columns(*rows, names="method draw iteration gradient kappa")
        assert all(claim.holds for claim in fig1.claims(table))
        well = {**table, "kappa": np.full(len(rows), 4.0)}
        assert not any(claim.holds for claim in fig1.claims(well))
        converged = {**table, "gradient": np.where(table["iteration"] == 0, 50.0, 1e-9)}
        assert not fig1.claims(converged)[0].holds

    def test_figure_4(self):
        level = {fig4.NOISY: 20.0, fig4.START: 29.0, "MOD": 29.1, "K-SVD": 29.1, "primitive SimCO": 29.1}
        rows = [
            (m, t, e + 0.01 * t) for m, e in {**level, "regularized SimCO": 29.3}.items() for t in range(4)
        ]
        table = columns(*rows, names="method trial psnr")
        assert [claim.holds for claim in fig4.claims(table)] == [True, True, True]
        swapped = with_methods_swapped(table, "regularized SimCO", fig4.START)
        assert [claim.holds for claim in fig4.claims(swapped)] == [True, False, False]

    def test_theorem_1(self):
        rows = [(0, 0, 60.0, 30.0, 0), (0, 1, 0.5, 89.5, 0), (1, 0, 90.0, 0.0, 1), (1, 1, 90.0, 1e-9, 1)]
        table = columns(*rows, names="start step theta from_bad_set in_bad_set")
        assert all(claim.holds for claim in theorem1.claims(table))
        rows[1], rows[3] = (0, 1, 70.0, 20.0, 0), (1, 1, 90.0, 1e-5, 1)
        table = columns(*rows, names="start step theta from_bad_set in_bad_set")
        assert not any(claim.holds for claim in theorem1.claims(table))

    def test_table_1(self):
        ratio = {"MOD": 1.0, "K-SVD": 8.0, "primitive SimCO": 2.0, "regularized SimCO": 2.0}
        rows = [("fig3", m, t, r * (1 + 0.1 * t)) for m, r in ratio.items() for t in range(2)]
        table = columns(*rows, names="figure method turn ratio")
        assert all(claim.holds for claim in table1.claims(table))
        swapped = with_methods_swapped(table, "K-SVD", "MOD")
        assert not table1.claims(swapped)[0].holds

    def test_solvers(self):
        rows = [("small", name, t, 10.0**-t) for name in solvers.LOOKS for t in range(10)]
        slow = columns(*rows, names="problem solver iteration gap")
        assert not solvers.claims(slow)[0].holds  # all take the same number of iterations
        quick = slow["solver"] == "trust region"
        table = {**slow, "gap": np.where(quick, slow["gap"] ** 2, slow["gap"])}
        assert solvers.claims(table)[0].holds
        alone = {key: column[quick] for key, column in table.items()}
        assert not solvers.claims(alone)[0].holds  # nobody to be faster than

    def test_recovery(self):
        methods = [*PAPER, "SimCO, trust region", "SimCO, trust region, up to 3 starts"]
        rows = [
            (8, 12, 2, n, 12, method, int(n > 30 or method not in PAPER), 1.0)
            for method in methods
            for n in (16, 20, 40)
            for _ in range(5)
        ]
        names = "m d sparsity n determined method success recovered"
        assert all(claim.holds for claim in recovery.claims(columns(*rows, names=names)))
        fails = [row if row[3] > 16 else (*row[:6], 0, 0.5) for row in rows]
        few, several, atoms, fewer = recovery.claims(columns(*fails, names=names))
        assert not few.holds and not several.holds and atoms.holds and fewer.holds
        other = [(*row[:7], 0.5) for row in rows]  # exact fits by other dictionaries
        assert not recovery.claims(columns(*other, names=names))[2].holds


def test_the_page_shows_what_the_tables_say(monkeypatch):
    docs = Path(__file__).parents[2] / "docs"
    monkeypatch.syspath_prepend(str(docs))
    import reproduction_table

    page = (docs / "reproduction.md").read_text(encoding="utf-8")
    assert page == reproduction_table.with_table(page), "run python docs/reproduction_table.py"


class TestCommandLine:
    def command(self, *arguments):
        return [sys.executable, "-m", "manifold_dl", "reproduce", *map(str, arguments)]

    def test_measures_and_says_where_the_figure_is(self, tmp_path):
        done = subprocess.run(
            self.command("theorem1", "--quick", "--out", tmp_path, "--jobs", 1, "--json"),
            capture_output=True,
            text=True,
            check=True,
        )
        (result,) = json.loads(done.stdout)
        assert result["figure"] == str(tmp_path / "theorem1.png")
        assert all(claim["holds"] for claim in result["claims"])

    def test_bad_names_get_a_sentence(self, tmp_path):
        done = subprocess.run(self.command("fig9", "--out", tmp_path / "new"), capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith("manifold-dl: there is no experiment 'fig9'")
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "new").exists()

    def test_folders_may_have_any_name(self, tmp_path, capsys):
        folder = tmp_path / "[bold] or [/not]"
        reproduce("theorem1", quick=True, out=folder, jobs=1)
        said, _ = capsys.readouterr()
        assert f"are in {folder}:" in said
        assert "theorem1.png" in said

    @pytest.mark.parametrize("options", [{}, {"quiet": True}, {"as_json": True}])
    def test_stopping_is_said_whatever_else_is_not(self, tmp_path, capsys, monkeypatch, options):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        study = dataclasses.replace(experiments.find("theorem1"), measure=interrupted)
        monkeypatch.setattr(experiments, "find", lambda name: study)
        with pytest.raises(typer.Exit) as stopped:
            reproduce("theorem1", quick=True, out=tmp_path, jobs=1, **options)
        assert stopped.value.exit_code == 130
        assert "the same command continues from there" in capsys.readouterr().err

    def test_stopping_a_forced_run_of_several_says_what_is_left(self, tmp_path, capsys, monkeypatch):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        first, second = (experiments.find(name) for name in ("theorem1", "fig2a"))
        first = dataclasses.replace(first, draw=lambda table: plt.figure(figsize=(1, 1)))
        studies = {"theorem1": first, "fig2a": dataclasses.replace(second, measure=interrupted)}
        monkeypatch.setattr(experiments, "NAMES", tuple(studies))
        monkeypatch.setattr(experiments, "find", studies.get)
        with pytest.raises(typer.Exit):
            reproduce("all", quick=True, out=tmp_path, jobs=1, force=True)
        assert "name one by one what is left, fig2a." in capsys.readouterr().err

    @pytest.mark.skipif(not hasattr(os, "killpg"), reason="Windows has no groups of processes to signal")
    def test_stopping_keeps_what_was_measured(self, tmp_path):
        running = subprocess.Popen(
            self.command("fig3", "--quick", "--out", tmp_path, "--jobs", 2),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        journal = tmp_path / "fig3.partial.jsonl"
        deadline = time.monotonic() + 120
        while not (journal.exists() and journal.read_text(encoding="utf-8").count("\n") >= 2):
            assert running.poll() is None, running.stderr.read()
            assert time.monotonic() < deadline
            with contextlib.suppress(subprocess.TimeoutExpired):  # leave the processors to those who work
                running.wait(timeout=0.1)
        os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C does: to the workers too
        _, said = running.communicate(timeout=60)
        assert running.returncode == 130
        assert "the same command continues from there" in said
        assert "Traceback" not in said
        assert journal.exists()
        assert not (tmp_path / "fig3.csv").exists()


SHAPE = {"shape": [8, 12], "sparsity": 2, "trials": 1}
FEW = {"signals": [40], "iterations": 2}
PICTURE = {"crop": [100, 220, 32], "atoms": 70, "patches": 100, "iterations": 1}
SMALLEST = {
    "fig1": {**SHAPE, "signals": 30, "iterations": 4, "example": 0},
    "fig2a": {**SHAPE, **FEW},
    "fig2b": {**SHAPE, **FEW},
    "fig3": {**SHAPE, **FEW, "iterations_with_ridge": 1},
    "fig4": {**PICTURE, "shown": [104, 224, 16], "trials": 2},
    "table1": {"figures": {"fig2a": FEW, "fig2b": FEW, "fig3": FEW, "fig4": PICTURE}, "repeats": 1},
    "theorem1": {"starts": 1, "steps": 5},
    "recovery": {"shapes": [[6, 8, 2]], "signals": [[20]], "ridges": [0.1, 0.0], "starts": 1, "trials": 1},
    "solvers": {
        "problems": [{"shape": [8, 12], "signals": 60, "sparsity": 2, "iterations": 5}],
        "repeats": 1,
    },
}


class TestAll:
    """``reproduce all``, each experiment at the smallest size that can be drawn."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        find = experiments.find

        def smaller(name):
            study = find(name)
            return dataclasses.replace(study, quick={**study.quick, **SMALLEST[name]})

        monkeypatch.setattr(experiments, "find", smaller)

    def test_measures_draws_and_judges_all_of_them_and_draws_again_what_is_there(self, tmp_path, capsys):
        pytest.importorskip("skimage")
        reproduce("all", quick=True, out=tmp_path, jobs=1)
        ends = ("csv", "json", "png", "svg")
        expected = {f"{name}.{end}" for name in experiments.NAMES for end in ends} | {"fig4.npz"}
        assert {path.name for path in tmp_path.iterdir()} == expected
        said = capsys.readouterr().out
        assert all(word in said for word in ("claim", "measured", "holds"))
        for name in experiments.NAMES:
            claims = experiments.find(name).claims(read_csv(tmp_path / f"{name}.csv"))
            assert said.count(f"│ {name} ") == len(claims) > 0
            assert f"{name}.png" in said
        for path in expected - {"theorem1.csv", "fig2a.csv", "fig4.csv"}:
            (tmp_path / path).unlink()
        with pytest.raises(Failure, match="to draw fig1, fig2b, fig3, fig4, table1, recovery, solvers from"):
            reproduce("all", quick=True, out=tmp_path, plot_only=True, as_json=True)
        drawn = json.loads(capsys.readouterr().out)
        assert [result["experiment"] for result in drawn] == ["fig2a", "theorem1"]
        assert {path.stem for path in tmp_path.glob("*.png")} == {"fig2a", "theorem1"}

    def test_without_scikit_image_does_what_needs_no_pictures(self, tmp_path, capsys, monkeypatch):
        for name in [name for name in sys.modules if name.partition(".")[0] == "skimage"]:
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setitem(sys.modules, "skimage", None)
        monkeypatch.setattr(experiments, "NAMES", ("fig4", "table1", "theorem1"))
        reproduce("all", quick=True, out=tmp_path, jobs=1, quiet=True)
        said = capsys.readouterr().err
        for name in ("fig4", "table1"):
            assert f"{name} is left out: pictures need scikit-image" in said
        assert {path.stem for path in tmp_path.iterdir()} == {"theorem1"}
        with pytest.raises(Failure, match="pictures need scikit-image"):
            reproduce("fig4", quick=True, out=tmp_path, jobs=1)
