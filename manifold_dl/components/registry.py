"""Components by name: which kinds there are, and which components each of them holds.

A subpackage that defines components registers them when it is imported (`register`), so this module imports
none of them. Other distributions offer theirs by entry points of the group ``manifold_dl``, which are read
from installed metadata; nothing of a plug-in is imported before it is used. `plugins` is the public interface
of this module: it imports all subpackages with components, so that the lists are complete. `by_name.py`
(arguments given as names) and `settings.py` (components as JSON) look names up here.
"""

import difflib
import warnings
from dataclasses import dataclass, field
from typing import Any, overload

from manifold_dl.components.entry_points import (
    GROUP,
    PluginError,
    PluginWarning,
    has_method,
    installed_points,
    load_point,
    package_of,
    title,
)


@dataclass(frozen=True)
class Kind:
    """One kind of component.

    Attributes
    ----------
    method : str or None
        What an object of the kind must have; None where the component itself is called, as a factory of
        manifolds is.
    is_public : bool
        Whether `plugins` lists the kind. The others occur in stored settings only.
    components : dict
        What was registered, by name.
    needs : dict
        For components that cannot be made from a name alone: what they need besides it.
    """

    method: str | None
    is_public: bool = True
    components: dict[str, Any] = field(default_factory=dict)
    needs: dict[str, str] = field(default_factory=dict)


_KINDS = {
    "coders": Kind("encode"),
    "updates": Kind("__call__"),
    "manifolds": Kind(None),
    "optimizers": Kind("run"),
    "regularizers": Kind("value"),
    "schedules": Kind("subsets"),
    "line_searchers": Kind("search"),
    "ridges": Kind("__call__", is_public=False),
    "replacement": Kind("__call__", is_public=False),
    "minibatches": Kind("order", is_public=False),
}

KINDS = tuple(name for name, kind in _KINDS.items() if kind.is_public)


def register(kind: str, *components: Any, needs: str | None = None) -> None:
    """Add components of this package, or of Pymanopt, under the names of their classes.

    Parameters
    ----------
    kind : str
        One of `KINDS`, or ``"ridges"``, ``"replacement"`` or ``"minibatches"``, which are not listed.
    *components : type
        The classes.
    needs : str, optional
        What they need besides a name, if that is all that a user gives: they are not listed then.

    Raises
    ------
    TypeError
        If a component lacks the method that its kind requires.
    ValueError
        If another component has the name already.
    """
    known = _KINDS[kind]
    for component in components:
        name = component.__name__
        if not has_method(component, known.method):
            raise TypeError(f"{name} has no method {known.method}, which its kind, {kind}, requires.")
        if known.components.setdefault(name, component) is not component:
            raise ValueError(f"the name {name} is taken among the {kind}.")
        if needs is not None:
            known.needs[name] = needs


def is_kind(name: str) -> bool:
    """Whether there is such a kind, public or not.

    Examples
    --------
    >>> is_kind("coders"), is_kind("ridges"), is_kind("recipes")
    (True, True, False)
    """
    return name in _KINDS


@overload
def available(kind: None = None) -> dict[str, list[str]]: ...
@overload
def available(kind: str) -> list[str]: ...
def available(kind: str | None = None) -> dict[str, list[str]] | list[str]:
    """The names of all components to choose from: a dict of lists by kind, or the list of one kind.

    Names of plug-ins are read from the metadata of installed packages, so none of them is imported. Left out
    are those that are made from other components or from data (`Columns`, `Subspace`, `Scaled`, `Sum`): a
    name alone does not define them. `get` finds them as well.

    Parameters
    ----------
    kind : str, optional
        One of `KINDS`; all of them if None.

    Returns
    -------
    dict of lists, or list of str

    Examples
    --------
    >>> from manifold_dl import plugins
    >>> plugins.available("updates")
    ['AtomSearch', 'KSVD', 'MOD', 'SimCO']
    >>> list(plugins.available())
    ['coders', 'updates', 'manifolds', 'optimizers', 'regularizers', 'schedules', 'line_searchers']
    """
    if kind is None:
        return {name: sorted(_choices(name), key=str.lower) for name in KINDS}
    return sorted(_choices(kind), key=str.lower)


