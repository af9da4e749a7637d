"""The source files that pages link to, as pages with numbered lines.

A link such as ``[`SimCORun.move`](../manifold_dl/updates/simco.py#L203)`` works where the Markdown is read by
itself. In the built pages it leads to a page of that file, which is written here, at that line.
"""

import re
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import manifold_dl

PACKAGE = Path(manifold_dl.__file__).parent
LINK = re.compile(r"\]\((?:\.\./)+manifold_dl/(?P<path>[\w/]+)\.py(?:#L(?P<line>\d+))?\)")


def link_to_source_pages(app, docname, source):
    """Links of Markdown pages to source files become links to their pages.

    The scheme ``source:`` (``myst_url_schemes`` in conf.py) makes MyST take them as they are.
    """
    root = "../" * docname.count("/")

    def page(link):
        app.env.linked_sources.setdefault(docname, set()).add(link["path"])
        return f"](source:{root}source/{link['path']}.html#L-{link['line'] or 1})"

    source[0] = LINK.sub(page, source[0])


def begin(app, env, docnames):
    """Where the links are kept from one build to the next."""
    if not hasattr(env, "linked_sources"):
        env.linked_sources = {}


def merge(app, env, docnames, other):
    """Take over what a parallel process has read."""
    env.linked_sources.update(
        {name: paths for name, paths in other.linked_sources.items() if name in docnames}
    )


def source_pages(app):
    """One page for each linked file."""
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, wrapcode=True)
    for path in sorted(set().union(*app.env.linked_sources.values())):
        code = highlight((PACKAGE / f"{path}.py").read_text(encoding="utf-8"), PythonLexer(), formatter)
        title = f"manifold_dl/{path}.py"
        yield f"source/{path}", {"title": title, "body": f"<h1>{title}</h1>{code}"}, "page.html"


def setup(app):
    app.connect("env-before-read-docs", begin)
    app.connect("source-read", link_to_source_pages)
    app.connect("env-merge-info", merge)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
