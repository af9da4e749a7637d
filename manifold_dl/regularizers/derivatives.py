"""Derivatives from autograd, for regularizers that do not bring their own."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .algebra import Regularizer
from .functions import as_regularizer
from .tape import Tape


def differentiable(regularizer: Any) -> Any:
    """Complete a regularizer: `value`, `gradient` and `hessian`, what is missing supplied by autograd.

    Parameters
    ----------
    regularizer : Regularizer, or function of the dictionary
        An object with `value`, and perhaps `gradient` and `hessian`; or a function, as for
        :func:`regularizer`.

    Returns
    -------
    Regularizer
        The very same object if it has all three. Otherwise one that calls its methods, and differentiates its
        `value` once for the gradient and twice for the Hessian product.

    Raises
    ------
    TypeError
        At once if it is no regularizer; at the first derivative if autograd cannot see through its `value`.

    Examples
    --------
    A penalty on the steps between neighbouring entries of an atom, for which no derivative was written:

    >>> import numpy as np
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
    regularizer = as_regularizer(regularizer)
    if hasattr(regularizer, "gradient") and hasattr(regularizer, "hessian"):
        return regularizer
    return _Completed(regularizer)


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
        return _CompletedAt(self.regularizer, Tape(self.regularizer.value, name, dictionary))


@dataclass
class _CompletedAt:
    """Its own derivatives at one dictionary where it has them, autograd's where it does not."""

    regularizer: Regularizer
    tape: Tape

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
