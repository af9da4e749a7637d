"""How regularizers add and scale: ``2 * a + b`` is one too, and a function of the dictionary may be a term.

`Penalty` has the operators and all regularizers of this package inherit it. `Function` makes a term of a
function; it is here, and not in `functions.py`, because sums accept functions and functions add.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from manifold_dl.regularizers.derivatives import EvaluatedAt, ScaledAt, SumAt, complete, evaluate
from manifold_dl.regularizers.protocol import Regularizer, RegularizerAt
from manifold_dl.regularizers.signatures import name_of, parameters_of, shown
from manifold_dl.regularizers.tape import Tape
from manifold_dl.regularizers.weights import require_weight


class Penalty:
    """A base class with which regularizers add and scale: ``a + b``, ``2 * a``, ``sum([a, b])``.

    The other term of a sum may be any regularizer, subclass or not, or a function of the dictionary. Sums are
    flat, and factors apply to the terms. An object of any other class is weighted by :func:`scaled`.

    Examples
    --------
    >>> from manifold_dl.regularizers import Coherence, Sparse
    >>> 2 * (Coherence(weight=0.1) + Sparse(weight=0.5))
    2 * Coherence(weight=0.1, power=8) + 2 * Sparse(weight=0.5, smoothing=0.01)
    """

    __array_ufunc__ = None  # so that `np.float64(2) * a` calls `__rmul__` and is no array

    def __add__(self, other: Any) -> "Sum":
        if not _is_regularizer(other):
            return NotImplemented
        return Sum((*_terms(self), *_terms(as_regularizer(other))))

    def __radd__(self, other: Any) -> "Penalty":
        if isinstance(other, Real) and other == 0:  # the start of the built-in sum
            return self
        if not _is_regularizer(other):
            return NotImplemented
        return Sum((*_terms(as_regularizer(other)), *_terms(self)))

    def __mul__(self, factor: Any) -> "Penalty":
        if not isinstance(factor, Real):
            return NotImplemented
        return _scale(factor, self)

    __rmul__ = __mul__


def scaled(weight: float, regularizer: Any) -> Penalty:
    """Multiply a regularizer of any class, or a function of the dictionary, by a weight of at least 0.

    ``0.1 * penalty`` needs a class that inherits :class:`Penalty`. This function works with any class, and
    its result adds and scales.

    Parameters
    ----------
    weight : float
        A finite number of at least 0.
    regularizer : Regularizer, or function of the dictionary
        The penalty to be multiplied.

    Returns
    -------
    Penalty
        The product.

    Examples
    --------
    >>> import autograd.numpy as anp
    >>> from dataclasses import dataclass
    >>> from manifold_dl.regularizers import Coherence
    >>> @dataclass
    ... class Peaks:
    ...     power: int = 4
    ...     def value(self, dictionary):
    ...         return anp.sum(dictionary**self.power)
    >>> scaled(0.1, Peaks()) + Coherence(weight=0.5)
    0.1 * Peaks(power=4) + Coherence(weight=0.5, power=8)
    """
    require_weight(weight)
    regularizer = as_regularizer(regularizer)
    # A factor of one is kept if the class has no addition: the result must have one.
    return _scale(weight, regularizer) if isinstance(regularizer, Penalty) else Scaled(weight, regularizer)


@dataclass(frozen=True, repr=False)
class Scaled(Penalty, EvaluatedAt):
    """A regularizer times a number of at least 0: the result of ``2 * a``.

    Parameters
    ----------
    factor : float
        A finite number of at least 0.
    regularizer : Regularizer
        What is multiplied.

    Examples
    --------
    >>> from manifold_dl.regularizers import Coherence
    >>> 3 * (Coherence(weight=0.1) * 2)
    6 * Coherence(weight=0.1, power=8)
    """

    factor: float
    regularizer: Any

    def __post_init__(self) -> None:
        require_weight(self.factor, name="factor")
        if isinstance(self.factor, np.generic | np.ndarray):  # which do not print as numbers
            object.__setattr__(self, "factor", self.factor.item())

    def __repr__(self) -> str:
        return f"{self.factor!r} * {self.regularizer!r}"

    @cached_property
    def _complete(self) -> Any:
        return complete(self.regularizer)

    def at(self, dictionary: np.ndarray) -> RegularizerAt:
        """Return the multiple at one dictionary."""
        return ScaledAt(float(self.factor), evaluate(self._complete, dictionary))


@dataclass(frozen=True, repr=False)
class Sum(Penalty, EvaluatedAt):
    """A sum of regularizers: the result of ``a + b``.

    Parameters
    ----------
    terms : tuple of Regularizer
        What is added.

    Examples
    --------
    >>> import numpy as np
    >>> from manifold_dl.regularizers import Coherence, Sparse
    >>> both = Coherence(weight=0.5) + Sparse(weight=0.1)
    >>> D = np.eye(2)
    >>> both.value(D) == Coherence(weight=0.5).value(D) + Sparse(weight=0.1).value(D)
    True
    """

    terms: tuple[Any, ...]

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))

    @cached_property
    def _complete(self) -> Any:
        return tuple(map(complete, self.terms))

    def at(self, dictionary: np.ndarray) -> RegularizerAt:
        """Return the sum at one dictionary."""
        return SumAt([evaluate(term, dictionary) for term in self._complete])


@dataclass(frozen=True, repr=False, eq=False)
class Function(Penalty, EvaluatedAt):
    """A function of the dictionary as a regularizer: the result of :func:`regularizer`.

    Parameters
    ----------
    function : callable
        m×d array → one real number, written with ``autograd.numpy``.
    parameters : dict
        The arguments of the function besides the dictionary, by name.
    """

    function: Callable
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = parameters_of(self.function)
        unknown = [name for name in self.parameters if known is not None and name not in known]
        if unknown:
            allowed = f"its parameters are {', '.join(known)}" if known else "it has the dictionary alone"
            raise TypeError(f"{name_of(self.function)} has no parameter {unknown[0]!r}: {allowed}.")
        # As functools.wraps does, so that help, pickle and doctest find the function.
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if isinstance(getattr(self.function, name, None), str):
                object.__setattr__(self, name, getattr(self.function, name))

    @property
    def missing(self) -> list[str]:
        """The parameters that have neither a value nor a default."""
        known = parameters_of(self.function) or {}
        required = (name for name, default in known.items() if default is inspect.Parameter.empty)
        return [name for name in required if name not in self.parameters]

    def __repr__(self) -> str:
        name = name_of(self.function)
        if not self.parameters:
            return f"regularizer({name})"
        return f"{name}({', '.join(f'{key}={shown(value)}' for key, value in self.parameters.items())})"

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
        """Return the value at a dictionary; without one, the regularizer with these parameters."""
        combined = {**self.parameters, **parameters}
        if dictionary:
            return self.function(*dictionary, **combined)
        return Function(self.function, combined) if parameters else self

    def __reduce__(self) -> Any:
        # The name of a decorated function refers to this object, by which pickle can find it in a module.
        module, name = self.__module__, getattr(self, "__name__", "")
        named = getattr(sys.modules.get(module), name, None) if module != "__main__" else None
        if named is self:
            return name
        if isinstance(named, Function) and named.function is self.function:
            return _with_parameters, (named, self.parameters)
        return Function, (self.function, self.parameters)

    def at(self, dictionary: np.ndarray) -> Tape:
        """Return value and derivatives at one dictionary, which are computed together."""
        function = self.function
        if self.parameters:
            function = lambda D: self.function(D, **self.parameters)
        return Tape(function, name_of(self.function), dictionary)


def as_regularizer(given: Any) -> Any:
    """Return a regularizer as it is and a function of the dictionary as a `Function`; refuse anything else.

    Parameters
    ----------
    given : Regularizer, or function of the dictionary
        What a caller passed as a regularizer.

    Returns
    -------
    Regularizer

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
            f"{given!r} needs values for its parameters: pass {name_of(given.function)}({names})."
        )
    return given


def _with_parameters(function: Function, parameters: dict) -> Function:
    return function(**parameters)


def _is_regularizer(other: Any) -> bool:
    return (isinstance(other, Regularizer) or callable(other)) and not isinstance(other, type)


def _terms(regularizer: Any) -> tuple[Any, ...]:
    return regularizer.terms if isinstance(regularizer, Sum) else (regularizer,)


def _scale(factor: Any, regularizer: Any) -> Any:
    if isinstance(regularizer, Sum):
        return Sum(tuple(_scale(factor, term) for term in regularizer.terms))
    if isinstance(regularizer, Scaled):
        require_weight(factor, name="factor")
        factor, regularizer = factor * regularizer.factor, regularizer.regularizer
    return regularizer if factor == 1 else Scaled(factor, regularizer)
