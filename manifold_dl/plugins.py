"""Components by name: ours, some of Pymanopt's, and those of packages that register their own.

A package offers its components to this one by entry points of the group ``manifold_dl``, whose names begin
with the kind. In its ``pyproject.toml``::

    [project.entry-points.manifold_dl]
    "coders.nearest" = "my_package.coders:Nearest"
    "regularizers.peaks" = "my_package.penalties:Peaks"

Once it is installed, ``get("coders", "nearest")`` returns the class, and the command line knows the name.
Capitals, hyphens and underscores in names do not matter: ``"trust-regions"`` is `TrustRegions`.

Nothing of a plug-in is imported before somebody asks for it. A broken one is reported by name and left out;
it never breaks the rest.
"""

import difflib
import importlib
import inspect
import warnings
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["KINDS", "PluginError", "PluginWarning", "available", "get", "load"]

GROUP = "manifold_dl"


class _Kind(NamedTuple):
    """What makes a component one of its kind, and where those live that need no entry point."""

    method: str | None
    modules: dict[str, tuple[str, ...] | None]  # the names to take from a module; None for all that it offers
    # What those need about which a name alone says too little.
    needs: Mapping[str, str] = MappingProxyType({})


_KINDS = {
    "coders": _Kind("encode", {"manifold_dl.coders": None}),
    "updates": _Kind("__call__", {"manifold_dl.updates.simco": ("KSVD", "MOD", "SimCO")}),
    "manifolds": _Kind(
        None,
        {"manifold_dl.manifolds": None, "pymanopt.manifolds": ("Oblique", "Stiefel")},
        needs={
            "Columns": "a manifold for one atom: Columns(factory)",
            "SpheresWithin": "to be inherited",
            "Subspace": "a basis: Subspace(basis)",
        },
    ),
    "optimizers": _Kind("run", {"manifold_dl.optimizers": None, "pymanopt.optimizers": None}),
    "regularizers": _Kind(
        "value",
        {"manifold_dl.regularizers": None},
        needs={"Scaled": "a regularizer: 0.5 * regularizer", "Sum": "regularizers: one + another"},
    ),
    "schedules": _Kind("subsets", {"manifold_dl.schedules": None}),
    "line_searchers": _Kind(
        "search",
        {
            "manifold_dl.line_search": None,
            "pymanopt.optimizers.line_search": ("AdaptiveLineSearcher", "BackTrackingLineSearcher"),
        },
    ),
}

KINDS = tuple(_KINDS)


class PluginWarning(UserWarning):
    """A plug-in was left out; the message says which, of which package, and why."""


class PluginError(LookupError):
    """There is no such component, or the plug-in that registers it cannot be used."""


def available(kind=None):
    """The names of all components to choose from: a dict of lists by kind, or the list of one kind.

    Names of plug-ins are read from the metadata of installed packages, so none of them is imported. Left out
    are those that are made from other components or from data (`Columns`, `Subspace`, `Scaled`, `Sum`): a
    name says too little about them. `get` finds them as well.

    Examples
    --------
    >>> available("updates")
    ['KSVD', 'MOD', 'SimCO']
    >>> list(available())
    ['coders', 'updates', 'manifolds', 'optimizers', 'regularizers', 'schedules', 'line_searchers']
    """
    if kind is None:
        return {kind: available(kind) for kind in KINDS}
    return sorted(_choices(kind), key=str.lower)


def get(kind, name):
    """The component called `name`: usually a class, to be called with its parameters.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    name : str
        As `available` lists it, or with other capitals, hyphens and underscores.

    Raises
    ------
    PluginError
        A `LookupError`. If there is no such name, with the nearest ones; if it belongs to a broken plug-in,
        with the reason.

    Examples
    --------
    >>> get("coders", "omp")(sparsity=3)
    OMP(sparsity=3, tol=None)
    >>> get("optimizers", "trust-regions").__name__
    'TrustRegions'
    >>> get("coders", "opm")
    Traceback (most recent call last):
    ...
    manifold_dl.plugins.PluginError: There is no 'opm' among the coders. Did you mean OMP?
    """
    found = _found(kind)
    names = {_key(known): known for known in found}
    if _key(name) not in names:
        near = [names[key] for key in difflib.get_close_matches(_key(name), names, n=3)]
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known are {', '.join(available(kind))}."
        raise PluginError(f"There is no {name!r} among the {kind}. {hint}")
    component = found[names[_key(name)]]
    return _load(kind, component) if isinstance(component, EntryPoint) else component


