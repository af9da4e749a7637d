"""The Python blocks of README.md and docs/*.md run, in order, so that no page can go stale."""

import re
from pathlib import Path
from pkgutil import resolve_name

import matplotlib
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^ *(?P<marks>`{3,})(?P<language>[\w+-]*) *$")
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def blocks(text, language="python"):
    """(line number, code) of every fenced block in a language.

    Examples
    --------
    >>> blocks("Try:\\n```python\\nx = 1\\n```\\n")
    [(3, 'x = 1\\n')]
    """
    found, fence, code = [], None, []
    for number, line in enumerate(text.splitlines(), start=1):
        match = FENCE.match(line)
        if fence is None and match:
            fence, code = (number, match), []
        elif fence is not None and line.strip() == fence[1]["marks"]:
            if fence[1]["language"] == language:
                found.append((fence[0] + 1, "".join(f"{row}\n" for row in code)))
            fence = None
        elif fence is not None:
            code.append(line)
    assert fence is None, f"the block that begins in line {fence[0]} is never closed"
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may save what it learned
    matplotlib.use("Agg")
    namespace = {"__name__": page.stem}
    for line, code in blocks(page.read_text(encoding="utf-8")):
        # Empty lines in front, so that a traceback names the line of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page):
    targets = [match["target"].split("#")[0] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    files = [target for target in targets if target and "://" not in target and ":" not in target]
    missing = [target for target in files if not (page.parent / target).exists()]
    assert not missing, f"{page.name} links to {missing}"


def test_mathematics_and_design_are_executed():
    """The extraction finds the blocks at all."""
    for name in ("mathematics.md", "design.md", "index.md"):
        assert blocks((ROOT / "docs" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_in_code_marks_exist(page):
    for name in re.findall(r"`(?:mdl|manifold_dl)\.([\w.]+)`", page.read_text(encoding="utf-8")):
        # Modules that the package does not import by itself are reached by their full name.
        resolve_name(f"manifold_dl.{name}")
