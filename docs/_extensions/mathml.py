"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, no network, no LaTeX.

Docutils translates LaTeX to MathML; this extension makes Sphinx use it, and corrects what browsers would draw
in another way than LaTeX does. A formula that docutils cannot read is a warning, and so ends the build; so is
one with a horizontal brace, which browsers draw too short where no mathematical font is installed.
"""

import xml.etree.ElementTree as ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

# Commands that docutils does not have, and synonyms that it has.
SYNONYMS = {r"\dots": r"\ldots", r"\big\|": r"\|"}
BRACES = (r"\underbrace", r"\overbrace")
APPLY = "\N{FUNCTION APPLICATION}"
BARS, ACCENTS, OPENING = set("|‖∥⟨⟩"), set("ˉˆ˜˙¨ˇ˘"), set("([{")
THIN = "0.1667em"
ROWS = {"math", "mrow", "mtd", "mstyle"}  # whose children stand side by side


def mathml(node, as_block):
    """The formula of a node as MathML; as LaTeX, with a warning, where it cannot be read."""
    tex = node.astext()
    for command, known in SYNONYMS.items():
        tex = tex.replace(command, known)
    if any(brace in tex for brace in BRACES):
        message = "the formula %r: a horizontal brace needs a font that many browsers lack; write it without."
        logger.warning(message, tex, location=node)
    try:
        markup = tex2mathml(tex, as_block=as_block)
    except MathError as error:
        logger.warning("the formula %r: %s", tex, error, location=node)
        return f"<code>{tex}</code>"
    formula = ElementTree.fromstring(markup.replace("&ApplyFunction;", APPLY))
    correct(formula, stretch=r"\left" in tex)
    formula.attrib["xmlns"] = "http://www.w3.org/1998/Math/MathML"
    return ElementTree.tostring(formula, encoding="unicode")


def correct(element, stretch):
    """In place: bars that do not grow, subscripts beside accents, a little space around function names."""
    element.tag = element.tag.rpartition("}")[2]  # without the namespace, which is HTML's own
    element.text = (element.text or "").strip() or None
    element.tail = None
    if element.tag == "mo" and element.text in BARS and (not stretch or element.get("stretchy") == "false"):
        # Browsers stretch bars over the whole line unless `stretchy` is false.
        element.attrib.update(stretchy="false", lspace="0", rspace="0")
    for child in element:
        correct(child, stretch)
    if element.tag == "munderover" and element[2].text in ACCENTS:
        base, subscript, accent = element
        element.tag = "msub"
        element[:] = [ElementTree.Element("mover", accent="true"), subscript]
        element[0][:] = [base, accent]
    if element.tag not in ROWS:
        return
    row = [child for child in element if child.text != APPLY]
    element[:] = []
    for before, child, after in zip([None, *row], row, [*row[1:], None], strict=False):
        is_function = _names_a_function(child)
        if is_function and before is not None and before.tag not in ("mo", "mspace"):
            element.append(ElementTree.Element("mspace", width=THIN))
        element.append(child)
        if is_function and after is not None and after.text not in OPENING and after.tag != "mspace":
            element.append(ElementTree.Element("mspace", width=THIN))


def _names_a_function(element):
    """sin, log, tr, ...; or one of them with an exponent or an index."""
    if element.tag in ("msup", "msub", "msubsup"):
        element = element[0]
    return element.tag == "mi" and len(element.text or "") > 1


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
