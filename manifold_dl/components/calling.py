"""Calls of components that a user wrote: with the options that their signatures name.

`coders.calling` and `learning.outcomes` use it. A component that cannot be called like that is named in a
`ComponentError`.
"""

import inspect
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType, MethodType
from typing import Any

from manifold_dl.components.errors import ComponentError


def call(part: Any, role: str, function: Callable, *arguments: Any, **options: Any) -> Any:
    """Call a function of a component with `arguments`, and with those of the `options` that it names.

    Parameters
    ----------
    part : object
        The component, for the error.
    role : str
        What the component is in the run, for the error.
    function : callable
        The component itself or a method of it.
    *arguments
        Passed by position.
    **options
        Passed on if the signature has a parameter of that name.

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    ComponentError
        If it cannot be called like that. What it raises itself is not changed.

    Examples
    --------
    >>> call(round, "coder", lambda signals, rng=None: (signals, rng), 1, rng=2, iteration=3)
    (1, 2)
    """
    try:
        signature = _signature(function)
    except (TypeError, ValueError):  # functions written in C need not have one
        return function(*arguments, **options)
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in signature.parameters.values())
    known = {name: value for name, value in options.items() if takes_any or name in signature.parameters}
    try:
        signature.bind(*arguments, **known)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        fault = f"cannot be called with {len(arguments)} arguments: {name}{signature} ({error})"
        raise ComponentError(part, role, fault) from error
    return function(*arguments, **known)


def takes(function: Callable, name: str) -> bool:
    """Whether a function can be called with a keyword of this name.

    Parameters
    ----------
    function : callable
        A component or a method of one.
    name : str
        The keyword.

    Returns
    -------
    bool
        True also where the signature is not known.

    Examples
    --------
    >>> takes(lambda signals, rng=None: signals, "weights")
    False
    """
    try:
        parameters = _signature(function).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())


def require_weights(part: Any, role: str, function: Callable) -> None:
    """Refuse a component that would take missing entries for data, where there are weights.

    Parameters
    ----------
    part : object
        The component, for the error.
    role : str
        What the component is in the run, for the error.
    function : callable
        The component itself or a method of it.

    Raises
    ------
    ComponentError
        If the function has no parameter `weights`.
    """
    if not takes(function, "weights"):
        fault = (
            "has no parameter `weights`, and would take missing entries for data: give it one, "
            "weights=None by default, or use a component that has it"
        )
        raise ComponentError(part, role, fault)


def _signature(function: Callable) -> inspect.Signature:
    """The signature. It takes twenty microseconds to find, so that of a method is cached."""
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        return _without_first(function.__func__)
    if isinstance(function, FunctionType | type) or not isinstance(type(function).__call__, FunctionType):
        return inspect.signature(function)
    return _without_first(type(function).__call__)


@lru_cache(maxsize=64)
def _without_first(method: FunctionType) -> inspect.Signature:
    signature = inspect.signature(method)
    return signature.replace(parameters=list(signature.parameters.values())[1:])
