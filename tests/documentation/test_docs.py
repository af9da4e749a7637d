"""The documentation is built once, offline, with warnings as errors, and its pages are checked.

The build runs every tutorial, with Python's warnings as errors too (`docs/_extensions/gallery.py`). So where
it succeeds, the tutorials run, draw their pictures, and their closing assertions hold.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import chromium
import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted(path.stem for path in (ROOT / "tutorials").glob("*.py"))
LOADS = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href"}


def load(path):
    """A module from a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Page(HTMLParser):
    """The links of a page, the files it loads, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.path, self.anchors, self.links, self.loaded, self.tags = path, {""}, [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.anchors |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag in LOADS and attributes.get(LOADS[tag]):
            self.loaded.append(attributes[LOADS[tag]])
        self.loaded += [one.split()[0] for one in attributes.get("srcset", "").split(",") if one.strip()]

    def pictures(self):
        """The pictures that a tutorial has drawn."""
        drawn = re.compile(r"sphx-glr-(single|multi)-img")
        return [
            attributes
            for tag, attributes in self.tags
            if tag == "img" and drawn.match(attributes.get("class") or "")
        ]


def png_width(path):
    """In pixels: the bytes 16 to 20 of the file."""
    return int.from_bytes(path.read_bytes()[16:20], "big")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The built pages, by their path."""
    root = tmp_path_factory.mktemp("site")
    built = shutil.ignore_patterns("_build", "tutorials", "generated", "__pycache__")
    shutil.copytree(ROOT / "docs", root / "docs", ignore=built)  # the build writes among its sources
    shutil.copytree(ROOT / "tutorials", root / "tutorials", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "CHANGELOG.md", root)
    run = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "2", root / "docs", root / "html"],
        capture_output=True,
        text=True,
        # One thread each: two tutorials run at a time.
        env={**os.environ, "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1", "NO_COLOR": "1"},
    )
    assert run.returncode == 0, f"the documentation cannot be built:\n{run.stdout}\n{run.stderr}"
    return root / "html"


@pytest.fixture(scope="session")
def pages(site):
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    return {path.relative_to(site).as_posix(): Page(path) for path in paths}


def test_every_source_has_a_built_page(pages):
    sources = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "api").glob("*.rst")]
    built = {"_build", "tutorials", "generated"}
    expected = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in sources]
    missing = [path for path in expected if not built & set(path.parts) and path.as_posix() not in pages]
    assert len(expected) > 20 and not missing


def test_internal_links_lead_to_existing_pages_and_anchors(pages, site):
    broken = []
    for name, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
            if not target.exists():
                broken.append(f"{name}: {link}")
            elif target.suffix == ".html" and unquote(parts.fragment) not in _at(pages, target, site).anchors:
                broken.append(f"{name}: {link} (no such place in that page)")
    assert not broken, "\n".join(broken)


def _at(pages, target, site):
    return pages[target.relative_to(site).as_posix()]


