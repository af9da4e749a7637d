"""Functions of the dictionary as regularizers: bare, decorated, or decorated with parameters of their own.

`regularizer` is the decorator, `differentiable` adds the derivatives of anything that is accepted as a
regularizer, and `as_regularizers` validates the argument of a problem or an update rule.
"""

from collections.abc import Callable, Sequence
from typing import Any

from manifold_dl.regularizers.algebra import Function, as_regularizer
from manifold_dl.regularizers.derivatives import complete
from manifold_dl.regularizers.protocol import Regularizer


def regularizer(function: Callable) -> "Function":
    """Turn a function of D into a regularizer, with gradient and Hessian product; also as a decorator.

    Use it for a new penalty: no other code is needed. Wherever a regularizer is expected a bare function is
    accepted as well; a decorated one also adds, scales and takes parameters.

    Parameters
    ----------
    function : callable
        m×d array → one real number, smooth, written with ``autograd.numpy``. Arguments after the dictionary
        are parameters of the penalty, given by name.

    Returns
    -------
    Function
        A regularizer that adds and scales like the others, and can still be called as the function. Called
        with parameters alone, ``peaks(power=6)``, it returns the regularizer with these parameters, as a
        class would.

    Examples
    --------
    >>> import numpy as np
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

    With parameters:

    >>> @regularizer
    ... def powers(D, power=4, floor=0.0):
    ...     return anp.sum((D - floor) ** power)
    >>> powers(power=2)
    powers(power=2)
    >>> powers.value(D), powers(power=2).value(D)
    (17.0, 5.0)
    """
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"{function!r} is no function: regularizer(function) needs one of the dictionary.")
    if isinstance(function, Regularizer):
        raise TypeError(
            f"{function!r} is a regularizer already: use it as it is, or scaled(weight, ...) to weigh it."
        )
    return Function(function)


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
        The same object if it has all three. Otherwise one that calls its methods, and differentiates its
        `value` once for the gradient and twice for the Hessian product.

    Raises
    ------
    TypeError
        If it is no regularizer; and at the first derivative if autograd cannot differentiate its `value`.

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
    return complete(as_regularizer(regularizer))


def as_regularizers(given: Any) -> tuple:
    """Return a sequence of regularizers as a tuple, with functions converted to regularizers.

    Parameters
    ----------
    given : sequence of Regularizer, or functions of the dictionary
        The argument ``regularizers=`` of a problem or an update rule.

    Returns
    -------
    tuple of Regularizer

    Examples
    --------
    >>> import numpy as np
    >>> as_regularizers([np.sum])
    (regularizer(sum),)
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"regularizers={given!r}: pass a list of them, if only of one.")
    return tuple(as_regularizer(one) for one in given)
