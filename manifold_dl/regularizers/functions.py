"""Functions of the dictionary as regularizers: bare, decorated, or decorated with parameters of their own."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .algebra import Penalty, Regularizer
from .tape import Tape


def regularizer(function: Callable) -> "Function":
    """Turn a function of D into a regularizer, with gradient and Hessian product; also as a decorator.

    Use it for a penalty that nobody has written yet: this is all the code there is to write. Wherever a
    regularizer is expected a bare function will do as well; decorated, it also adds, scales and takes
    parameters.

    Parameters
    ----------
    function : callable
        m×d array → one real number, smooth, written with ``autograd.numpy``. Arguments after the dictionary
        are parameters of the penalty, given by name.

    Returns
    -------
    Function
        A regularizer that adds and scales like the others, and can still be called as the function. Called
        with parameters alone, ``peaks(power=6)``, it returns the regularizer with these parameters, as a
        class would.

    Examples
    --------
    >>> import autograd.numpy as anp
    >>> @regularizer
    ... def peaks(D):
    ...     return anp.sum(D**4)
    >>> 0.1 * peaks
    0.1 * regularizer(peaks)
    >>> D = np.array([[1.0], [2.0]])
    >>> peaks.value(D), peaks.gradient(D).tolist(), peaks.hessian(D, D).tolist()
    (17.0, [[4.0], [32.0]], [[12.0], [96.0]])
    >>> float(peaks(D))
    17.0

    With parameters:

    >>> @regularizer
    ... def powers(D, power=4, floor=0.0):
    ...     return anp.sum((D - floor) ** power)
    >>> powers(power=2)
    powers(power=2)
    >>> powers.value(D), powers(power=2).value(D)
    (17.0, 5.0)
    """
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"{function!r} is no function: regularizer(function) needs one of the dictionary.")
    if isinstance(function, Regularizer):
        raise TypeError(
            f"{function!r} is a regularizer already: use it as it is, or scaled(weight, ...) to weigh it."
        )
    return Function(function)


def as_regularizer(given: Any) -> Any:
    """A regularizer as it is, a function of the dictionary as a `Function`; a sentence for anything else.

    Examples
    --------
    >>> as_regularizer(np.sum)
    regularizer(sum)
    """
    if isinstance(given, type):
        name = given.__name__
        raise TypeError(f"{name} is a class; a regularizer is an instance of it, {name}(...).")
    if not isinstance(given, Regularizer):
        if not callable(given):
            raise TypeError(
                f"{given!r} has no method value(dictionary), which makes a regularizer, and is no function."
            )
        given = Function(given)
    if not callable(given.value):
        found = repr(given.value)
        raise TypeError(f"{given!r} has value = {found}; it must be a method, value(dictionary).")
    if isinstance(given, Function) and given.missing:
        names = ", ".join(f"{name}=..." for name in given.missing)
        raise TypeError(
            f"{given!r} needs values for its parameters: pass {_name_of(given.function)}({names})."
        )
    return given


def as_regularizers(given: Any) -> tuple:
    """A sequence of regularizers as a tuple, the functions in it made regularizers.

    Examples
    --------
    >>> as_regularizers([np.sum])
    (regularizer(sum),)
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"regularizers={given!r}: pass a list of them, if only of one.")
    return tuple(as_regularizer(one) for one in given)


@dataclass(frozen=True, repr=False, eq=False)
class Function(Penalty):
    """What :func:`regularizer` makes of a function.

    Attributes
    ----------
    function : callable
    parameters : dict
        What the function is called with besides the dictionary, by name.
    """

    function: Callable
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = _parameters(self.function)
        unknown = [name for name in self.parameters if known is not None and name not in known]
        if unknown:
            allowed = f"its parameters are {', '.join(known)}" if known else "it has the dictionary alone"
            raise TypeError(f"{_name_of(self.function)} has no parameter {unknown[0]!r}: {allowed}.")
        # As functools.wraps does, so that help, pickle and doctest see the function.
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if isinstance(getattr(self.function, name, None), str):
                object.__setattr__(self, name, getattr(self.function, name))

    @property
    def missing(self) -> list[str]:
        """Parameters that have neither a value nor a default."""
        known = _parameters(self.function) or {}
        required = (name for name, default in known.items() if default is inspect.Parameter.empty)
        return [name for name in required if name not in self.parameters]

    def __repr__(self) -> str:
        name = _name_of(self.function)
        if not self.parameters:
            return f"regularizer({name})"
        return f"{name}({', '.join(f'{key}={_shown(value)}' for key, value in self.parameters.items())})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        same_names = self.parameters.keys() == other.parameters.keys()
        return (
            self.function == other.function
            and same_names
            and all(np.array_equal(value, other.parameters[name]) for name, value in self.parameters.items())
        )

    def __hash__(self) -> int:
        return hash((self.function, frozenset(self.parameters)))

    def __call__(self, *dictionary: Any, **parameters: Any) -> Any:
        """The value at a dictionary; without one, the regularizer with these parameters."""
        combined = {**self.parameters, **parameters}
        if dictionary:
            return self.function(*dictionary, **combined)
        return Function(self.function, combined) if parameters else self

    def __reduce__(self) -> Any:
        # A decorated function gave us its name, and is no longer found by it: we are, outside of a script.
        module, name = self.__module__, getattr(self, "__name__", "")
        named = getattr(sys.modules.get(module), name, None) if module != "__main__" else None
        if named is self:
            return name
        if isinstance(named, Function) and named.function is self.function:
            return _with_parameters, (named, self.parameters)
        return Function, (self.function, self.parameters)

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty, a float."""
        return self.at(dictionary).value

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        """Return the m×d gradient."""
        return self.at(dictionary).gradient

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the m×d derivative of the gradient along `direction`."""
        return self.at(dictionary).hessian(direction)

    def at(self, dictionary: np.ndarray) -> Tape:
        """Value and derivatives at one dictionary, sharing their work."""
        function = self.function
        if self.parameters:
            function = lambda D: self.function(D, **self.parameters)
        return Tape(function, _name_of(self.function), dictionary)


def _with_parameters(function: Function, parameters: dict) -> Function:
    return function(**parameters)


def _parameters(function: Callable) -> dict[str, Any] | None:
    """The arguments after the dictionary, with their defaults; None where any name may be given."""
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


def _name_of(function: Callable) -> str:
    return getattr(function, "__name__", None) or repr(function)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"<{'×'.join(map(str, value.shape))} array>"
    return repr(value)
