"""`benchmarks/peers.py`: adapters of one's own, missing libraries, results that replace others, the page."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

MEAN_SIGNS = '''
"""An adapter in a file of one's own: the start is the answer."""
DISTRIBUTION = "numpy"
RECOVERY = {"start": lambda problem: problem.start, "fails": lambda problem: 1 / 0}
'''


@pytest.fixture(autouse=True)
def benchmarks_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def rows_of(path):
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if "run" not in line]


def run_peers(*arguments):
    command = [sys.executable, ROOT / "benchmarks" / "peers.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_adapter_of_ones_own_is_measured_and_a_missing_library_skipped(tmp_path):
    (tmp_path / "mine_own.py").write_text(MEAN_SIGNS)
    (tmp_path / "mine_missing.py").write_text("import not_installed_anywhere")
    options = ["--quick", "--only", "mine", "--out", tmp_path]
    adapters = [f"--adapter={tmp_path / name}" for name in ("mine_own.py", "mine_missing.py")]
    printed = run_peers("--task", "recovery", *options, *adapters)
    assert "mine_missing is skipped: No module named 'not_installed_anywhere'" in " ".join(printed.split())
    rows = rows_of(tmp_path / "quick" / "recovery-0.jsonl")
    assert {row["cell"]["n"] for row in rows if row["method"] == "start"} == {78, 300}
    # Random atoms are found by chance alone: |cos| > 0.99 in 16 dimensions.
    assert all(row["found"] == 0 and row["seconds"] < 0.1 for row in rows if row["method"] == "start")
    failures = [row["failure"] for row in rows if row["method"] == "fails"]
    assert failures == ["ZeroDivisionError: division by zero"] * 2  # once for each level of noise


def test_picture_that_an_adapter_returns_is_measured(tmp_path):
    (tmp_path / "mine_pictures.py").write_text(
        'DISTRIBUTION = "numpy"\nPICTURES = {"as it was": lambda problem: problem.noisy}\n'
    )
    options = ["--quick", "--only", "mine", "--out", tmp_path, f"--adapter={tmp_path / 'mine_pictures.py'}"]
    run_peers("--task", "denoising", *options)
    (row,) = rows_of(tmp_path / "quick" / "denoising-0.jsonl")
    # 116,352 pixels: the variance of the noise is right to a few times √(2/n), 0.02 dB.
    assert row["psnr"] == pytest.approx(20 * np.log10(255 / 25), abs=0.1)


def test_later_rows_replace_the_same_earlier_ones(tmp_path):
    from comparison import results

    file = tmp_path / "coding-0.jsonl"
    for seconds in (2.0, 1.0):
        results.begin(file, "coding", {"versions": {}})
        results.append(file, {"method": "a", "cell": {"n": 1}, "seconds": seconds})
    results.begin(file, "coding", {"versions": {}})
    results.append(file, {"method": "b", "cell": {"n": 1}, "seconds": 3.0})
    results.compact(file)
    runs, rows = results.read(file)
    assert len(runs) == 2  # of the first, no row is left
    assert [(row["method"], row["seconds"]) for row in rows] == [("a", 1.0), ("b", 3.0)]
    assert results.values(rows, "seconds", method="a", n=1) == [1.0]
    assert results.values(rows, "seconds", n=2) == []


def test_a_run_of_some_methods_replaces_all_their_earlier_rows_and_no_others(tmp_path):
    from comparison import results

    file = tmp_path / "recovery-1.jsonl"
    results.begin(file, "recovery", {"versions": {}})
    for n in (78, 150):
        for method in ("a", "b"):
            results.append(file, {"method": method, "cell": {"n": n}, "seconds": 1.0})
    results.begin(file, "recovery", {"versions": {}})
    results.append(file, {"method": "a", "cell": {"n": 78, "draw": 0}, "failure": "more than 6 s"})
    results.compact(file)
    runs, rows = results.read(file)
    assert len(runs) == 2
    assert [(row["method"], row["cell"]["n"], "failure" in row) for row in rows] == [
        ("b", 78, False),
        ("b", 150, False),
        ("a", 78, True),
    ]
    results.compact(file)
    assert results.read(file) == (runs, rows)


def test_call_in_which_something_was_compiled_is_made_again():
    import numba
    from comparison.timing import cpu_seconds

    calls = []
    function = numba.njit(lambda x: x + 1)

    def call(x):
        calls.append(x)
        return function(x)

    assert cpu_seconds(call, 1)[1] == 2 and len(calls) == 2
    assert cpu_seconds(call, 2)[1] == 3 and len(calls) == 3
    assert cpu_seconds(call, 0.5)[1] == 1.5 and len(calls) == 5  # for another type


def test_goal_that_is_missed_is_bold_and_one_not_measured_a_dash():
    from comparison.goals import GOALS, Goal
    from comparison.tasks import NAMES

    faster = Goal("speed", lambda rows: rows["x"][0], 3, at_least=True)
    assert [faster.verdict(faster.value({"x": x})) for x in ([3.5], [2.5], [])] == ["3.50", "**2.50**", "–"]
    assert Goal("time", lambda rows: 1.0, 2).verdict(1.0) == "1.00"
    nothing = {name: [] for name in NAMES}
    assert all(goal.value(nothing) is None for goal in GOALS)


def test_slope_of_a_power_law_is_its_exponent():
    from comparison.tasks.scaling import slope

    assert slope([1.0, 10.0, 100.0], [2.0, 2.0 * 10**1.3, 2.0 * 100**1.3]) == pytest.approx(1.3)
    assert slope([1.0], [2.0]) is None


def test_page_agrees_with_the_results():
    from comparison import page

    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page.with_tables(text) == text, "run python benchmarks/peers.py --page"
