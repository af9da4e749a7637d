"""Settings as the query of an address, and back: what "share" copies.

An address carries names and numbers, never code: a regularizer typed into the page stays where it was typed.
"""

from dataclasses import fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from manifold_dl.lab.ridges import RIDGES
from manifold_dl.lab.settings import NONE, OWN, PROBLEMS, SOURCES, STARTS, Refused, Settings, convert

LONGEST = 2000  # characters of a typed start; an address is no place for data
_ONE_OF = {"data": tuple(SOURCES), "start": tuple(STARTS), "problem": PROBLEMS, "ridge": tuple(RIDGES)}


def to_query(settings: Settings) -> str:
    """The settings that differ from the defaults, as the query of an address.

    Parameters
    ----------
    settings : Settings

    Returns
    -------
    str
        Without the question mark.

    Examples
    --------
    >>> to_query(Settings(m=3, ridge="TwoStep", mu="0.1", regularizer="own"))
    'm=3&ridge=TwoStep&mu=0.1'
    """
    default = Settings()
    values = {
        field.name: getattr(settings, field.name)
        for field in fields(Settings)
        if getattr(settings, field.name) != getattr(default, field.name)
    }
    if values.get("regularizer") == OWN:
        del values["regularizer"]
    return urlencode(values)


def from_query(query: str) -> tuple[Settings, dict[str, str]]:
    """The settings of an address; what cannot be used keeps its default and is reported.

    Parameters
    ----------
    query : str
        An address, or its query. Names that are no settings are ignored.

    Returns
    -------
    settings : Settings
    messages : dict of str
        A sentence for every value that was refused, by the name of its control.

    Examples
    --------
    >>> settings, messages = from_query("http://127.0.0.1:2718/?m=3&d=many")
    >>> settings.m, settings.d, messages
    (3, 32, {'d': "d='many' is not a whole number."})
    """
    query = urlsplit(query).query or query.removeprefix("?")
    settings, messages = Settings(), {}
    known = {field.name for field in fields(Settings)}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            continue
        try:
            settings = replace(settings, **{name: _checked(name, text)})
        except Refused as refusal:
            messages[name] = str(refusal)
    return settings, messages


def _checked(name: str, text: str) -> Any:
    if name in _ONE_OF and text not in _ONE_OF[name]:
        raise Refused(name, f"{name}={text!r} is none of {', '.join(_ONE_OF[name])}.")
    if name == "regularizer" and text == OWN:
        raise Refused(name, f"An address brings no code: the regularizer stays {NONE!r}.")
    if len(text) > LONGEST:
        raise Refused(name, f"{name} has {len(text):,} characters, more than an address may bring.")
    return convert(name, text)
