"""Additions to sphinx-gallery: notebooks in clean Markdown, and tutorials that run without a warning.

In its notebooks there remain roles (:class:`~manifold_dl.SimCO`), names in double marks, and the raw HTML of
folded answers. In a notebook code cells cannot be folded, so an answer begins with a line in bold instead.
"""

import json
import re
import warnings
from pathlib import Path
from zipfile import ZipFile

RULES = [
    # The folded answer: a line in bold in the place of the fold.
    (r"\.\. raw:: html\n\s*<details[^>]*>\s*<summary>(.*?)</summary>\s*", r"**\1.**\n\n"),
    (r"\.\. raw:: html\n\s*</details>\s*", ""),
    # Links to other tutorials, of which sphinx-gallery has taken the role away already.
    (r"(?::\w+:)?`([^`<]+?)\s*<[^`>]+>`(?!_)", r"\1"),
    (r"(?<!`)`sphx_glr_tutorials_(\w+?)\.py`", r"`\1.ipynb`"),
    (r":[\w:]+:`~[\w.]*?(\w+)`", r"`\1`"),
    (r":[\w:]+:`([^`]+)`", r"`\1`"),
    (r"``([^`]+)``", r"`\1`"),
    (r"::\n\n(?= )", ":\n\n"),
    (r"\\begin\{align\}\s*(\\begin\{(\w+)\}.*?\\end\{\2\})\s*\\end\{align\}", r"$$\1$$"),
    (r"\\begin\{align\}(.*?)\\end\{align\}", r"$$\1$$"),
]
RULES = [(re.compile(pattern, re.DOTALL), replacement) for pattern, replacement in RULES]


def as_markdown(text):
    """The text of a cell without leftovers of reStructuredText.

    >>> as_markdown("See :class:`~manifold_dl.SimCO` and ``D``.")
    'See `SimCO` and `D`.'
    """
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    return text


def clean(path):
    """Rewrite the text cells of one notebook in place."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = as_markdown("".join(cell["source"])).splitlines(keepends=True)
    notebook["cells"] = [cell for cell in notebook["cells"] if "".join(cell["source"]).strip()]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def clean_all(app):
    """All notebooks, and the archives that hold each of them together with its script."""
    for path in sorted((Path(app.srcdir) / "tutorials").glob("*.ipynb")):
        clean(path)
        with ZipFile(path.with_suffix(".zip"), "w") as archive:
            for file in (path, path.with_suffix(".py")):
                archive.write(file, file.name)


def prepare(gallery_conf, script):
    """Before a tutorial runs: make its warnings errors, and leave out the messages about compilation.

    Whether a kernel is compiled during a tutorial depends on the machine, not on the tutorial.
    """
    from manifold_dl.kernels import backend

    backend.GROUPS.clear()
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")  # sphinx-gallery shows it instead


def setup(app):
    app.connect("builder-inited", clean_all, priority=900)  # after sphinx-gallery has written them
    return {"parallel_read_safe": True, "parallel_write_safe": True}
