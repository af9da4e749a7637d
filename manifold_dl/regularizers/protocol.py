"""What a regularizer is: an object with `value`, and optional derivatives.

The optional members are named here, and `has_member` tests for them. Once `derivatives.complete` has added
the missing derivatives, `problem/regularization.py` uses `at` where there is one.
"""

from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Regularizer(Protocol):
    """A smooth penalty on the dictionary.

    Besides `value` a regularizer may have the methods `gradient`, `hessian` and `at` of `FullRegularizer`. To
    leave them to autograd, write `value` with ``autograd.numpy`` in the place of ``numpy``.
    """

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty of a dictionary.

        Parameters
        ----------
        dictionary : m×d array

        Returns
        -------
        float
        """
        ...


class RegularizerAt(Protocol):
    """A regularizer at one dictionary: its value, its gradient, and Hessian products."""

    @property
    def value(self) -> float:
        """The penalty."""
        ...

    @property
    def gradient(self) -> np.ndarray:
        """The m×d gradient."""
        ...

    def hessian(self, direction: np.ndarray) -> np.ndarray:
        """Return the m×d derivative of the gradient along `direction`."""
        ...


class FullRegularizer(Regularizer, Protocol):
    """A regularizer with all methods that one may have. Those other than `value` are optional."""

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        """Return the partial derivatives of the penalty. By default autograd computes them.

        Parameters
        ----------
        dictionary : m×d array

        Returns
        -------
        m×d array
        """
        ...

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the derivative of the gradient along a direction. By default autograd computes it.

        Parameters
        ----------
        dictionary, direction : m×d array

        Returns
        -------
        m×d array
        """
        ...

    def at(self, dictionary: np.ndarray) -> RegularizerAt:
        """Return value, gradient and Hessian products at one dictionary, which are computed together.

        A problem keeps the result as long as the dictionary stays the same. By default the other methods are
        called.

        Parameters
        ----------
        dictionary : m×d array

        Returns
        -------
        RegularizerAt
        """
        ...


def has_member(regularizer: Any, name: Literal["gradient", "hessian", "at"]) -> bool:
    """Whether a regularizer has one of the optional methods of `FullRegularizer`."""
    return hasattr(regularizer, name)
