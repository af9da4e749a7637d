"""Smooth penalties R(D) on the dictionary, added to the objective of an update.

A regularizer is any object with a method ``value(dictionary)``; nothing needs to be inherited. Derivatives
are optional: whoever builds a problem asks :func:`differentiable`, which gets the missing ones from autograd.
All of them are plain Euclidean derivatives in the entries of the m×d matrix D; the manifold makes them
Riemannian.

The ridge μ on the *codes* is no regularizer in this sense: it changes the inner solve, and so belongs to the
objective.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Protocol, runtime_checkable

import numpy as np

__all__ = ["Coherence", "Regularizer", "differentiable"]


@runtime_checkable
class Regularizer(Protocol):
    """A smooth penalty on the dictionary.

    Besides `value` a regularizer may have

    - ``gradient(dictionary)``, the m×d array of partial derivatives,
    - ``hessian(dictionary, direction)``, the m×d derivative of the gradient along an m×d direction.

    To leave them to autograd, write `value` with ``autograd.numpy`` in the place of ``numpy``.
    """

    def value(self, dictionary):
        """Return the penalty of an m×d dictionary, one real number."""
        ...


@dataclass(frozen=True)
class Coherence:
    """Push atoms apart: R(D) = weight · Σ_{i≠j} ⟨d_i, d_j⟩².

    Incoherent atoms make supports easier to find, and keep the least-squares problem on every support well
    conditioned: this penalty sees the near-collinear atoms at which the unregularized objective is singular.

    Parameters
    ----------
    weight : float
        How much it counts, at least 0.

    Notes
    -----
    With G = DᵀD and G° = G with its diagonal set to zero, R = weight · ‖G°‖²,

        ∇R(D) = 4 weight · D G°,
        ∇²R(D)[E] = 4 weight · (E G° + D (EᵀD + DᵀE)°).

    Every pair is counted twice, as (i, j) and as (j, i).

    Examples
    --------
    Two atoms at 60 degrees, and the gradient that tells them to part:

    >>> D = np.array([[1.0, 0.5], [0.0, np.sqrt(3) / 2]])
    >>> round(Coherence(weight=1.0).value(D), 12)
    0.5
    >>> Coherence(weight=1.0).gradient(D).round(3)
    array([[1.   , 2.   ],
           [1.732, 0.   ]])
    >>> Coherence(weight=1.0).value(np.eye(3))
    0.0
    """

    weight: float

    def __post_init__(self):
        if not isinstance(self.weight, Real) or not math.isfinite(self.weight) or self.weight < 0:
            raise ValueError(
                f"weight={self.weight!r}: the weight of a penalty is a finite number of at least 0; "
                "a negative one would reward coherent atoms without bound."
            )

    # float(weight), because a NumPy float64 would turn a float32 gradient into a float64 one.

    def value(self, dictionary):
        """Return the penalty, a float."""
        overlaps = _off_diagonal(dictionary.T @ dictionary)
        return float(self.weight) * float(np.vdot(overlaps, overlaps))

    def gradient(self, dictionary):
        """Return the m×d gradient 4 weight · D G°."""
        return 4 * float(self.weight) * (dictionary @ _off_diagonal(dictionary.T @ dictionary))

    def hessian(self, dictionary, direction):
        """Return the m×d derivative of the gradient along `direction`."""
        overlaps = _off_diagonal(dictionary.T @ dictionary)
        change = direction.T @ dictionary
        change = _off_diagonal(change + change.T)
        return 4 * float(self.weight) * (direction @ overlaps + dictionary @ change)


def _off_diagonal(gram):
    np.fill_diagonal(gram, 0)
    return gram


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


@dataclass(frozen=True)
class _Completed:
    """A regularizer together with the derivatives it does not have."""

    regularizer: Regularizer

    def value(self, dictionary):
        return float(self.regularizer.value(dictionary))

    def gradient(self, dictionary):
        if hasattr(self.regularizer, "gradient"):
            return self.regularizer.gradient(dictionary)
        from autograd import grad

        return self._differentiate("gradient", grad, dictionary)

    def hessian(self, dictionary, direction):
        if hasattr(self.regularizer, "hessian"):
            return self.regularizer.hessian(dictionary, direction)
        from autograd import hessian_vector_product

        return self._differentiate("hessian", hessian_vector_product, dictionary, direction)

    def _differentiate(self, missing, operator, dictionary, *direction):
        """Apply an autograd operator to `value`, and explain what to do if that fails."""
        import autograd.numpy as anp

        def value(D):
            # Adding 0·‖D‖² ties the result to D twice over. Otherwise a constant or a linear penalty, whose
            # derivatives are zero, would make autograd warn that the output is independent of the input.
            return self.regularizer.value(D) + 0.0 * anp.sum(D * D)

        dictionary = np.asarray(dictionary)
        dtype = np.result_type(dictionary.dtype, np.float32)  # autograd differentiates at floats only
        try:
            return np.asarray(operator(value)(dictionary.astype(dtype), *direction), dtype=dtype)
        except Exception as error:
            name = type(self.regularizer).__name__
            penalty = self.regularizer.value(dictionary)  # a mistake inside value speaks for itself here
            if penalty is None or np.ndim(penalty) != 0:
                found = "None" if penalty is None else f"an array of shape {np.shape(penalty)}"
                raise TypeError(f"{name}.value returned {found}; a penalty is one real number.") from error
            raise TypeError(
                f"autograd cannot differentiate {name}.value ({error}); "
                f"write value with autograd.numpy, or give the class a {missing} method."
            ) from error
