r"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, no network, no LaTeX.

Docutils translates LaTeX to MathML; this extension makes Sphinx use it. A formula that docutils cannot read
is a warning, and so ends the build.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

# Commands that docutils does not know, by what means the same.
SYNONYMS = {r"\dots": r"\ldots", r"\big\|": r"\|"}
# Browsers stretch bars over the whole line unless they are told not to. Parentheses docutils tells itself.
BARS = re.compile('<mo(?: class="mathopen")?>([|‖∥])</mo>')


def mathml(node, as_block):
    """The formula of a node as MathML; as LaTeX, with a warning, where it cannot be read."""
    tex = node.astext()
    for command, known in SYNONYMS.items():
        tex = tex.replace(command, known)
    try:
        markup = tex2mathml(tex, as_block=as_block)
    except MathError as error:
        logger.warning("the formula %r: %s", tex, error, location=node)
        return f"<code>{tex}</code>"
    if r"\left" in tex:  # here they are meant to stretch
        return markup
    return BARS.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', markup)


def visit_inline(self, node):
    self.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(mathml(node, as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
