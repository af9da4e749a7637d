"""One function at one dictionary, differentiated by autograd. `derivatives.py` and `algebra.py` use it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass
class Tape:
    """A function at one dictionary, differentiated by autograd.

    What autograd records while it computes the gradient gives every Hessian product at that dictionary by one
    backward pass: half the work of differentiating ⟨∇R(D), E⟩ again for every direction E.

    Parameters
    ----------
    function : callable
        m×d array → one real number.
    name : str
        The name of the function, for messages.
    dictionary : m×d array
        Where to evaluate.
    """

    function: Any
    name: str
    dictionary: np.ndarray

    @cached_property
    def value(self) -> float:
        """The value, a float."""
        return self._number(self.function(self.dictionary))

    @cached_property
    def gradient(self) -> np.ndarray:
        from autograd import grad

        return self._differentiate("gradient", grad(self._tied), self._point)

    def hessian(self, direction: np.ndarray) -> np.ndarray:
        return self._differentiate("hessian", self._products, np.asarray(direction, dtype=self._point.dtype))

    @cached_property
    def _products(self) -> np.ndarray:
        from autograd import make_hvp

        # The gradient is recorded here, so that this is where an error occurs if there is any.
        products, _ = self._explained("hessian", make_hvp(self._tied), self._point)
        return products

    def _tied(self, D: Any) -> np.ndarray:
        import autograd.numpy as anp

        # Adding 0·‖D‖² makes the result depend on D twice. Otherwise autograd would warn for a constant or a
        # linear penalty, whose derivatives are zero, that the output is independent of the input.
        return self.function(D) + 0.0 * anp.sum(D * D)

    @cached_property
    def _point(self) -> np.ndarray:
        dictionary = np.asarray(self.dictionary)
        return dictionary.astype(np.result_type(dictionary.dtype, np.float32))  # autograd needs floats

    def _differentiate(self, missing: str, operator: Any, argument: Any) -> np.ndarray:
        return np.asarray(self._explained(missing, operator, argument), dtype=self._point.dtype)

    def _explained(self, missing: str, operator: Any, argument: Any) -> np.ndarray:
        """Apply an autograd operator; if it fails, raise an error with advice."""
        try:
            return operator(argument)
        except Exception as error:
            self._number(self.function(self.dictionary))  # raises the error if it is in the function itself
            what = self.name.rpartition(".")[2]
            owner = "give the class" if "." in self.name else "write a class with a value and"
            raise TypeError(
                f"autograd cannot differentiate {self.name} ({error}); "
                f"write {what} with autograd.numpy, or {owner} a {missing} method."
            ) from error

    def _number(self, penalty: Any) -> float:
        number = np.ndim(penalty) == 0 and np.asarray(penalty).dtype.kind in "fiub"
        if not number:
            found = f"an array of shape {np.shape(penalty)}" if np.ndim(penalty) else repr(penalty)
            raise TypeError(f"{self.name} returned {found}; a penalty is one real number.")
        return float(penalty)
