"""What a regularizer is, and how regularizers add and scale: ``2 * a + b`` is one too."""

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Regularizer(Protocol):
    """A smooth penalty on the dictionary.

    Besides `value` a regularizer may have

    - ``gradient(dictionary)``, the m×d array of partial derivatives,
    - ``hessian(dictionary, direction)``, the m×d derivative of the gradient along an m×d direction,
    - ``at(dictionary)``, an object with `value`, `gradient` and ``hessian(direction)`` at one dictionary,
      where these share their work. A problem keeps it as long as the dictionary stays the same.

    To leave them to autograd, write `value` with ``autograd.numpy`` in the place of ``numpy``.
    """

    def value(self, dictionary):
        """Return the penalty of an m×d dictionary, one real number."""
        ...


class Penalty:
    """Inherit it to let a regularizer add and scale: ``a + b``, ``2 * a``, ``sum([a, b])``.

    The other term of a sum may be any regularizer, subclass or not, or a function of the dictionary. Sums are
    flat, and factors go to the terms. An object of any other class is weighted by :func:`scaled`.

    Examples
    --------
    >>> from manifold_dl.regularizers import Coherence, Sparse
    >>> 2 * (Coherence(weight=0.1) + Sparse(weight=0.5))
    2 * Coherence(weight=0.1, power=8) + 2 * Sparse(weight=0.5, smoothing=0.01)
    """

    __array_ufunc__ = None  # a NumPy number leaves `np.float64(2) * a` to us, and makes no array of it

    def __add__(self, other):
        if not _is_regularizer(other):
            return NotImplemented
        return Sum((*_terms(self), *_terms(_completed(other))))

    def __radd__(self, other):
        if isinstance(other, Real) and other == 0:  # where the built-in sum begins
            return self
        if not _is_regularizer(other):
            return NotImplemented
        return Sum((*_terms(_completed(other)), *_terms(self)))

    def __mul__(self, factor):
        if not isinstance(factor, Real):
            return NotImplemented
        return _scale(factor, self)

    __rmul__ = __mul__


def scaled(weight: Real, regularizer: Any) -> Penalty:
    """A regularizer of any class, or a function of the dictionary, times a weight of at least 0.

    ``0.1 * penalty`` needs a class that knows how to multiply, as those do that inherit :class:`Penalty`.
    This function needs nothing of the class, and what it returns adds and scales like ours.

    Parameters
    ----------
    weight : float
        A finite number of at least 0.
    regularizer : Regularizer, or function of the dictionary

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
    regularizer = _completed(regularizer)
    # A factor of one is kept where the class cannot add: the result must.
    return _scale(weight, regularizer) if isinstance(regularizer, Penalty) else Scaled(weight, regularizer)


@dataclass(frozen=True, repr=False)
class Scaled(Penalty):
    """A regularizer times a number of at least 0; what ``2 * a`` makes.

    Examples
    --------
    >>> from manifold_dl.regularizers import Coherence
    >>> 3 * (Coherence(weight=0.1) * 2)
    6 * Coherence(weight=0.1, power=8)
    """

    factor: float
    regularizer: Any

    def __post_init__(self):
        require_weight(self.factor, name="factor")
        if hasattr(self.factor, "item"):  # NumPy's numbers do not print as numbers
            object.__setattr__(self, "factor", self.factor.item())

    def __repr__(self):
        return f"{self.factor!r} * {self.regularizer!r}"

    @cached_property
    def _complete(self):
        from .derivatives import differentiable

        return differentiable(self.regularizer)

    def value(self, dictionary):
        return self.at(dictionary).value

    def gradient(self, dictionary):
        return self.at(dictionary).gradient

    def hessian(self, dictionary, direction):
        return self.at(dictionary).hessian(direction)

    def at(self, dictionary):
        return _ScaledAt(float(self.factor), evaluate(self._complete, dictionary))


@dataclass(frozen=True, repr=False)
class Sum(Penalty):
    """Regularizers added up; what ``a + b`` makes.

    Examples
    --------
    >>> import numpy as np
    >>> from manifold_dl.regularizers import Coherence, Sparse
    >>> both = Coherence(weight=0.5) + Sparse(weight=0.1)
    >>> D = np.eye(2)
    >>> both.value(D) == Coherence(weight=0.5).value(D) + Sparse(weight=0.1).value(D)
    True
    """

    terms: tuple

    def __repr__(self):
        return " + ".join(map(repr, self.terms))

    @cached_property
    def _complete(self):
        from .derivatives import differentiable

        return tuple(map(differentiable, self.terms))

    def value(self, dictionary):
        return self.at(dictionary).value

    def gradient(self, dictionary):
        return self.at(dictionary).gradient

    def hessian(self, dictionary, direction):
        return self.at(dictionary).hessian(direction)

    def at(self, dictionary):
        return _SumAt([evaluate(term, dictionary) for term in self._complete])


def evaluate(regularizer, dictionary):
    """A complete regularizer at one dictionary: value and gradient are computed when asked for, and kept."""
    if hasattr(regularizer, "at"):
        return regularizer.at(dictionary)
    return _At(regularizer, dictionary)


@dataclass
class _At:
    regularizer: Any
    dictionary: Any

    @cached_property
    def value(self):
        return float(self.regularizer.value(self.dictionary))

    @cached_property
    def gradient(self):
        return self.regularizer.gradient(self.dictionary)

    def hessian(self, direction):
        return self.regularizer.hessian(self.dictionary, direction)


@dataclass
class _ScaledAt:
    factor: float
    part: Any

    @property
    def value(self):
        # Nothing times a barrier is nothing, also where the barrier is infinite.
        return self.factor * self.part.value if self.factor else 0.0

    @cached_property
    def gradient(self):
        return self.factor * self.part.gradient

    def hessian(self, direction):
        return self.factor * self.part.hessian(direction)


@dataclass
class _SumAt:
    parts: list

    @property
    def value(self):
        return float(sum(part.value for part in self.parts))

    @cached_property
    def gradient(self):
        return sum(part.gradient for part in self.parts)

    def hessian(self, direction):
        return sum(part.hessian(direction) for part in self.parts)


def require_weight(weight, name="weight", positive=False):
    """Say what is wrong with a number that is no weight."""
    real = isinstance(weight, Real) and math.isfinite(weight)
    if not real or weight < 0 or (positive and weight == 0):
        allowed = "a finite number above 0" if positive else "a finite number of at least 0"
        raise ValueError(
            f"{name}={weight!r}: the {name} of a penalty is {allowed}; "
            "a negative one would reward what the penalty is there to prevent."
        )


def _is_regularizer(other):
    return (isinstance(other, Regularizer) or callable(other)) and not isinstance(other, type)


def _completed(other):
    from .functions import as_regularizer

    return as_regularizer(other)


def _terms(regularizer):
    return regularizer.terms if isinstance(regularizer, Sum) else (regularizer,)


def _scale(factor, regularizer):
    if isinstance(regularizer, Sum):
        return Sum(tuple(_scale(factor, term) for term in regularizer.terms))
    if isinstance(regularizer, Scaled):
        require_weight(factor, name="factor")
        factor, regularizer = factor * regularizer.factor, regularizer.regularizer
    return regularizer if factor == 1 else Scaled(factor, regularizer)
