"""What a regularizer is: an object with `value`, and optional derivatives.

The optional members are named here, and `has_member` tests for them. Once `derivatives.complete` has added
the missing derivatives, `problem/regularization.py` uses `at` where there is one.
"""

from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Regularizer(Protocol):
    """A smooth penalty on the dictionary.

    Besides `value` a regularizer may have

    - ``gradient(dictionary)``, the m×d array of partial derivatives,
    - ``hessian(dictionary, direction)``, the m×d derivative of the gradient along an m×d direction,
    - ``at(dictionary)``, an object with `value`, `gradient` and ``hessian(direction)`` at one dictionary,
      where these are computed together (`RegularizerAt`). A problem keeps it as long as the dictionary
      stays the same.

    To leave them to autograd, write `value` with ``autograd.numpy`` in the place of ``numpy``.
    """

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty of an m×d dictionary, one real number."""
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


def has_member(regularizer: Any, name: Literal["gradient", "hessian", "at"]) -> bool:
    """Whether a regularizer has one of the optional members of the protocol."""
    return hasattr(regularizer, name)
