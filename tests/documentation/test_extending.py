"""The examples of `tutorials/extending` are short and correct, and the pages in `docs/extending` show them.

To bring a page up to date after its example has changed, run this file:
``python tests/documentation/test_extending.py``.
"""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

from manifold_dl import diagnostics, plugins

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "tutorials" / "extending").glob("*.py"))
PAGES = [ROOT / "docs" / "extending" / f"{example.stem}.md" for example in EXAMPLES]

# The most lines of code, imports included, as docs/extending/index.md states.
LINES = {"regularizer": 5, "schedule": 5, "coder": 15, "line_searcher": 25, "codes": 25, "optimizer": 30}

COMPONENTS = {
    "regularizer": lambda names: diagnostics.check_regularizer(names["peaks"]),
    "schedule": lambda names: diagnostics.check_schedule(names["EvenThenOdd"](), covers=True),
    "codes": lambda names: names["report"],
    "coder": lambda names: diagnostics.check_coder(names["Thresholding"](sparsity=2)),
    "line_searcher": lambda names: diagnostics.check_line_searcher(names["Backtracking"]()),
    "optimizer": lambda names: diagnostics.check_optimizer(names["BarzilaiBorwein"]()),
    "manifold": lambda names: diagnostics.check_manifold(names["QuadraturePairs"](7, 6)),
}

BLOCK = re.compile(r"<!-- (tutorials/extending/\w+\.py): (\w+) -->\n```python\n(.*?)```", re.DOTALL)


def region(path, name):
    """The code between ``# begin: name`` and ``# end: name``."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return text.partition(f"# begin: {name}\n")[2].partition(f"# end: {name}\n")[0].strip() + "\n"


def with_code(page):
    """The page with the code of its examples put in place."""
    put = lambda found: f"<!-- {found[1]}: {found[2]} -->\n```python\n{region(found[1], found[2])}```"
    return BLOCK.sub(put, page.read_text(encoding="utf-8"))


def test_every_kind_of_component_has_an_example_and_a_page():
    assert [example.stem for example in EXAMPLES] == sorted(COMPONENTS)
    assert all(page.exists() for page in PAGES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_passes_its_check(example):
    names = runpy.run_path(str(example))
    assert "\nassert " in example.read_text(encoding="utf-8")
    assert COMPONENTS[example.stem](names)


@pytest.mark.parametrize("kind", LINES)
def test_component_has_at_most_the_stated_number_of_lines(kind):
    code = region(f"tutorials/extending/{kind}.py", "component").splitlines()
    lines = [line for line in code if line.strip() and not line.strip().startswith("#")]
    assert 0 < len(lines) <= LINES[kind]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_page_shows_the_code_of_the_tested_file(page):
    text = page.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert {name for _, name, _ in blocks} == {"component", "check", "use"}
    assert all(path == f"tutorials/extending/{page.stem}.py" for path, _, _ in blocks)
    assert len(blocks) == text.count("```python"), "a block of code that no test has seen"
    assert text == with_code(page), f"{page.name} is out of date: run python {Path(__file__).name}"


def test_page_on_packaging_registers_existing_kinds():
    text = (ROOT / "docs" / "extending" / "packaging.md").read_text(encoding="utf-8")
    table = tomllib.loads(text.partition("```toml\n")[2].partition("```")[0])
    names = table["project"]["entry-points"][plugins.GROUP]
    assert {name.partition(".")[0] for name in names} <= set(plugins.KINDS)
    assert all(f"`{kind}`" in text for kind in plugins.KINDS)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_code(page), encoding="utf-8")
