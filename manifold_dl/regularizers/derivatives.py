"""Derivatives from autograd, for regularizers without their own.

`complete` adds what is missing to an object with `value`; `evaluate` gives all derivatives at one dictionary.
`algebra.py` builds sums and multiples on both, and `functions.differentiable` is the public name.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manifold_dl.regularizers.protocol import Regularizer, RegularizerAt, has_member
from manifold_dl.regularizers.tape import Tape


def complete(regularizer: Any) -> Any:
    """Return a regularizer with `gradient` and `hessian`: itself if it has both, else one that adds them."""
    if has_member(regularizer, "gradient") and has_member(regularizer, "hessian"):
        return regularizer
    return _Completed(regularizer)


def evaluate(regularizer: Any, dictionary: np.ndarray) -> RegularizerAt:
    """Return a complete regularizer at one dictionary, with value and gradient computed once, on demand."""
    if has_member(regularizer, "at"):
        return regularizer.at(dictionary)
    return _At(regularizer, dictionary)


class EvaluatedAt:
    """A mixin for regularizers with ``at(dictionary)``: value and derivatives come from there."""

    def at(self, dictionary: np.ndarray) -> RegularizerAt:
        """Return the regularizer at one dictionary, where value and derivatives are computed together."""
        raise NotImplementedError

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty, a float."""
        return self.at(dictionary).value

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        """Return the m×d gradient."""
        return self.at(dictionary).gradient

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the m×d derivative of the gradient along `direction`."""
        return self.at(dictionary).hessian(direction)


@dataclass
class ScaledAt:
    """A multiple of a regularizer at one dictionary."""

    factor: float
    term: RegularizerAt

    @property
    def value(self) -> float:
        # Zero times a barrier is zero, also where the barrier is infinite.
        return self.factor * self.term.value if self.factor else 0.0

    @cached_property
    def gradient(self) -> np.ndarray:
        return self.factor * self.term.gradient

    def hessian(self, direction: np.ndarray) -> np.ndarray:
        return self.factor * self.term.hessian(direction)


@dataclass
class SumAt:
    """A sum of regularizers at one dictionary."""

    terms: list[RegularizerAt]

    @property
    def value(self) -> float:
        return float(sum(term.value for term in self.terms))

    @cached_property
    def gradient(self) -> np.ndarray:
        total: Any = sum(term.gradient for term in self.terms)
        return total

    def hessian(self, direction: np.ndarray) -> np.ndarray:
        total: Any = sum(term.hessian(direction) for term in self.terms)
        return total


@dataclass
class _At:
    regularizer: Any
    dictionary: np.ndarray

    @cached_property
    def value(self) -> float:
        return float(self.regularizer.value(self.dictionary))

    @cached_property
    def gradient(self) -> np.ndarray:
        return self.regularizer.gradient(self.dictionary)

    def hessian(self, direction: np.ndarray) -> np.ndarray:
        return self.regularizer.hessian(self.dictionary, direction)


@dataclass(frozen=True)
class _Completed(EvaluatedAt):
    """A regularizer together with the derivatives it does not have."""

    regularizer: Regularizer

    def at(self, dictionary: np.ndarray) -> "_CompletedAt":
        name = f"{type(self.regularizer).__name__}.value"
        return _CompletedAt(self.regularizer, Tape(self.regularizer.value, name, dictionary))


@dataclass
class _CompletedAt:
    """Derivatives at one dictionary: those of the regularizer where it has them, else autograd's."""

    regularizer: Any
    tape: Tape

    @property
    def value(self) -> float:
        return self.tape.value

    @cached_property
    def gradient(self) -> np.ndarray:
        if has_member(self.regularizer, "gradient"):
            return self.regularizer.gradient(self.tape.dictionary)
        return self.tape.gradient

    def hessian(self, direction: np.ndarray) -> np.ndarray:
        if has_member(self.regularizer, "hessian"):
            return self.regularizer.hessian(self.tape.dictionary, direction)
        return self.tape.hessian(direction)
