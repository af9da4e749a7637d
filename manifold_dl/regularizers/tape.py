"""One function at one dictionary, differentiated by autograd: what `derivatives` and `functions` build on."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass
class Tape:
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
        number = np.ndim(penalty) == 0 and np.asarray(penalty).dtype.kind in "fiub"
        if not number:
            found = f"an array of shape {np.shape(penalty)}" if np.ndim(penalty) else repr(penalty)
            raise TypeError(f"{self.name} returned {found}; a penalty is one real number.")
        return float(penalty)
