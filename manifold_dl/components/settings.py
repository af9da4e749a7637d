"""Settings of a run as JSON: what a dictionary was learned with, to be stored beside it.

`describe` turns a component into plain values (`None`, numbers, text, lists and dicts of them), with classes
written by the names under which they are registered; `restore` makes the component anew. Nothing is pickled,
and nothing is executed but the constructors of registered components. What has no name is stored as text: it
can be read, and not restored.
"""

import dataclasses
import inspect
import math
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import pymanopt

from manifold_dl import __version__
from manifold_dl.components import registry
from manifold_dl.components.entry_points import PluginError

LARGEST = 20_000  # entries of an array that is stored; a larger one is data, not a setting
DEPTH = 20  # of components in components


def describe(value: Any) -> Any:
    """A component, or any of its parameters, as JSON.

    Parameters
    ----------
    value : object

    Returns
    -------
    JSON
        None, numbers, text, lists and dicts of them.

    Examples
    --------
    >>> from manifold_dl import OMP
    >>> describe(OMP(sparsity=3))
    {'component': 'coders.OMP', 'parameters': {'sparsity': 3, 'tol': None, 'nonnegative': False}}
    >>> describe(abs)
    {'text': '<built-in function abs>'}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, list):
        return [describe(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [describe(item) for item in value]}
    if isinstance(value, np.ndarray):
        return _describe_array(value)
    if (name := _name(value)) is not None:
        return {"named": name}
    name, parameters = _name(type(value)), parameters_of(value)
    if name is None or parameters is None:
        return {"text": as_text(value)}
    return {"component": name, "parameters": {key: describe(item) for key, item in parameters.items()}}


def restore(description: Any, kind: str | None = None) -> Any:
    """What `describe` described.

    Parameters
    ----------
    description : JSON
        It may come from an untrusted file.
    kind : str, optional
        The kind of component that it has to be.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If something was stored as text, if it names nothing that is known here, or if that cannot be made
        from these parameters.

    Examples
    --------
    >>> restore({"component": "coders.OMP", "parameters": {"sparsity": 3}})
    OMP(sparsity=3, tol=None, nonnegative=False)
    """
    name = description.get("component", description.get("named")) if isinstance(description, dict) else None
    if kind is not None and str(name).partition(".")[0] != kind and not is_text(description):
        raise ValueError(f"{shown(description)} is none of the {kind}.")
    restored = _restore(description, DEPTH)
    if kind is not None and isinstance(restored, type):
        raise ValueError(f"{shown(description)} is a class of {kind}, and not one of them.")
    return restored


def is_text(description: Any) -> bool:
    """Whether a component was stored as text only."""
    return isinstance(description, dict) and set(description) == {"text"}


def shown(description: Any, depth: int = DEPTH) -> str:
    """A description as one would write the component in Python.

    Parameters
    ----------
    description : JSON
    depth : int
        Components nested deeper are left out.

    Returns
    -------
    str

    Examples
    --------
    >>> from manifold_dl import KSVD
    >>> shown(describe(KSVD()))
    "KSVD(method='svd', mu=0.0, schedule=OneAtATime(order='natural'), threads=None)"
    """
    if depth == 0:
        return "..."
    inner = partial(shown, depth=depth - 1)
    if isinstance(description, list):
        return f"[{', '.join(map(inner, description))}]"
    if not isinstance(description, dict):
        return repr(description)
    match description:
        case {"component": name, "parameters": dict(parameters)}:
            inside = ", ".join(f"{key}={inner(item)}" for key, item in parameters.items())
            return f"{printable(str(name)).partition('.')[2]}({inside})"
        case {"named": name}:
            return printable(str(name)).partition(".")[2]
        case {"tuple": list(items)}:
            return f"({', '.join(map(inner, items))}{',' if len(items) == 1 else ''})"
        case {"array": _, "shape": list(shape), "dtype": dtype}:
            return f"<array of {'×'.join(map(str, shape))} {dtype}>"
        case {"float": text} | {"text": text}:
            return printable(str(text))
    return "<damaged>"


def printable(text: str) -> str:
    """The text without control characters, which a terminal would execute."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def run_settings(generator: np.random.Generator, seed: Any, **settings: Any) -> dict[str, Any]:
    """What a run was given, and the versions it ran with, as JSON.

    `seed` is the `rng` that the caller gave. The generator made of a number, or of nothing, can be made again
    from its entropy; the state of a generator that the caller gave is not stored.
    """
    drawn = seed is None or isinstance(seed, Integral)
    source: Any = generator.bit_generator.seed_seq
    return {
        "seed": int(source.entropy) if drawn else {"text": as_text(seed)},
        **{name: describe(value) for name, value in settings.items()},
        "versions": {
            "manifold_dl": __version__,
            "numpy": np.__version__,
            "pymanopt": getattr(pymanopt, "__version__", "unknown"),
        },
    }


