"""Links of the pages to lines of the source: each line defines what the link names.

After an edit that moves lines, ``python docs/source_links.py`` writes the new line numbers into the pages.
"""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("source_links", ROOT / "docs" / "source_links.py")
source_links = importlib.util.module_from_spec(spec)
spec.loader.exec_module(source_links)
LINKING = [page for page in source_links.pages() if source_links.links(page)]


def test_the_design_page_links_to_the_source():
    assert ROOT / "docs" / "design.md" in LINKING


@pytest.mark.parametrize("page", LINKING, ids=lambda path: path.stem)
def test_linked_lines_define_the_names_in_the_links(page):
    for name, file, line in source_links.links(page):
        assert file.exists(), f"{page.name} links to {file}"
        assert name in source_links.lines_of(file), f"{page.name}: there is no {name} in {file.name}"
        text = file.read_text(encoding="utf-8").splitlines()[line - 1]
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", text), (
            f"{page.name}: line {line} of {file.name} is not {name}; run python docs/source_links.py"
        )


@pytest.mark.parametrize("page", LINKING, ids=lambda path: path.stem)
def test_every_link_to_a_line_has_the_form_that_is_checked(page):
    text = page.read_text(encoding="utf-8")
    assert len(source_links.links(page)) == len(re.findall(r"\.py#L", text))


def test_one_simco_step_is_followed_in_at_most_ten_files():
    page = ROOT / "docs" / "design.md"
    section = page.read_text(encoding="utf-8").partition("\n## One SimCO step\n")[2].partition("\n## ")[0]
    links = list(source_links.LINK.finditer(section))
    files = list(dict.fromkeys(link["file"].removeprefix("../manifold_dl/") for link in links))
    assert links[0]["name"] == "SimCO.__call__" and len(files) <= 10
    assert any(file.startswith("kernels/") for file in files)
    for file in files:
        assert f"`{file}`" in section, f"{file} is not in the list of files"
