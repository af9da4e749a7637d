"""Components given by name: ``coder="iht"``, ``SimCO(manifold="zero-mean")``, ``--solver trust-region``.

Wherever the command line takes the name of a component, the functions and classes of the package take it,
too, and both make the same object of it: here, once, where the name comes in. Whatever is no string is passed
on as it is. `plugins` finds the classes, those of other packages as well.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from manifold_dl import plugins
from manifold_dl.optimizers.shortcuts import SHORTCUTS, STEPS
from manifold_dl.regularizers import scaled


def component(kind: str, value: Any, argument: str, **settings: Any) -> Any:
    """The component of a kind that `value` names, made with those of the settings that it takes.

    Parameters
    ----------
    kind : str
        One of `plugins.KINDS`.
    value
        A name, or a component, which is returned as it is.
    argument : str
        What the user calls it, for the sentence of an error: ``"coder"``, ``"--coder"``.
    **settings
        Passed on if the component has a parameter of that name.

    Raises
    ------
    ValueError
        If there is no such component, or if its name says too little to make one.

    Examples
    --------
    >>> component("schedules", "one-at-a-time", "schedule")
    OneAtATime(order='natural')
    >>> component("coders", "omp", "coder", sparsity=3)
    OMP(sparsity=3, tol=None)
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
            f"{said(argument, value)}: {error} In Python, pass an object: {made.__name__}(...)."
        ) from error


def find(kind: str, name: str, argument: str) -> Callable:
    """The class of that name, if a name is all that it takes."""
    try:
        made = plugins.get(kind, name)
    except plugins.PluginError as error:
        raise ValueError(f"{said(argument, name)}: {error}") from None
    if (needed := plugins.what_it_needs(made)) is not None:
        raise ValueError(f"{said(argument, name)}: {made.__name__} needs {needed}, in Python.")
    return made


def optimizer(value: Any, argument: str = "optimizer", line_searcher: Any = None) -> Any:
    """The optimizer that `value` names, set up for one update stage; None is the default of `SimCO`.

    Besides the names that `plugins` knows there are ``"cg"``, ``"lbfgs"``, ``"trust-region"`` and
    ``"golden"`` (see `optimizers.shortcuts`). Any other optimizer makes five iterations a stage, if it can be
    told.

    Examples
    --------
    >>> optimizer("trust-region").kappa
    0.3
    >>> optimizer("trust-region", line_searcher="golden-section")
    Traceback (most recent call last):
    ...
    ValueError: optimizer='trust-region' takes no line searcher: leave line_searcher='golden-section' out.
    """
    if not (value is None or isinstance(value, str)):
        return value
    if value is None and line_searcher is None:
        return None
    name = "cg" if value is None else value
    key = name.lower().replace("_", "-")
    made = SHORTCUTS[key] if key in SHORTCUTS else find("optimizers", name, argument)
    parameters, settings = inspect.signature(made).parameters, {}
    searcher_argument = "--line-searcher" if argument.startswith("--") else "line_searcher"
    if line_searcher is not None:
        if "line_searcher" not in parameters:
            other = said(searcher_argument, line_searcher)
            raise ValueError(f"{said(argument, name)} takes no line searcher: leave {other} out.")
        settings["line_searcher"] = component("line_searchers", line_searcher, searcher_argument)
    if key not in SHORTCUTS and (
        "max_iterations" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    ):
        settings["max_iterations"] = STEPS  # its own limit is meant for one run, not for fifty stages
    return made(**settings)


def regularizers(values: Any, argument: str = "regularizers") -> Any:
    """Regularizers, of which some may be given as ``"name:weight"``.

    Examples
    --------
    >>> regularizers(["coherence:0.01"])
    (Coherence(weight=0.01, power=8),)
    """
    if isinstance(values, str):
        raise TypeError(f"{argument}={values!r}: pass a list of them, if only of one: [{values!r}].")
    if not isinstance(values, Iterable):
        return values  # refused elsewhere, with what is expected
    return tuple(_weighted(value, argument) if isinstance(value, str) else value for value in values)


def _weighted(text: str, argument: str) -> Any:
    name, _, weight = text.partition(":")
    try:
        factor = float(weight)
    except ValueError:
        raise ValueError(f"{said(argument, text)}: give it as NAME:WEIGHT, such as coherence:0.01.") from None
    made = find("regularizers", name, argument)
    if not isinstance(made, type):  # a function that its package registers
        return scaled(factor, made)
    return component("regularizers", name, argument, weight=factor)


def said(argument: str, value: Any) -> str:
    """What the user has written: ``coder='omp'`` in Python, ``--coder omp`` on the command line."""
    return f"{argument} {value}" if argument.startswith("--") else f"{argument}={value!r}"


def _is_required(parameter: inspect.Parameter) -> bool:
    several = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in several


def _too_little(argument: str, name: str, made: Callable, missing: list[str]) -> str:
    called = getattr(made, "__name__", name)
    example = f"{called}({', '.join(f'{key}=...' for key in missing)})"
    needs = f"{called} needs {' and '.join(missing)}"
    return f"{said(argument, name)}: {needs}. In Python, pass an object: {example}."
