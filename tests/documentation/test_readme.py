"""The Python blocks of README.md and of all pages in docs run, in order, so that no page becomes outdated."""

import re
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import matplotlib
import pytest

ROOT = Path(__file__).parents[2]
BUILT = {"_build", "tutorials", "generated"}  # what `make docs` leaves
DOCS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not BUILT & set(page.parts)]
PAGES = [ROOT / "README.md", *DOCS]
FENCE = re.compile(r"^ *(?P<marks>`{3,})(?P<language>[\w+{}-]*)[ \w./]*$")
NEEDS = re.compile(r"<!-- needs: (?P<package>\w+) -->")
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())


def blocks(text, language="python"):
    """(line number, code) of every fenced block in a language.

    A comment ``<!-- needs: package -->`` in the line before leaves a block out where that is not installed:
    the pages for users of other packages show code of these, too.

    Examples
    --------
    >>> blocks("Try:\\n```python\\nx = 1\\n```\\n")
    [(3, 'x = 1\\n')]
    >>> blocks("<!-- needs: no_such_package -->\\n```python\\nimport no_such_package\\n```\\n")
    []
    """
    found, fence, code, before = [], None, [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        match = FENCE.match(line)
        if fence is None and match:
            fence, code = (number, match, NEEDS.search(before)), []
        elif fence is not None and line.strip() == fence[1]["marks"]:
            missing = fence[2] and find_spec(fence[2]["package"]) is None
            if fence[1]["language"] == language and not missing:
                found.append((fence[0] + 1, "".join(f"{row}\n" for row in code)))
            fence = None
        elif fence is not None:
            code.append(line)
        before = line
    assert fence is None, f"the block that begins in line {fence[0]} is never closed"
    return found


@each_page
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may save what it learned
    matplotlib.use("Agg")
    namespace = {"__name__": page.stem}
    for line, code in blocks(page.read_text(encoding="utf-8")):
        # Empty lines in front, so that a traceback names the line of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)


@each_page
def test_links_to_files_name_existing_files(page):
    targets = [match["target"].split("#")[0] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    files = [target for target in targets if target and "://" not in target and ":" not in target]
    missing = [target for target in files if not (page.parent / target).exists()]
    assert not missing, f"{page.name} links to {missing}"


def test_pages_and_their_python_blocks_are_found():
    names = {page.relative_to(ROOT).as_posix() for page in PAGES}
    assert {
        "docs/index.md",
        "docs/mathematics.md",
        "docs/extending/coder.md",
        "docs/coming_from/ksvd.md",
    } <= names
    for name in ("index.md", "mathematics.md", "design.md", "extending/coder.md", "coming_from/manopt.md"):
        assert blocks((ROOT / "docs" / name).read_text(encoding="utf-8"))


@each_page
def test_names_in_code_marks_exist(page):
    for name in re.findall(r"`(?:mdl|manifold_dl)\.([\w.]+)`", page.read_text(encoding="utf-8")):
        # Modules that the package does not import by itself are reached by their full name.
        resolve_name(f"manifold_dl.{name}")