def as_text(value: Any) -> str:
    """The `repr` of a component, shortened."""
    try:
        text = repr(value)
    except Exception:  # an error in a user's __repr__ must not lose a result
        text = f"<{type(value).__qualname__}>"
    return text if len(text) <= 500 else f"{text[:497]}..."


def parameters_of(component: Any) -> dict[str, Any] | None:
    """The constructor's parameters with the values that an object keeps; None if it does not keep all.

    Dataclasses keep them in fields, Pymanopt's optimizers and line searchers in attributes of the same name,
    most of them with an underscore before it.
    """
    if dataclasses.is_dataclass(component):
        return {
            field.name: getattr(component, field.name)
            for field in dataclasses.fields(component)
            if field.init
            and field.metadata.get("stored", True)  # an engine belongs to a machine, not to a run
        }
    kept = vars(component) if hasattr(component, "__dict__") else {}
    parameters = {}
    for name in _constructor_parameters(type(component)):
        if f"_{name}" in kept:
            parameters[name] = kept[f"_{name}"]
        elif name in kept:
            parameters[name] = kept[name]
        else:
            return None
    return parameters


def _constructor_parameters(made: type) -> list[str]:
    """Those that the constructor names, and those it passes on to its parents as ``**kwargs``."""
    names: dict[str, None] = {}
    for base in made.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        names |= {p.name: None for p in parameters if p.kind not in several}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return list(names)


def _name(component: Any) -> str | None:
    found = registry.name_of(component)
    return None if found is None else ".".join(found)


def _describe_array(array: np.ndarray) -> dict[str, Any]:
    plain = array.dtype.kind in "biuf" and array.size <= LARGEST and np.isfinite(array).all()
    if not plain:
        return {"text": f"<array of {'×'.join(map(str, array.shape))} {array.dtype}>"}
    return {"array": array.ravel().tolist(), "shape": list(array.shape), "dtype": array.dtype.name}


def _restore(description: Any, depth: int) -> Any:
    if depth == 0:
        raise ValueError(f"the settings hold components in components, more than {DEPTH} deep.")
    if description is None or isinstance(description, (bool, int, float, str)):
        return description
    if isinstance(description, list):
        return [_restore(item, depth - 1) for item in description]
    match description:
        case {"component": str(name), "parameters": dict(parameters), **rest} if not rest:
            return _make(name, {key: _restore(item, depth - 1) for key, item in parameters.items()})
        case {"named": str(name), **rest} if not rest:
            return _find(name)
        case {"tuple": list(items), **rest} if not rest:
            return tuple(_restore(item, depth - 1) for item in items)
        case {"float": ("inf" | "-inf" | "nan") as text, **rest} if not rest:
            return float(text)
        case {"array": list(items), "shape": list(shape), "dtype": str(dtype), **rest} if not rest:
            return _restore_array(items, shape, dtype)
        case {"text": text, **rest} if not rest:
            raise ValueError(f"{text} was stored as text, from which it cannot be made again.")
    raise ValueError(f"{as_text(description)} describes no setting that is known here.")


def _find(name: str) -> Any:
    kind, _, own_name = name.partition(".")
    if not registry.is_kind(kind):
        raise ValueError(
            f"{name!r} begins with no kind of component; the kinds are {', '.join(registry.KINDS)}."
        )
    try:
        return registry.get(kind, own_name)
    except PluginError as error:
        raise ValueError(str(error)) from None


def _make(name: str, parameters: dict[str, Any]) -> Any:
    made = _find(name)
    if not isinstance(made, type):
        raise ValueError(f"{name} is no class that could be made with parameters.")
    known = (
        inspect.signature(made).parameters
        if dataclasses.is_dataclass(made)
        else _constructor_parameters(made)
    )
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(known)}.")
    try:
        return made(**parameters)
    except Exception as error:  # whatever the constructor of a component thinks of them
        raise ValueError(f"{name} cannot be made with the parameters stored: {error}") from error


def _restore_array(items: list, shape: list, dtype: str) -> np.ndarray:
    try:
        kind = np.dtype(dtype)
        if kind.kind not in "biuf" or len(items) > LARGEST:
            raise ValueError("only short arrays of numbers are stored")
        return np.array(items, dtype=kind).reshape([int(n) for n in shape])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"an array in the settings is damaged: {error}.") from None