def test_nothing_is_loaded_from_the_network(pages, site):
    outside = re.compile(r"(https?:)?//")
    loaded = [f"{name}: {url}" for name, page in pages.items() for url in page.loaded if outside.match(url)]
    imported = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""")
    loaded += [str(path) for path in site.rglob("*.css") if imported.search(path.read_text(encoding="utf-8"))]
    assert not loaded, loaded


def test_formulas_are_mathml_and_none_is_left_as_latex(pages):
    formulas = sum(tag == "math" for tag, _ in pages["mathematics.html"].tags)
    assert formulas > 100
    for name, page in pages.items():
        text = page.path.read_text(encoding="utf-8")
        assert 'class="problematic"' not in text, name
        assert r"\(" not in re.sub(r"<pre>.*?</pre>|<script.*?</script>", "", text, flags=re.DOTALL), name


def test_public_names_and_api_pages_agree(pages):
    public = load(ROOT / "docs" / "_extensions" / "crossreferences.py").public_names()
    documented = {name for name in pages if name.startswith("api/generated/")}
    assert documented == {f"api/generated/{name}.html" for name in public}
    assert not [name for name in public if name not in pages[f"api/generated/{name}.html"].anchors]


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_tutorial_page_has_pictures_notebook_and_api_links(tutorial, pages):
    page = pages[f"tutorials/{tutorial}.html"]
    assert len(page.pictures()) >= 2
    # The text is 800 pixels wide at most; a fine screen has twice as many for a picture of that width.
    widths = [png_width(page.path.parent / picture["src"]) for picture in page.pictures()]
    assert min(widths) >= 1000 and max(widths) >= 1280, widths
    assert any(link.endswith(f"{tutorial}.ipynb") for link in page.links)
    assert any(link.endswith(f"{tutorial}.py") for link in page.links)
    folded = [
        attributes
        for tag, attributes in page.tags
        if tag == "details" and attributes.get("class") == "answer"
    ]
    assert folded and "open" not in folded[0]
    assert any(link.startswith("../api/generated/manifold_dl.") for link in page.links)


def test_api_pages_link_to_tutorials(pages):
    for name in (
        "SimCO",
        "update_problem",
        "GoldenSection",
        "manifolds.Spheres",
        "plotting.plot_sphere_path",
    ):
        links = pages[f"api/generated/manifold_dl.{name}.html"].links
        assert any("tutorials/" in link for link in links), f"no tutorial is named on the page of {name}"


@pytest.fixture(scope="session")
def notebooks(site):
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in (site / "_downloads").rglob("*.ipynb")
    }


def test_notebooks_are_valid_and_contain_no_restructured_text(notebooks):
    assert sorted(notebooks) == TUTORIALS
    leftovers = re.compile(r":\w+:`|^\.\. |``\w|`_\b|sphx_glr|<details|^-{4,}$|^={4,}$", re.MULTILINE)
    for name, notebook in notebooks.items():
        assert notebook["nbformat"] == 4 and notebook["cells"][0]["source"] == ["%matplotlib inline"]
        for cell in notebook["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                found = leftovers.search(text)
                assert not found, f"{name}: {found[0]!r} in\n{text}"
            else:
                assert cell["cell_type"] == "code" and "outputs" in cell and "execution_count" in cell
                compile(text.removeprefix("%matplotlib inline"), name, "exec")


def test_notebook_cells_run_in_order(notebooks, tmp_path):
    # One of them: their code is that of the tutorials, which have run. What can go wrong is how it was cut.
    cells = [cell for cell in notebooks["01_sphere"]["cells"] if cell["cell_type"] == "code"]
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in cells[1:]), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, script], env={**os.environ, "MPLBACKEND": "Agg"}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_restructured_text_is_converted_to_markdown():
    as_markdown = load(ROOT / "docs" / "_extensions" / "gallery.py").as_markdown
    assert as_markdown("See :class:`~manifold_dl.SimCO` and ``D``.") == "See `SimCO` and `D`."
    assert as_markdown("in `sphx_glr_tutorials_01_sphere.py`.") == "in `01_sphere.ipynb`."
    assert as_markdown("in `the first <sphx_glr_tutorials_01_sphere.py>`.") == "in the first."
    fold = '.. raw:: html\n\n   <details class="answer"><summary>Answer</summary>\n\nYes.'
    assert as_markdown(fold) == "**Answer.**\n\nYes."
    assert as_markdown(r"\begin{align}f(x)\end{align}") == "$$f(x)$$"


@pytest.mark.parametrize(
    "tex, expected",
    [
        (r"\|x\|", '<mo stretchy="false" lspace="0" rspace="0">‖</mo><mi>x</mi>'),  # not over the whole line
        (r"\left\|x\right\|", "<mo>‖</mo>"),  # unless by \left and \right
        (r"\bar g_i", "</mover><mi>i</mi></msub>"),  # the index stands beside, not below
        (r"\sin\theta", '<mi>sin</mi><mspace width="0.1667em" /><mi>θ</mi>'),
        (r"\sin(x)", '<mi>sin</mi><mo stretchy="false">(</mo>'),
        (r"2\cos t", '<mn>2</mn><mspace width="0.1667em" /><mi>cos</mi>'),
        (r"a < b", "<mo>&lt;</mo>"),
    ],
)
def test_mathml_is_corrected_for_browsers(tex, expected):
    from docutils import nodes

    assert expected in load(ROOT / "docs" / "_extensions" / "mathml.py").mathml(nodes.math("", tex), False)


def test_no_formula_has_a_horizontal_brace():
    """Without a mathematical font browsers draw it as short as a letter."""
    braces = load(ROOT / "docs" / "_extensions" / "mathml.py").BRACES
    sources = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "tutorials").rglob("*.py")]
    named = [
        path.name for path in sources if any(brace in path.read_text(encoding="utf-8") for brace in braces)
    ]
    assert len(sources) > 20 and not named


@pytest.mark.parametrize("name", ["flow.svg", "layers.svg"])
def test_drawings_of_the_design_page_are_up_to_date(name):
    drawn = load(ROOT / "docs" / "diagrams.py").DRAWINGS[name]()
    kept = (ROOT / "docs" / "figures" / name).read_text(encoding="utf-8")
    assert kept == drawn, "run python docs/diagrams.py"


def test_atoms_of_the_first_picture_converge_to_the_true_ones():
    import numpy as np

    path, truth = load(ROOT / "docs" / "first_picture.py").descent()
    distances = np.linalg.norm(path - truth, axis=1)
    assert np.all(distances[0] > 0.5) and np.all(distances[-1] < 1e-4)


@pytest.mark.skipif(not chromium.IS_INSTALLED, reason="needs Debian's chromium")
@pytest.mark.parametrize(
    "name", ["index", "mathematics", "design", "manifolds", "denoising", "tutorials/03_dictionary_update"]
)
def test_pages_fit_into_a_window_of_800_pixels(name, site, tmp_path):
    """At 800 pixels only tables, code and formulas scroll, each by itself."""
    page = site / f"{name}.html"
    root = "document.documentElement"
    measure = f"document.title = 'excess ' + ({root}.scrollWidth - {root}.clientWidth)"
    script = f"<script>addEventListener('load', () => {{ {measure} }})</script></body>"
    copy = page.with_name(f"measured-{page.name}")
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", script), encoding="utf-8")
    browser = ["chromium", *chromium.FLAGS, f"--user-data-dir={tmp_path}"]
    options = ["--window-size=800,1000", "--virtual-time-budget=3000", "--dump-dom", copy.as_uri()]
    dom = subprocess.run([*browser, *options], capture_output=True, text=True, timeout=120).stdout
    copy.unlink()
    assert re.search(r"<title>excess (-?\d+)</title>", dom)[1] == "0"
