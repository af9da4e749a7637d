"""Every tutorial has the common form, and the first ones run as scripts, as for a reader.

All of them run in `test_docs.py`, where the documentation is built: there, too, warnings are errors and the
closing assertions have to hold. To run each a second time as a script would take long.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[2] / "tutorials").glob("*.py"))
AS_SCRIPTS = [path for path in TUTORIALS if path.stem[:2] in ("01", "02")]

each_tutorial = pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)


def test_tutorials_are_numbered():
    assert [path.stem[:3] for path in TUTORIALS] == [f"{number:02d}_" for number in range(1, 16)]


@pytest.mark.parametrize("tutorial", AS_SCRIPTS, ids=lambda path: path.stem)
def test_tutorial_runs_as_a_script_and_writes_its_pictures(tutorial, tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", str(tutorial)],
        cwd=tmp_path,
        env={
            **os.environ,
            "MPLBACKEND": "module://manifold_dl.plotting.files",
            "MANIFOLD_DL_PICTURES": "pictures",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, f"{tutorial.name} failed:\n{run.stdout}\n{run.stderr}"
    assert len(list((tmp_path / "pictures").glob(f"{tutorial.stem}_*.png"))) >= 2


@each_tutorial
def test_tutorial_has_title_sections_exercise_and_assertions(tutorial):
    text = tutorial.read_text(encoding="utf-8")
    title = re.match(r'"""\n(.+)\n(=+)\n\n', text)
    assert title and len(title[1]) == len(title[2]), "it begins with a title, underlined"
    cells = text.split("\n# %%\n")
    assert len(cells) > 8, "one idea per cell"
    sections = re.findall(r"^# (.+)\n# -{3,}$", text, re.MULTILINE)
    assert sections[-2:] == ["Exercise", "What we have seen"]
    exercise, closing = text.index("\n# Exercise\n"), text.index("\n# What we have seen\n")
    answer = re.compile(
        r'# \.\. raw:: html\n#\n#    <details class="answer"><summary>Answer</summary>\n(?P<answer>.*?)\n'
        r"# \.\. raw:: html\n#\n#    </details>\n",
        re.DOTALL,
    ).search(text, exercise, closing)
    assert answer, "the exercise has a folded answer"
    assert re.search(r"^[a-zA-Z_]", answer["answer"], re.MULTILINE), "the answer has code that runs"
    assert len(re.findall(r"^ *assert .*  # ", text[closing:], re.MULTILINE)) >= 3, (
        "it ends in assertions, commented"
    )
    assert text.endswith("\nplt.show()\n") and text.count("plt.show()") == 1


@each_tutorial
def test_tutorial_refers_to_existing_tutorials(tutorial):
    named = re.findall(r"sphx_glr_tutorials_(\w+)\.py", tutorial.read_text(encoding="utf-8"))
    assert not set(named) - {path.stem for path in TUTORIALS}
