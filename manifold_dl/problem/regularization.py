"""The regularizers as functions of the atoms I that move, while the other atoms stay.

A regularizer is a function of whole dictionaries. `RegularizationTerm` puts the atoms I in their places,
evaluates it there, and cuts out the part that belongs to I. `dictionary_problem.py` adds it to the objective,
`geodesic.py` to φ. An exception of a regularizer, or a result that cannot be right, becomes an error that
names it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from manifold_dl.components.errors import ComponentError, UndefinedValue, raise_named
from manifold_dl.kernels.blas import one_blas_thread
from manifold_dl.regularizers import Scaled, Sum, differentiable, scaled
from manifold_dl.regularizers.protocol import has_member

# A regularizer may have no value far out or at a singularity: line searches avoid such points.
UNDEFINED = (ArithmeticError, np.linalg.LinAlgError)


def penalty_of(regularizers: Iterable[Any], dictionary: np.ndarray) -> float:
    """Σ R(D). A regularizer that fails, or gives no number, is named."""
    return float(sum(_named(regularizer).value(dictionary) for regularizer in regularizers))


def require_finite_penalties(regularizers: Iterable[Any], dictionary: np.ndarray) -> None:
    """Refuse a start where a regularizer is infinite: no other dictionary could be compared with it."""
    for regularizer in regularizers:
        for term in _terms(_named(regularizer)):
            if not math.isfinite(value := term.value(dictionary)):
                term.gradient(dictionary)  # ours raise an error there that names the atoms
                fault = f"is {value} where an update begins; begin with a dictionary where it is finite"
                raise ComponentError(term.regularizer, "regularizer", fault)


class RegularizationTerm:
    """Σ R(D) with its derivatives in the atoms I.

    Parameters
    ----------
    regularizers : sequence of Regularizer
    whole : callable
        From the atoms I, m×|I|, to the whole m×d dictionary.
    atoms : the set I
    n_atoms : d
    """

    def __init__(
        self,
        regularizers: Iterable[Any],
        whole: Callable[[np.ndarray], np.ndarray],
        atoms: np.ndarray,
        n_atoms: int,
    ) -> None:
        self._sum = Sum(tuple(map(_named, regularizers)))
        self._whole, self._atoms, self._n_atoms = whole, atoms, n_atoms
        self._evaluated: list[_Evaluated] = []  # the regularizers at the last points, newest first

    def value(self, point: np.ndarray) -> float:
        """Σ R(D) with the atoms I at `point`."""
        return self._at(point).at.value

    def gradient(self, point: np.ndarray) -> np.ndarray:
        """The gradient with respect to the atoms I, m×|I|."""
        return self._at(point).at.gradient[:, self._atoms]

    def hessian(self, point: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """The Hessian product with an m×|I| direction, in the atoms I."""
        spread = np.zeros((len(point), self._n_atoms), np.result_type(point, direction))
        spread[:, self._atoms] = direction
        return self._at(point).at.hessian(spread)[:, self._atoms]

    def curvatures(self, point: np.ndarray) -> np.ndarray:
        """The size of the diagonal Hessian blocks, one number per atom, from one product."""
        evaluated = self._at(point)
        if evaluated.curvatures is None:
            # Random signs leave the diagonal of a block, on average. They are the same every time: an
            # optimizer relies on a preconditioner that does not change.
            signs = np.random.default_rng(0).choice(np.array([-1, 1], dtype=point.dtype), point.shape)
            try:
                product = self.hessian(point, signs)
            except TypeError:  # there is a gradient only, and nothing that autograd could differentiate
                product = np.zeros_like(point)
            evaluated.curvatures = np.abs(np.einsum("mk,mk->k", product, signs, dtype=float)) / len(point)
        return evaluated.curvatures

    def _at(self, point: np.ndarray) -> "_Evaluated":
        """The regularizers at `point`, shared by their value, gradient and Hessian products."""
        point = np.asarray(point)
        for place, evaluated in enumerate(self._evaluated):
            # By value, because a caller may have changed the array in place; and a trust region whose step
            # was refused comes back to the point before.
            if evaluated.point.dtype == point.dtype and np.array_equal(evaluated.point, point):
                self._evaluated.insert(0, self._evaluated.pop(place))
                return evaluated
        evaluated = _Evaluated(point.copy(), self._sum.at(self._whole(point)))
        self._evaluated = [evaluated, *self._evaluated[:1]]
        return evaluated


@dataclass(eq=False)
class _Evaluated:
    """The regularizers at one point."""

    point: np.ndarray
    at: Any  # with value, gradient and hessian
    curvatures: np.ndarray | None = None


def _named(regularizer: Any) -> Any:
    """The regularizer, complete with derivatives; each term of a sum is named where it fails."""
    if isinstance(regularizer, Sum):
        return Sum(tuple(map(_named, regularizer.terms)))
    if isinstance(regularizer, Scaled):
        return Scaled(regularizer.factor, _named(regularizer.regularizer))
    return _Named(regularizer, differentiable(regularizer))


def _terms(regularizer: Any) -> Iterator["_Named"]:
    if isinstance(regularizer, Sum):
        for term in regularizer.terms:
            yield from _terms(term)
    elif isinstance(regularizer, Scaled):
        yield from _terms(regularizer.regularizer) if regularizer.factor else ()
    else:
        yield regularizer


@dataclass(eq=False)
class _Named:
    """One regularizer in one problem. Its first value and derivatives, those of the start, must be finite.

    Later ones may be NaN or infinite. They belong to points that a line search tries, and then avoids.
    """

    regularizer: Any  # as the user gave it
    complete: Any
    seen: set[str] = field(default_factory=set)  # what has been evaluated

    def value(self, dictionary: np.ndarray) -> float:
        return self.at(dictionary).value

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        return self.at(dictionary).gradient

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return self.at(dictionary).hessian(direction)

    def at(self, dictionary: np.ndarray) -> "_NamedAt":
        try:
            with one_blas_thread(_operations(dictionary)):
                at = self.complete.at(dictionary) if has_member(self.complete, "at") else None
                return _NamedAt(self, dictionary, at)
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> NoReturn:
        kind = UndefinedValue if isinstance(error, UNDEFINED) else ComponentError
        raise_named(error, self.regularizer, "regularizer", kind)

    def number(self, value: Any) -> float:
        """The value as a float; the first one must not be NaN."""
        if type(value) is not float:
            if np.ndim(value) or np.asarray(value).dtype.kind not in "fiu":
                found = f"an array of shape {np.shape(value)}" if np.ndim(value) else repr(value)
                self.refuse(f"returned {found}; a penalty is one real number")
            value = float(value)
        if "value" not in self.seen:
            if math.isnan(value):
                self.refuse("returned NaN where an update begins")
            self.seen.add("value")
        return value

    def matrix(self, array: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """The gradient or a Hessian product, m×d; the first one must be finite."""
        array = np.asarray(array)
        if array.shape != shape or array.dtype.kind not in "fiu":
            found = f"shape {array.shape}" if array.shape != shape else f"dtype {array.dtype}"
            self.refuse(f"returned a {name} of {found}, where real numbers of shape {shape} are needed")
        if name not in self.seen:
            if not np.isfinite(array).all():
                self.refuse(f"returned a {name} that is not finite where an update begins")
            self.seen.add(name)
        return array

    def refuse(self, fault: str) -> NoReturn:
        raise ComponentError(self.regularizer, "regularizer", fault)


@dataclass(eq=False)
class _NamedAt:
    """A regularizer at one dictionary: value and gradient are computed at their first use, and kept."""

    named: _Named
    dictionary: np.ndarray
    shared: Any  # what the regularizer's own `at` returned, if it has one

    @cached_property
    def value(self) -> float:
        try:
            shared, complete = self.shared, self.named.complete
            with one_blas_thread(_operations(self.dictionary)):
                value = complete.value(self.dictionary) if shared is None else shared.value
        except Exception as error:
            self.named.fail(error)
        return self.named.number(value)

    @cached_property
    def gradient(self) -> np.ndarray:
        try:
            shared, complete = self.shared, self.named.complete
            with one_blas_thread(_operations(self.dictionary)):
                gradient = complete.gradient(self.dictionary) if shared is None else shared.gradient
        except Exception as error:
            self.named.fail(error)
        return self.named.matrix(gradient, "gradient", self.dictionary.shape)

    def hessian(self, direction: np.ndarray) -> np.ndarray:
        try:
            shared, complete = self.shared, self.named.complete
            with one_blas_thread(_operations(self.dictionary)):
                if shared is None:
                    product = complete.hessian(self.dictionary, direction)
                else:
                    product = shared.hessian(direction)
        except Exception as error:
            self.named.fail(error)
        return self.named.matrix(product, "Hessian product", self.dictionary.shape)


def _operations(dictionary: np.ndarray) -> int:
    """How many multiplications DᵀD takes, the largest product of the penalties of this package."""
    return dictionary.size * dictionary.shape[1]


def in_units(regularizers: Sequence, exponent: int) -> Sequence:
    """The regularizers for an objective in units of 4^exponent: their weights are divided by it."""
    if not regularizers or exponent == 0:
        return regularizers
    if abs(2 * exponent) > 1000:
        size = "large" if exponent > 0 else "small"
        raise ValueError(
            f"the signals, with entries of 2^{exponent}, are so {size} that no weight of a regularizer is in "
            "proportion to their squares: divide the signals by that power of two first."
        )
    return tuple(scaled(math.ldexp(1.0, -2 * exponent), penalty) for penalty in regularizers)
