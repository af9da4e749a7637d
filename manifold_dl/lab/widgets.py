"""The controls of the page as marimo elements, and what their values mean."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import marimo as mo
import numpy as np

from manifold_dl import plugins
from manifold_dl.components.entry_points import metadata_read_once
from manifold_dl.lab import page
from manifold_dl.lab.compatibility import KINDS, Own, options
from manifold_dl.lab.data import FILES, Upload
from manifold_dl.lab.job import make_job
from manifold_dl.lab.parts import penalties
from manifold_dl.lab.ridges import RIDGES
from manifold_dl.lab.session import Session
from manifold_dl.lab.settings import BOUNDS, SOURCES, STARTS, Refused, Settings, convert

_MENUS = {"data": SOURCES, "start": STARTS, "ridge": RIDGES}  # key → name on the page
_TEXTS = ("mu", "alpha", "typed", "weight")
_SLIDERS = {"n": 10, "noise": 1}  # and their steps; those of the others are 1


@metadata_read_once()
def controls(settings: Settings, own: Own) -> Any:
    """All controls, with these settings as their values.

    Parameters
    ----------
    settings : Settings
    own : Own
        Whether code of the user's is allowed.

    Returns
    -------
    marimo.ui.dictionary
    """
    made: dict[str, Any] = {"file": mo.ui.file(filetypes=list(FILES), max_size=20_000_000, label="Choose")}
    for field in fields(Settings):
        made[field.name] = _control(field.name, getattr(settings, field.name), own)
    return mo.ui.dictionary(made)


def _control(name: str, value: Any, own: Own) -> Any:
    if name in _MENUS:
        names = {text: key for key, text in _MENUS[name].items()}
        shown = next(text for text, key in names.items() if key == value)
        return mo.ui.dropdown(names, value=shown, full_width=True)
    if name in KINDS or name == "problem":
        known = options(name, own)
        # A name that is not known here stays in the list, so that its message can be read beside it.
        return mo.ui.dropdown(known if value in known else [*known, value], value=value, full_width=True)
    if name in _TEXTS:
        return mo.ui.text(value=value if isinstance(value, str) else f"{value:g}", full_width=True)
    low, high = BOUNDS[name]
    step = _SLIDERS.get(name, 1)
    return mo.ui.slider(low, high, step=step, value=value, debounce=True, include_input=True, full_width=True)


@metadata_read_once()
def read(values: Mapping[str, Any], session: Session) -> tuple[Settings, Refused | None]:
    """The settings that the controls show, and why they cannot be run, if so.

    Parameters
    ----------
    values : dict
        Of the controls.
    session : Session
        Gets the user's file and, if they can be run, the settings.

    Returns
    -------
    settings : Settings
        What could not be read has its default.
    refusal : Refused or None
    """
    files = values["file"]
    if not files:
        session.upload = None
    elif session.upload is None or session.upload.contents != files[0].contents:
        session.upload = Upload(files[0].name, files[0].contents)
    settings, refusal = Settings(), None
    for field in fields(Settings):
        try:
            settings = replace(settings, **{field.name: convert(field.name, values[field.name])})
        except Refused as error:
            refusal = refusal or error
    refusal = refusal or session.fault(settings)
    session.chosen = None if refusal else settings
    return settings, refusal


@metadata_read_once()
def panel(
    controls: Any, settings: Settings, session: Session, refusal: Refused | None, messages: Mapping[str, str]
) -> str:
    """The column of the controls, each with its message.

    Parameters
    ----------
    controls : marimo.ui.dictionary
    settings : Settings
        What they show.
    session : Session
    refusal : Refused or None
        What is wrong with the settings.
    messages : dict of str
        What was wrong with the address, by control.

    Returns
    -------
    str
        HTML.
    """
    reasons = session.reasons(settings)
    is_matrix = session.upload is not None and not session.upload.is_picture
    has_size, sections = _has_size(settings), []
    for title, names in page.SECTIONS.items():
        shown = [name for name in names if page.is_shown(name, settings, has_size, is_matrix)]
        if refusal is not None and refusal.control in names and refusal.control not in shown:
            shown.append(refusal.control)
        made = []
        for name in shown:
            message = (
                str(refusal) if refusal is not None and refusal.control == name else messages.get(name, "")
            )
            label, note = page.label(name, settings), _note(name, settings) if not message else ""
            made.append(page.control(label, name, f"{controls[name]}", message, note, reasons.get(name)))
        sections.append(page.section(title, made))
    return page.element("div", "".join(sections), class_="mdl-panel")


def _note(name: str, settings: Settings) -> str:
    if name != "mu":
        return ""
    try:
        return page.in_turn(settings, penalties(settings))
    except Refused:  # of another control
        return ""


def dictionary_shown(session: Session, settings: Settings, index: int) -> np.ndarray | None:
    """The dictionary of the chosen iterate; without a run the start that the settings describe."""
    run = session.current
    if run is not None:
        return run.dictionary_at(index if 0 < index < len(run.iterates) else -1)
    try:
        return make_job(settings, session.upload, session.own.regularizer).start
    except Refused:
        return None


def patch_of(settings: Settings) -> int | None:
    """The side of a patch, where atoms are pictures."""
    return settings.patch if settings.data == "picture" else None


def _has_size(settings: Settings) -> bool:
    import inspect

    try:
        return "size" in inspect.signature(plugins.get("schedules", settings.schedule)).parameters
    except (LookupError, TypeError, ValueError):
        return False