def load(kind):
    """All components that `available` lists, by name; broken plug-ins are left out with a `PluginWarning`.

    Examples
    --------
    >>> load("updates")["MOD"](ridge=0.1)
    MOD(ridge=0.1)
    """
    components = {}
    for name, component in sorted(_choices(kind).items()):
        try:
            components[name] = _load(kind, component) if isinstance(component, EntryPoint) else component
        except PluginError as error:
            warnings.warn(str(error), PluginWarning, stacklevel=2)
    return components


def what_it_needs(component: Any) -> str | None:
    """What a component needs besides its name, for those that `available` leaves out; else None.

    Examples
    --------
    >>> what_it_needs(get("manifolds", "subspace"))
    'a basis: Subspace(basis)'
    """
    kind, name = name_of(component) or (None, None)
    return None if kind is None else _KINDS[kind].needs.get(name)


def name_of(component: Any) -> tuple[str, str] | None:
    """The kind and the name by which `get` returns this class; None if it is not registered.

    Examples
    --------
    >>> from manifold_dl import OMP
    >>> name_of(OMP)
    ('coders', 'OMP')
    """
    if (own := _own_names().get(id(component))) is not None:
        return own
    package = str(getattr(component, "__module__", "")).partition(".")[0]
    if package in (GROUP, "pymanopt", "numpy", "builtins"):
        return None
    for point in entry_points(group=GROUP):
        kind, _, name = point.name.partition(".")
        # Other packages need not be imported, and a name that is not theirs does not lead to the class.
        if point.value.partition(":")[0].partition(".")[0] == package and kind in KINDS:
            try:
                if _load(kind, point) is component and _found(kind, report=False).get(name) == point:
                    return kind, name
            except PluginError:
                continue
    return None


@lru_cache(maxsize=1)
def _own_names():
    """Kind and name of our own classes and Pymanopt's, by their identity: they are never unloaded."""
    return {id(component): (kind, name) for kind in KINDS for name, component in _own(kind)}


def _choices(kind):
    found = _found(kind)
    return {name: component for name, component in found.items() if name not in _KINDS[kind].needs}


def _found(kind, report=True):
    """Our own components, and the entry points of others, by name."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is unknown; the kinds are {', '.join(KINDS)}.")
    found = dict(_own(kind))
    taken = {_key(name): "manifold_dl itself" for name in found}
    # In the order of package names, so that it does not depend on where they are installed.
    points = sorted(entry_points(group=GROUP), key=lambda point: (_package(point), point.name))
    for point in points:
        point_kind, _, name = point.name.partition(".")
        fault = None
        if point_kind not in KINDS or not name:
            fault = f"its name does not begin with a kind; the kinds are {', '.join(KINDS)}"
        elif point_kind == kind and taken.setdefault(_key(name), _package(point)) != _package(point):
            fault = f"the name is taken by {taken[_key(name)]}"
        elif point_kind == kind:
            found[name] = point
        if fault and report:
            _report(point, fault)
    return found


def _own(kind):
    for module, names in _KINDS[kind].modules.items():
        module = importlib.import_module(module)
        for name in names or getattr(module, "__all__", None) or vars(module):
            component = getattr(module, name)
            # Protocols describe components, and what is imported from elsewhere is not offered by the module.
            if not inspect.isclass(component) or getattr(component, "_is_protocol", False):
                continue
            root, method = module.__name__.partition(".")[0], _KINDS[kind].method
            if component.__module__.startswith(root) and _has(component, method) and not name.startswith("_"):
                yield name, component


def _load(kind, point):
    try:
        component = point.load()
    # Whatever happens while somebody else's module is imported, SystemExit included, is their fault.
    except (Exception, SystemExit) as error:
        raise PluginError(f"{_title(point)} cannot be loaded: {type(error).__name__}: {error}.") from error
    verb = _KINDS[kind].method
    if not _has(component, verb):
        lacks = f"has no method {verb}" if verb else "cannot be called"
        raise PluginError(f"{_title(point)} {lacks}, which its kind, {kind}, requires.")
    return component


def _has(component, verb):
    if verb == "__call__" and inspect.isclass(component):  # every class can be called; its objects must
        return any("__call__" in base.__dict__ for base in component.__mro__)
    return callable(component if verb is None else getattr(component, verb, None))


def _report(point, reason):
    warnings.warn(f"{_title(point)} is left out: {reason}.", PluginWarning, stacklevel=4)


def _title(point):
    return f"The plug-in {point.name!r} of the package {_package(point)} ({point.value})"


def _package(point):
    return point.dist.name if point.dist is not None else "unknown"


def _key(name):
    return name.lower().replace("-", "").replace("_", "")
