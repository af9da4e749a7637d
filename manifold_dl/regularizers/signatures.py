"""Names and parameters of functions that are regularizers, for `algebra.Function`."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np


def parameters_of(function: Callable) -> dict[str, Any] | None:
    """Return the arguments after the dictionary, with their defaults; None if any name may be given."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions written in C need not have one
        return None
    own = list(signature.parameters.values())
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in own):
        return None
    first = 1 if own and own[0].kind is not inspect.Parameter.KEYWORD_ONLY else 0
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {one.name: one.default for one in own[first:] if one.kind in by_name}


def name_of(function: Callable) -> str:
    """Return the name of a function, or its representation if it has none."""
    return getattr(function, "__name__", None) or repr(function)


def shown(value: Any) -> str:
    """Return how a parameter is printed: large arrays by their shape."""
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"<{'×'.join(map(str, value.shape))} array>"
    return repr(value)
