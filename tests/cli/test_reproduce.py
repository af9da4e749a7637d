"""``manifold-dl reproduce``: one study, all of them, and interruptions."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import matplotlib.pyplot as plt
import pytest
import typer

from manifold_dl import experiments
from manifold_dl.cli.errors import Failure
from manifold_dl.cli.reproduce import reproduce
from manifold_dl.experiments.tables import read_csv


class TestCommandLine:
    def command(self, *arguments):
        return [sys.executable, "-m", "manifold_dl", "reproduce", *map(str, arguments)]

    def test_reproduce_prints_claims_and_the_path_of_the_figure(self, tmp_path):
        done = subprocess.run(
            self.command("theorem1", "--quick", "--out", tmp_path, "--jobs", 1, "--json"),
            capture_output=True,
            text=True,
            check=True,
        )
        (result,) = json.loads(done.stdout)
        assert result["figure"] == str(tmp_path / "theorem1.png")
        assert all(claim["holds"] for claim in result["claims"])

    def test_unknown_experiment_gives_one_sentence(self, tmp_path):
        done = subprocess.run(self.command("fig9", "--out", tmp_path / "new"), capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith("manifold-dl: there is no experiment 'fig9'")
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "new").exists()

    def test_folder_name_may_look_like_rich_markup(self, tmp_path, capsys):
        folder = tmp_path / "[bold] or [/not]"
        reproduce("theorem1", quick=True, out=folder, jobs=1)
        said, _ = capsys.readouterr()
        assert f"are in {folder}:" in said
        assert "theorem1.png" in said

    @pytest.mark.parametrize("options", [{}, {"quiet": True}, {"as_json": True}])
    def test_interruption_is_reported_also_with_quiet_and_json(self, tmp_path, capsys, monkeypatch, options):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        study = dataclasses.replace(experiments.find("theorem1"), measure=interrupted)
        monkeypatch.setattr(experiments, "find", lambda name: study)
        with pytest.raises(typer.Exit) as stopped:
            reproduce("theorem1", quick=True, out=tmp_path, jobs=1, **options)
        assert stopped.value.exit_code == 130
        assert "the same command continues from there" in capsys.readouterr().err

    def test_interrupted_forced_run_lists_the_unfinished_studies(self, tmp_path, capsys, monkeypatch):
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
    def test_interrupted_run_keeps_its_measurements(self, tmp_path):
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
    "hidden": {"shape": [8, 12], "sparsity": 2, "signals": [40], "iterations": 2, "passes": 2, "trials": 1},
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

    def test_all_studies_are_measured_drawn_checked_and_redrawn(self, tmp_path, capsys):
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
        with pytest.raises(
            Failure, match="to draw fig1, fig2b, fig3, fig4, table1, recovery, solvers, hidden from"
        ):
            reproduce("all", quick=True, out=tmp_path, plot_only=True, as_json=True)
        drawn = json.loads(capsys.readouterr().out)
        assert [result["experiment"] for result in drawn] == ["fig2a", "theorem1"]
        assert {path.stem for path in tmp_path.glob("*.png")} == {"fig2a", "theorem1"}

    def test_without_scikit_image_studies_with_pictures_are_left_out(self, tmp_path, capsys, monkeypatch):
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
