"""Components of other packages: entry points of the group ``manifold_dl``, found in installed metadata.

The name of an entry point begins with the kind of the component, as in ``coders.nearest``; `plugins` shows
how a package declares it. `registry.py` calls these functions. Nothing of a plug-in is imported before
`load_point`.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import EntryPoint, entry_points
from typing import Any

GROUP = "manifold_dl"


class PluginWarning(UserWarning):
    """A plug-in was left out; the message names it, its package and the reason."""


class PluginError(LookupError):
    """There is no such component, or the plug-in that registers it cannot be used."""


_known: ContextVar[list[EntryPoint] | None] = ContextVar("entry points read in a with block", default=None)


def installed_points() -> list[EntryPoint]:
    """Those of all packages, ordered by package: the order must not depend on where they are installed."""
    known = _known.get()
    if known is not None:
        return known
    return sorted(entry_points(group=GROUP), key=lambda point: (package_of(point), point.name))


@contextmanager
def metadata_read_once() -> Iterator[None]:
    """In the block, the metadata of installed packages are read once: 15 ms with 130 of them."""
    token = _known.set(installed_points())
    try:
        yield
    finally:
        _known.reset(token)


def load_point(point: EntryPoint, kind: str, method: str | None) -> Any:
    """Import what an entry point refers to.

    Parameters
    ----------
    point : EntryPoint
    kind : str
        The kind of component, for the error.
    method : str or None
        What the component must have; None if it must be callable itself.

    Returns
    -------
    type or object

    Raises
    ------
    PluginError
        If it cannot be imported, or lacks the method.
    """
    try:
        component = point.load()
    # Importing a module of another package may raise anything, SystemExit included.
    except (Exception, SystemExit) as error:
        raise PluginError(f"{title(point)} cannot be loaded: {type(error).__name__}: {error}.") from error
    if not has_method(component, method):
        lacks = f"has no method {method}" if method else "cannot be called"
        raise PluginError(f"{title(point)} {lacks}, which its kind, {kind}, requires.")
    return component


def has_method(component: Any, method: str | None) -> bool:
    """Whether objects of a class, or an object, can be called by this method; None: be called as they are."""
    if method == "__call__" and inspect.isclass(component):  # every class can be called; its objects must
        return any("__call__" in base.__dict__ for base in component.__mro__)
    return callable(component if method is None else getattr(component, method, None))


def title(point: EntryPoint) -> str:
    """An entry point as messages name it."""
    return f"The plug-in {point.name!r} of the package {package_of(point)} ({point.value})"


def package_of(point: EntryPoint) -> str:
    """The name of the distribution that declares it."""
    return point.dist.name if point.dist is not None else "unknown"
