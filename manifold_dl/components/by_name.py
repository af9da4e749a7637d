"""Components given by name: ``coder="iht"``, ``SimCO(manifold="zero-mean")``, ``--solver trust-region``.

Wherever the command line takes the name of a component, the functions and classes of the package take it,
too, and both make the same object of it here. Whatever is no string is passed on as it is. The registry finds
the classes, those of other packages as well. `optimizers/by_name.py` and `regularizers/by_name.py` add what
their kinds accept besides a name.
"""

import inspect
from collections.abc import Callable
from typing import Any

from manifold_dl.components import registry
from manifold_dl.components.entry_points import PluginError


def component(kind: str, value: Any, argument: str, **settings: Any) -> Any:
    """The component of a kind that `value` names, made with those of the settings that it takes.

    Parameters
    ----------
    kind : str
        One of `registry.KINDS`.
    value : str or component
        A component is returned as it is.
    argument : str
        The argument that the user gave it for, for the error: ``"coder"``, ``"--coder"``.
    **settings
        Passed on if the component has a parameter of that name.

    Returns
    -------
    component

    Raises
    ------
    ValueError
        If there is no such component, or if it cannot be made from its name alone.

    Examples
    --------
    >>> from manifold_dl import coders, schedules  # importing a package registers its components
    >>> component("schedules", "one-at-a-time", "schedule")
    OneAtATime(order='natural')
    >>> component("coders", "omp", "coder", sparsity=3)
    OMP(sparsity=3, tol=None, nonnegative=False)
    >>> component("coders", "iht", "coder")
    Traceback (most recent call last):
    ...
    ValueError: coder='iht': IHT needs sparsity. In Python, pass an object: IHT(sparsity=...).
    """
    if not isinstance(value, str):
        return value
    made = find(kind, value, argument)
    # A class of manifolds is itself the factory (m, k) → manifold; and a plug-in may register an object.
    if kind == "manifolds" or not isinstance(made, type):
        return made
    parameters = inspect.signature(made).parameters
    given = {name: setting for name, setting in settings.items() if name in parameters}
    missing = [
        name for name, parameter in parameters.items() if _is_required(parameter) and name not in given
    ]
    if missing:
        raise ValueError(_too_little(argument, value, made, missing))
    try:
        return made(**given)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{as_written(argument, value)}: {error} In Python, pass an object: {made.__name__}(...)."
        ) from error


def find(kind: str, name: str, argument: str) -> Callable:
    """The class of that name, if a name is all that it takes."""
    try:
        made = registry.get(kind, name)
    except PluginError as error:
        raise ValueError(f"{as_written(argument, name)}: {error}") from None
    if (needed := registry.what_it_needs(made)) is not None:
        raise ValueError(f"{as_written(argument, name)}: {made.__name__} needs {needed}, in Python.")
    return made


def as_written(argument: str, value: Any) -> str:
    """What the user has written: ``coder='omp'`` in Python, ``--coder omp`` on the command line."""
    return f"{argument} {value}" if argument.startswith("--") else f"{argument}={value!r}"


def _is_required(parameter: inspect.Parameter) -> bool:
    several = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in several


def _too_little(argument: str, name: str, made: Callable, missing: list[str]) -> str:
    called = getattr(made, "__name__", name)
    example = f"{called}({', '.join(f'{key}=...' for key in missing)})"
    needs = f"{called} needs {' and '.join(missing)}"
    return f"{as_written(argument, name)}: {needs}. In Python, pass an object: {example}."
