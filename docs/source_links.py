"""The line numbers in links to the source, such as [`SimCORun.move`](../manifold_dl/updates/simco.py#L203).

    python docs/source_links.py

writes the current line of every name that is linked in this way into the pages. The text of such a link is
the name of a function, class, method or constant of the file, in code marks; a test fails when a name is not
there, or when a line is not up to date.
"""

import ast
import re
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parent
BUILT = {"_build", "tutorials", "generated"}  # what Sphinx writes among its sources
LINK = re.compile(
    r"\[`(?P<name>[\w.]+)(?:\(\))?`\]\((?P<file>(?:\.\./)+manifold_dl/[\w/]+\.py)#L(?P<line>\d*)\)"
)


def pages():
    """All pages in Markdown."""
    return [page for page in sorted(DOCS.rglob("*.md")) if not BUILT & set(page.parts)]


def links(page):
    """Every link of a page to a line of the source: (name, file, line that it gives)."""
    found = LINK.finditer(page.read_text(encoding="utf-8"))
    return [(link["name"], (page.parent / link["file"]).resolve(), int(link["line"] or 0)) for link in found]


@cache
def lines_of(file):
    """The line of every function, class, method and constant of a module: {"SimCORun.move": 203, ...}."""
    found = {}

    def add(body, prefix):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(f"{prefix}{node.name}", node.lineno)
                add(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(f"{prefix}{target.id}", node.lineno)

    add(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return found


def with_lines(page):
    """The text of a page with the current lines in its links."""

    def current(link):
        line = lines_of((page.parent / link["file"]).resolve())[link["name"]]
        start, end = link.span("line")
        return f"{link[0][: start - link.start()]}{line}{link[0][end - link.start() :]}"

    return LINK.sub(current, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in pages():
        page.write_text(with_lines(page), encoding="utf-8")
