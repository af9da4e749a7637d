"""Every tutorial runs as it is given to its readers, and its closing assertions hold."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "tutorials").glob("*.py"))


def test_there_are_tutorials():
    assert TUTORIALS


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_runs_without_a_warning(tutorial, tmp_path):
    # A process of its own, as for a reader, and a folder of its own, because a tutorial may write.
    run = subprocess.run(
        [sys.executable, "-W", "error", str(tutorial), str(tmp_path / "pictures")],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, f"{tutorial.name} failed:\n{run.stdout}\n{run.stderr}"
    pictures = list((tmp_path / "pictures").glob(f"{tutorial.stem}_*.png"))
    assert len(pictures) >= 2, (
        f"{tutorial.name} drew {len(pictures)} pictures; every tutorial shows at least 2."
    )


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_is_a_gallery_script_that_ends_in_assertions(tutorial):
    text = tutorial.read_text(encoding="utf-8")
    assert text.startswith('"""\n'), "a gallery script begins with its title"
    assert "\n# %%\n" in text
    assert "\nassert " in text, "a tutorial ends in assertions about what it taught"
    assert "plt.show(" not in text, "a window would wait for somebody to close it"
