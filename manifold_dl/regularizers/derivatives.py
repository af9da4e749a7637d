"""Derivatives from autograd, for regularizers that do not bring their own; and functions as regularizers."""

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .algebra import Penalty, Regularizer


def differentiable(regularizer):
    """Complete a regularizer: `value`, `gradient` and `hessian`, what is missing supplied by autograd.

    Parameters
    ----------
    regularizer : Regularizer
        An object with `value`, and perhaps `gradient` and `hessian`.

    Returns
    -------
    Regularizer
        The very same object if it has all three. Otherwise one that calls its methods, and differentiates its
        `value` once for the gradient and twice for the Hessian product.

    Raises
    ------
    TypeError
        At once if there is no `value`; at the first derivative if autograd cannot see through it.

    Examples
    --------
    A penalty on the steps between neighbouring entries of an atom, for which no derivative was written:

    >>> import autograd.numpy as anp
    >>> class Roughness:
    ...     def value(self, dictionary):
    ...         return anp.sum(anp.diff(dictionary, axis=0) ** 2)
    >>> roughness = differentiable(Roughness())
    >>> D = np.array([[0.0], [1.0], [3.0]])
    >>> roughness.value(D)
    5.0
    >>> roughness.gradient(D).ravel()
    array([-2., -2.,  4.])
    >>> roughness.hessian(D, np.array([[1.0], [0.0], [0.0]])).ravel()
    array([ 2., -2.,  0.])
    """
    if isinstance(regularizer, type):
        name = regularizer.__name__
        raise TypeError(f"{name} is a class; a regularizer is an instance of it, {name}(...).")
    if not isinstance(regularizer, Regularizer):
        raise TypeError(f"{regularizer!r} has no method value(dictionary), which makes a regularizer.")
    if hasattr(regularizer, "gradient") and hasattr(regularizer, "hessian"):
        return regularizer
    return _Completed(regularizer)


def regularizer(function):
    """Turn a function of D into a regularizer, with gradient and Hessian product; also as a decorator.

    Use it for a penalty that nobody has written yet: this is all the code there is to write.

    Parameters
    ----------
    function : callable
        m×d array → one real number, smooth, written with ``autograd.numpy``.

    Returns
    -------
    Function
        A regularizer that adds and scales like the others, and can still be called as the function.

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
    """
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"{function!r} is no function: regularizer(function) needs one of the dictionary.")
    if isinstance(function, Regularizer):
        raise TypeError(f"{function!r} is a regularizer already; differentiable(...) completes it.")
    return Function(function)


@dataclass(frozen=True, repr=False)
class Function(Penalty):
    """What :func:`regularizer` makes of a function."""

    function: Any

    def __post_init__(self):
        # As functools.wraps does, so that help, pickle and doctest see the function.
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if isinstance(getattr(self.function, name, None), str):
                object.__setattr__(self, name, getattr(self.function, name))

    def __repr__(self):
        return f"regularizer({_name_of(self.function)})"

    def __call__(self, dictionary):
        return self.function(dictionary)

    def __reduce__(self):
        # A decorated function gave us its name, and is no longer found by it: we are, outside of a script.
        module, name = self.__module__, getattr(self, "__name__", "")
        if module != "__main__" and getattr(sys.modules.get(module), name, None) is self:
            return name
        return Function, (self.function,)

    def value(self, dictionary):
        """Return the penalty, a float."""
        return self.at(dictionary).value

    def gradient(self, dictionary):
        """Return the m×d gradient."""
        return self.at(dictionary).gradient

    def hessian(self, dictionary, direction):
        """Return the m×d derivative of the gradient along `direction`."""
        return self.at(dictionary).hessian(direction)

    def at(self, dictionary):
        """Value and derivatives at one dictionary, sharing their work."""
        return _Tape(self.function, _name_of(self.function), dictionary)


@dataclass(frozen=True)
class _Completed:
    """A regularizer together with the derivatives it does not have."""

    regularizer: Regularizer

    def value(self, dictionary):
        return self.at(dictionary).value

    def gradient(self, dictionary):
        return self.at(dictionary).gradient

    def hessian(self, dictionary, direction):
        return self.at(dictionary).hessian(direction)

    def at(self, dictionary):
        name = f"{type(self.regularizer).__name__}.value"
        return _CompletedAt(self.regularizer, _Tape(self.regularizer.value, name, dictionary))


@dataclass
class _CompletedAt:
    """Its own derivatives at one dictionary where it has them, autograd's where it does not."""

    regularizer: Regularizer
    tape: "_Tape"

    @property
    def value(self):
        return self.tape.value

    @cached_property
    def gradient(self):
        if hasattr(self.regularizer, "gradient"):
            return self.regularizer.gradient(self.tape.dictionary)
        return self.tape.gradient

    def hessian(self, direction):
        if hasattr(self.regularizer, "hessian"):
            return self.regularizer.hessian(self.tape.dictionary, direction)
        return self.tape.hessian(direction)


@dataclass
class _Tape:
    """A function at one dictionary, differentiated by autograd.

    What autograd records while it computes the gradient gives every Hessian product at that dictionary by one
    pass backwards: half the work of differentiating ⟨∇R(D), E⟩ afresh for every direction E.
    """

    function: Any
    name: str
    dictionary: np.ndarray

    @cached_property
    def value(self):
        return self._number(self.function(self.dictionary))

    @cached_property
    def gradient(self):
        from autograd import grad

        return self._differentiate("gradient", grad(self._tied), self._point)

    def hessian(self, direction):
        return self._differentiate("hessian", self._products, np.asarray(direction, dtype=self._point.dtype))

    @cached_property
    def _products(self):
        from autograd import make_hvp

        # The first run of the gradient is the recording; anything that goes wrong goes wrong here.
        products, _ = self._explained("hessian", make_hvp(self._tied), self._point)
        return products

    def _tied(self, D):
        import autograd.numpy as anp

        # Adding 0·‖D‖² ties the result to D twice over. Otherwise a constant or a linear penalty, whose
        # derivatives are zero, would make autograd warn that the output is independent of the input.
        return self.function(D) + 0.0 * anp.sum(D * D)

    @cached_property
    def _point(self):
        dictionary = np.asarray(self.dictionary)
        return dictionary.astype(np.result_type(dictionary.dtype, np.float32))  # autograd asks for floats

    def _differentiate(self, missing, operator, argument):
        return np.asarray(self._explained(missing, operator, argument), dtype=self._point.dtype)

    def _explained(self, missing, operator, argument):
        """Apply an autograd operator, and say what to do if that fails."""
        try:
            return operator(argument)
        except Exception as error:
            self._number(self.function(self.dictionary))  # a mistake inside it speaks for itself here
            what = self.name.rpartition(".")[2]
            owner = "give the class" if "." in self.name else "write a class with a value and"
            raise TypeError(
                f"autograd cannot differentiate {self.name} ({error}); "
                f"write {what} with autograd.numpy, or {owner} a {missing} method."
            ) from error

    def _number(self, penalty):
        if penalty is None or np.ndim(penalty) != 0 or np.iscomplexobj(penalty):
            found = f"an array of shape {np.shape(penalty)}" if np.ndim(penalty) else repr(penalty)
            raise TypeError(f"{self.name} returned {found}; a penalty is one real number.")
        return float(penalty)


def _name_of(function):
    return getattr(function, "__name__", None) or repr(function)
