"""Names in code marks become links to the API, and links between files become links between pages.

The pages are written to be read as plain Markdown, too: `SimCO` is a name in code marks, and a link to a
tutorial is one to its file. Here both become links in the built pages. `public_names` lists what has an API
page; a test compares it with the pages.
"""

import importlib
import inspect
import re
from functools import cache
from pkgutil import resolve_name

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import manifold_dl

# Beyond the modules that `manifold_dl` lists itself: names that users meet in signatures and tutorials.
MORE_NAMES = [
    "engines.protocol.TreeSum",
    "engines.protocol.partition",
    "engines.ordered_map.available_threads",
    "engines.threads.using_threads",
    "images.defaults.tethered",
    "images.filling.smooth_fill",
    "images.patches.centred",
    "images.reconstruction.WeightedPatches",
    "images.reconstruction.reconstruct",
    "images.reconstruction.weighted_reconstruction",
    "learning.initialization.initial_dictionary",
    "learning.minibatch.OnlineState",
    "learning.minibatch.geodesic_interpolate",
    "learning.minibatch.online_step",
    "learning.protocols.Callback",
    "learning.protocols.CallbackMethods",
    "learning.protocols.ReplacementPolicy",
    "problem.counts.Counts",
    "problem.recorder.Iterate",
    "problem.solvers.FollowingCoder",
    "problem.solvers.InnerSolver",
    "problem.solvers.LassoSolver",
    "problem.solvers.PenalizedCoder",
    "problem.solvers.SignalUnit",
    "updates.ridge.RidgeSchedule",
    "updates.ridge.Sawtooth",
    "updates.ridge.TwoStep",
]

NAME = re.compile(r"(?P<package>mdl\.|manifold_dl\.)?(?P<name>[A-Za-z]\w*(?:\.\w+)*)(?:\([^()]*\))?")
DOCUMENTED = re.compile(r"api/generated/(?P<page>[\w.]+)\.html#(?P<anchor>[\w.]+)")
TUTORIAL = re.compile(r"\]\((?:\.\./)+tutorials/(?P<name>\d\d_\w+)\.py\)")
TUTORIALS = re.compile(r"\]\((?:\.\./)+tutorials/?\)")


@cache
def public_names():
    """Every name that has an API page, as users write it: {"manifold_dl.SimCO": object, ...}."""
    found = {}
    modules = []
    for name in manifold_dl.__all__:
        value = getattr(manifold_dl, name)
        if inspect.ismodule(value):
            modules.append(name)
        else:
            found[f"manifold_dl.{name}"] = value
    at_the_top = {id(value) for value in found.values()}
    for name in sorted(modules):
        module = importlib.import_module(f"manifold_dl.{name}")
        for member in getattr(module, "__all__", None) or _defined_in(module):
            value = getattr(module, member)
            if id(value) not in at_the_top:
                found[f"manifold_dl.{name}.{member}"] = value
    for name in MORE_NAMES:
        found[f"manifold_dl.{name}"] = resolve_name(f"manifold_dl.{name}")
    return found


def _defined_in(module):
    """The public names of a module without `__all__`: those that were defined in it."""
    own = lambda value: getattr(value, "__module__", "") == module.__name__
    return [name for name, value in vars(module).items() if own(value) and not name.startswith("_")]


@cache
def short_names():
    """Names as the text writes them, without the package, by the full ones."""
    full = {name.removeprefix("manifold_dl."): name for name in public_names()}
    # A single word is taken for a name only if it looks like one: `SimCO`, `plot_atoms`, but not `load`.
    looks_like_a_name = re.compile(r"[A-Z]|\w+_\w+")
    for name in public_names():
        last = name.rpartition(".")[2]
        if looks_like_a_name.match(last):
            full.setdefault(last, name)
    return {short: name for short, name in full.items() if "." in short or looks_like_a_name.match(short)}


class LinkNames(SphinxTransform):
    """`SimCO` in code marks refers to its API page."""

    default_priority = 400

    def apply(self, **kwargs):
        for node in list(self.document.findall(nodes.literal)):
            match = NAME.fullmatch(node.astext())
            target = match and target_of(match)
            if target is None or _is_linked(node) or self.env.docname.endswith(f"/{target}"):
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=True
            )
            node["classes"] += ["xref", "py", "py-obj"]
            node.replace_self(link)
            link += node


def target_of(match):
    """The full name that a name in code marks stands for, or None."""
    if match["package"] and f"manifold_dl.{match['name']}" in public_names():
        return f"manifold_dl.{match['name']}"
    return short_names().get(match["name"])


def _is_linked(node):
    while node.parent is not None:
        node = node.parent
        if isinstance(node, nodes.reference | addnodes.pending_xref | nodes.title | addnodes.desc_signature):
            return True
    return False


def link_to_pages(app, docname, source):
    """Links of Markdown pages to the files of tutorials become links to their pages."""
    source[0] = TUTORIAL.sub(r"](/tutorials/\g<name>.rst)", source[0])
    source[0] = TUTORIALS.sub("](/tutorials/index.rst)", source[0])


def resolve_alias(app, env, node, content):
    """manifold_dl.updates.simco.SimCO is manifold_dl.SimCO, and Pymanopt's own names have no page here."""
    if node.get("refdomain") != "py":
        return None
    target = node.get("reftarget", "")
    if target.partition(".")[0] in ("pymanopt", "numpy", "scipy", "sklearn"):
        return content
    try:
        value = resolve_name(target if target.startswith("manifold_dl") else f"manifold_dl.{target}")
    except (ImportError, AttributeError, ValueError):
        return None
    for name, public in public_names().items():
        if public is value and name != target:
            domain = env.get_domain("py")
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
    return None


def keep_bars(app, what, name, value, options, lines):
    """|x| in a docstring is an absolute value, not a substitution; code stays as it is."""
    paragraph = []
    for number, line in enumerate(lines):
        paragraph = [*paragraph, line.strip()] if line.strip() else []
        if paragraph and not paragraph[0].startswith(">>>"):
            lines[number] = line.replace("|", r"\|")


def skip_fields(app, what, name, value, skip, options):
    """Fields of named tuples and dataclasses are described where the class is, not as members of it."""
    is_field = (value.__doc__ or "").startswith("Alias for field number") or inspect.isclass(value)
    return True if what == "class" and is_field else None


def readable_defaults(app, what, name, value, options, signature, returned):
    """manifold=Spheres rather than manifold=<class '...'>, and no inner workings of dataclasses."""
    if signature:
        signature = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", signature).replace("<factory>", "…")
    return signature, returned


def link_source_pages(app, pagename, templatename, context, doctree):
    """Links from the source of a name to its API page, where it has its public name."""
    if pagename.startswith("_modules/") and "body" in context:
        context["body"] = DOCUMENTED.sub(_public_anchor, context["body"])


def _public_anchor(match):
    own = match["page"].rpartition(".")[2]
    member = match["anchor"].partition(f".{own}.")[2]
    return f"api/generated/{match['page']}.html#{match['page']}" + (f".{member}" if member else "")


def setup(app):
    app.add_transform(LinkNames)
    app.connect("source-read", link_to_pages)
    app.connect("missing-reference", resolve_alias)
    app.connect("autodoc-process-docstring", keep_bars, priority=100)  # before numpydoc takes it apart
    app.connect("autodoc-process-signature", readable_defaults)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("html-page-context", link_source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
