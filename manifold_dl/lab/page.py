"""The column of the controls as HTML: their labels, messages, and the reasons against options.

`widgets.py` makes the controls themselves, and `cards.py` what is shown beside the column.
"""

import html
import json
from collections.abc import Mapping, Sequence

from manifold_dl.lab import ridges
from manifold_dl.lab.data import FILES
from manifold_dl.lab.figures.axes import element, tag
from manifold_dl.lab.settings import Settings

#: The controls of the page in their order, by section.
SECTIONS = {
    "Data": ("data", "file", "m", "patch", "d", "n", "sparsity", "noise", "seed"),
    "Problem": ("problem", "alpha", "manifold", "ridge", "mu", "turns", "regularizer", "weight"),
    "Method": (
        "optimizer",
        "line_searcher",
        "schedule",
        "size",
        "iterations",
        "sweeps",
        "start",
        "start_seed",
        "typed",
    ),
}
LABELS = {
    "data": "signals",
    "file": f"file ({', '.join(FILES[:3])}, ...)",
    "m": "m, length of a signal",
    "patch": "side of a patch",
    "d": "d, atoms",
    "n": "n, signals",
    "sparsity": "S, atoms per signal",
    "noise": "noise, % of ‖Y‖",
    "seed": "seed",
    "problem": "what is solved",
    "alpha": "α of the lasso, in turn",
    "manifold": "manifold",
    "ridge": "schedule of μ",
    "mu": "ridge μ",
    "turns": "turns, each with a ridge",
    "regularizer": "regularizer",
    "weight": "its weight, times ‖Y‖²",
    "optimizer": "optimizer",
    "line_searcher": "line searcher",
    "schedule": "schedule",
    "size": "atoms in a block",
    "iterations": "iterations",
    "sweeps": "sweeps",
    "start": "start",
    "start_seed": "seed of the start",
    "typed": "atoms; 0.6 0.8 0; 1 0 0",
}


def heading(level: int, text: str) -> str:
    """A heading; marimo would put an outline of those of HTML over the page."""
    return tag("div", text, class_=f"mdl-h{level}", role="heading", aria_level=level)


def is_shown(control: str, settings: Settings, has_blocks: bool, is_matrix: bool) -> bool:
    """Whether a control has an effect with these settings.

    Parameters
    ----------
    control : str
    settings : Settings
    has_blocks : bool
        Whether the schedule takes a size.
    is_matrix : bool
        Whether the user's file holds signals, not a picture.

    Returns
    -------
    bool
    """
    synthetic = settings.data == "synthetic"
    patches = not synthetic and not (settings.data == "file" and is_matrix)
    conditions = {
        "file": settings.data == "file",
        "m": synthetic,
        "noise": synthetic,
        "patch": patches,
        "n": synthetic or patches,
        "seed": synthetic or patches,
        "sparsity": synthetic or settings.problem == "update_problem",
        "alpha": settings.problem == "lasso_problem",
        "turns": ridges.has_turns(settings.ridge),
        "weight": settings.regularizer != "none",
        "size": has_blocks,
        "start_seed": settings.start == "random",
        "typed": settings.start == "typed",
    }
    return conditions.get(control, True)


def label(name: str, settings: Settings) -> str:
    """The label of a control; what is typed for μ depends on its schedule."""
    return ridges.LABELS.get(settings.ridge, ridges.FIRST) if name == "mu" else LABELS[name]


def in_turn(settings: Settings, penalties: Sequence[tuple[float, float]]) -> str:
    """The ridges that a schedule of μ makes, to be read beside it.

    Examples
    --------
    >>> in_turn(Settings(ridge="continuation"), [(0.0, 0.1), (0.0, 0.01), (0.0, 0.0)])
    'μ in turn: 0.1, 0.01, 0'
    """
    if not ridges.has_turns(settings.ridge):
        return ""
    return "μ in turn: " + ", ".join(f"{mu:.3g}" for _, mu in penalties)


def control(
    label: str,
    name: str,
    widget: str,
    message: str = "",
    note: str = "",
    reasons: Mapping[str, str] | None = None,
) -> str:
    """One control with its message, and with the options that are disabled and why.

    Parameters
    ----------
    label : str
        Its label.
    name : str
        The field of `Settings`.
    widget : str
        HTML.
    message : str
        Why the present value cannot be used.
    note : str
        What the present value means.
    reasons : dict of str, optional
        Option → sentence.

    Returns
    -------
    str
        HTML.
    """
    parts = [tag("div", label, class_="mdl-label"), widget]
    if note:
        parts.append(tag("div", note, class_="mdl-hint"))
    if message:
        parts.append(tag("div", message, class_="mdl-message", role="alert"))
    if reasons is not None:
        parts.append(element("mdl-options", data_disabled=json.dumps(list(reasons))))
    if reasons:
        lines = "".join(
            element("li", f"<b>{html.escape(option)}</b> {html.escape(why)}")
            for option, why in reasons.items()
        )
        count = "1 option is" if len(reasons) == 1 else f"{len(reasons)} options are"
        summary = tag("summary", f"{count} disabled: why?")
        parts.append(element("details", summary + element("ul", lines), class_="mdl-reasons"))
    return element("div", "".join(parts), class_="mdl-control", data_control=name)


def section(title: str, controls: Sequence[str]) -> str:
    """A section of the panel."""
    return element("section", heading(3, title) + "".join(controls), class_="mdl-section")
