"""Running a study: files, processes, interruptions, locks and damage."""

import dataclasses
import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys

import matplotlib.figure
import matplotlib.pyplot as plt
import pytest
from small_studies import (
    ones,
    stop_at,
    tiny,
    undrawn,
    written,
)

from manifold_dl.experiments.running import redraw, run


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

    def test_interrupted_run_continues_after_the_last_complete_part(self, tmp_path):
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

    def test_finished_results_are_redrawn_and_not_measured_again(self, tmp_path):
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

    def test_journal_of_other_parameters_is_refused(self, tmp_path):
        study, parameters = tiny()
        (tmp_path / "fig2a.partial.jsonl").write_text(
            json.dumps({"experiment": "fig2a", "parameters": {}, "seed": 0}) + "\n", encoding="utf-8"
        )
        with pytest.raises(ValueError, match="other parameters"):
            run(study, tmp_path, parameters=parameters)
        run(study, tmp_path, parameters=parameters, force=True)
        assert written(tmp_path)[2] == parameters

    @pytest.mark.parametrize("force", [True, False])
    def test_interrupted_forced_run_continues_with_the_same_parameters(self, tmp_path, force):
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
    def test_table_and_record_always_belong_to_the_same_run(self, tmp_path, monkeypatch, name):
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
    def test_damaged_record_or_journal_is_named(self, tmp_path, end, line):
        study, parameters = undrawn()
        run(study, tmp_path, parameters=parameters)
        (tmp_path / f"fig2a.{end}").write_bytes(line)
        with pytest.raises(ValueError, match=rf"fig2a\.{end} is damaged.*--force"):
            run(study, tmp_path, parameters=parameters)
        run(study, tmp_path, parameters=parameters, force=True)
        assert written(tmp_path)[2] == parameters

    def test_damaged_line_within_a_journal_is_refused(self, tmp_path):
        study, parameters = undrawn()
        with pytest.raises(KeyboardInterrupt):
            run(study, tmp_path, parameters=parameters, progress=stop_at(2))
        with open(tmp_path / "fig2a.partial.jsonl", "a", encoding="utf-8") as file:
            file.write('{"part": 2}\n')  # whole, but without its rows
        with pytest.raises(ValueError, match=r"partial\.jsonl is damaged"):
            run(study, tmp_path, parameters=parameters)

    def test_lock_of_a_running_process_is_respected(self, tmp_path):
        study, parameters = undrawn()
        lock = tmp_path / ".fig2a.lock"
        lock.write_text(str(os.getppid()), encoding="utf-8")  # a running process
        sentence = rf"fig2a\.lock says that process {os.getppid()} is measuring fig2a"
        # That the file is open is what counts on Windows.
        with open(lock, encoding="utf-8"), pytest.raises(ValueError, match=sentence):
            run(study, tmp_path, parameters=parameters)
        assert list(tmp_path.iterdir()) == [lock]

    def test_lock_of_an_ended_process_is_removed(self, tmp_path):
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
    def test_measure_function_of_the_given_study_is_used(self, tmp_path, jobs):
        study, parameters = undrawn()
        other = dataclasses.replace(study, measure=ones)
        assert run(other, tmp_path, parameters=parameters, jobs=jobs)["error"].tolist() == [1.0] * 5

    def test_worker_processes_end_after_an_error(self, tmp_path):
        study, parameters = undrawn()
        study = dataclasses.replace(study, measure=ones)
        before = set(multiprocessing.active_children())  # another test's, such as those of scikit-learn
        with pytest.raises(KeyboardInterrupt) as caught:
            run(study, tmp_path, parameters=parameters, jobs=2, progress=stop_at(1))
        assert caught.tb  # the frames, and all that is in them, are alive
        assert not set(multiprocessing.active_children()) - before

    def test_drawing_keeps_the_matplotlib_backend(self, tmp_path):
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

    def test_redraw_uses_the_table_alone(self, tmp_path):
        study, parameters = tiny()
        run(study, tmp_path, parameters=parameters)
        first = (tmp_path / "fig2a.svg").read_bytes()
        for name in ("fig2a.json", "fig2a.png", "fig2a.svg"):
            (tmp_path / name).unlink()
        redraw(study, tmp_path)
        assert (tmp_path / "fig2a.svg").read_bytes() == first

    def test_redraw_without_a_table_is_refused(self, tmp_path):
        with pytest.raises(ValueError, match="without --plot-only first"):
            redraw(tiny()[0], tmp_path)