def get(kind: str, name: str) -> Any:
    """The component called `name`: usually a class, to be called with its parameters.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    name : str
        As `available` lists it, or with other capitals, hyphens and underscores.

    Returns
    -------
    type or object
        A plug-in may register an object as well.

    Raises
    ------
    PluginError
        A `LookupError`. If there is no such name, with the nearest ones; if it belongs to a broken plug-in,
        with the reason.

    Examples
    --------
    >>> from manifold_dl import plugins
    >>> plugins.get("coders", "omp")(sparsity=3)
    OMP(sparsity=3, tol=None, nonnegative=False)
    >>> plugins.get("optimizers", "trust-regions").__name__
    'TrustRegions'
    >>> plugins.get("coders", "opm")
    Traceback (most recent call last):
    ...
    manifold_dl.components.entry_points.PluginError: There is no 'opm' among the coders. Did you mean OMP?
    """
    found = _found(kind)
    names = {_key(known): known for known in found}
    if _key(name) not in names:
        near = [names[key] for key in difflib.get_close_matches(_key(name), names, n=3)]
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known are {', '.join(available(kind))}."
        raise PluginError(f"There is no {name!r} among the {kind}. {hint}")
    return _loaded(kind, found[names[_key(name)]])


def load(kind: str) -> dict[str, Any]:
    """All components that `available` lists, by name; broken plug-ins are left out with a `PluginWarning`.

    Parameters
    ----------
    kind : str
        One of `KINDS`.

    Returns
    -------
    dict of str to type or object

    Examples
    --------
    >>> from manifold_dl import plugins
    >>> plugins.load("updates")["MOD"](ridge=0.1)
    MOD(ridge=0.1, tol=0.001, engine=None)
    """
    components = {}
    for name, component in sorted(_choices(kind).items()):
        try:
            components[name] = _loaded(kind, component)
        except PluginError as error:
            warnings.warn(str(error), PluginWarning, stacklevel=2)
    return components


def what_it_needs(component: Any) -> str | None:
    """What a component needs besides its name, for those that `available` leaves out; else None.

    Examples
    --------
    >>> from manifold_dl.manifolds import Subspace
    >>> what_it_needs(Subspace)
    'a basis: Subspace(basis)'
    """
    found = name_of(component)
    return None if found is None else _KINDS[found[0]].needs.get(found[1])


def name_of(component: Any) -> tuple[str, str] | None:
    """The kind and the name under which a class is registered; None if it is not.

    Examples
    --------
    >>> from manifold_dl import OMP
    >>> name_of(OMP)
    ('coders', 'OMP')
    """
    for kind, known in _KINDS.items():
        name = getattr(component, "__name__", None)  # a plug-in may be any object
        if isinstance(name, str) and known.components.get(name) is component:
            return kind, name
    return _name_of_plugin(component)


def _name_of_plugin(component: Any) -> tuple[str, str] | None:
    package = str(getattr(component, "__module__", "")).partition(".")[0]
    if package in (GROUP, "pymanopt", "numpy", "builtins"):
        return None
    for point in installed_points():
        kind, _, name = point.name.partition(".")
        # Other packages need not be imported, and a name that is not theirs does not lead to the class.
        if point.value.partition(":")[0].partition(".")[0] == package and kind in KINDS:
            try:
                if _loaded(kind, point) is component and _found(kind, report=False).get(name) == point:
                    return kind, name
            except PluginError:
                continue
    return None


def _choices(kind: str) -> dict[str, Any]:
    found = _found(kind)
    return {name: component for name, component in found.items() if name not in _KINDS[kind].needs}


def _found(kind: str, report: bool = True) -> dict[str, Any]:
    """Registered components and the entry points of other packages, by name."""
    if kind not in _KINDS:
        raise ValueError(f"kind={kind!r} is unknown; the kinds are {', '.join(KINDS)}.")
    found = dict(_KINDS[kind].components)
    taken = {_key(name): "manifold_dl itself" for name in found}
    for point in installed_points():
        point_kind, _, name = point.name.partition(".")
        fault = None
        if point_kind not in KINDS or not name:
            fault = f"its name does not begin with a kind; the kinds are {', '.join(KINDS)}"
        elif point_kind == kind and taken.setdefault(_key(name), package_of(point)) != package_of(point):
            fault = f"the name is taken by {taken[_key(name)]}"
        elif point_kind == kind:
            found[name] = point
        if fault and report:
            warnings.warn(f"{title(point)} is left out: {fault}.", PluginWarning, stacklevel=3)
    return found


def _loaded(kind: str, component: Any) -> Any:
    """The component itself; what an entry point refers to is imported and checked."""
    # Not by its class: where importlib_metadata is imported, as Dask does, entry points have its own class.
    if any(component is own for own in _KINDS[kind].components.values()):
        return component
    return load_point(component, kind, _KINDS[kind].method)


def _key(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
