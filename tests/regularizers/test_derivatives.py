"""Derivatives that autograd supplies, and Taylor expansions of all penalties."""

import subprocess
import sys

import autograd.numpy as anp
import numpy as np
import pytest
from penalty_definitions import Constant, LogSumExp, LogSumExpWithGradient, LogSumExpWithHessian, Total, slope

from manifold_dl.regularizers import (
    Coherence,
    differentiable,
)

REGULARIZERS = [
    Coherence(0.7),
    LogSumExp(),
    LogSumExpWithGradient(),
    LogSumExpWithHessian(),
    Total(),
    Constant(),
]


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: type(r).__name__)
def test_derivatives_give_the_taylor_expansion(regularizer, dictionary, direction):
    penalty = differentiable(regularizer)
    steps = np.logspace(-2, -3.5, 7)
    value, first = penalty.value(dictionary), np.vdot(penalty.gradient(dictionary), direction)
    second = np.vdot(penalty.hessian(dictionary, direction), direction)
    moved = np.array([penalty.value(dictionary + t * direction) for t in steps])
    remainders = abs(moved - value - steps * first - steps**2 / 2 * second)
    # Either the third derivative shows (a wrong gradient would give slope 1, a wrong Hessian 2, and the
    # derivatives after it bend the slope, most where an eighth power is one step of 1e-2 away from its
    # minimum), or there is none and what is left is rounding.
    vanishes = isinstance(regularizer, Total | Constant) or (
        isinstance(regularizer, Coherence) and dictionary.shape[1] == 1
    )
    if vanishes:
        np.testing.assert_allclose(remainders, 0, atol=1e-13 * max(1, abs(value)))
    else:
        assert slope(remainders, steps) == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: type(r).__name__)
def test_hessians_are_symmetric(regularizer, dictionary, direction):
    hessian = differentiable(regularizer).hessian
    other = np.random.default_rng(4).standard_normal(dictionary.shape)
    left = np.vdot(hessian(dictionary, direction), other)
    right = np.vdot(direction, hessian(dictionary, other))
    assert left == pytest.approx(right, rel=1e-11, abs=1e-12)  # sums of 512 terms that partly cancel


@pytest.mark.parametrize(
    "regularizer", [*REGULARIZERS, Coherence(np.float64(0.5))], ids=lambda r: type(r).__name__
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivatives_have_shape_and_dtype_of_the_dictionary(regularizer, dictionary, direction, dtype):
    D, E = dictionary.astype(dtype), direction.astype(dtype)
    penalty = differentiable(regularizer)
    assert type(penalty.value(D)) is float
    for array in (penalty.gradient(D), penalty.hessian(D, E)):
        assert array.shape == D.shape
        assert array.dtype == dtype


def test_complete_regularizer_is_returned_unchanged():
    coherence = Coherence(0.1)
    assert differentiable(coherence) is coherence
    completed = differentiable(LogSumExp())
    assert differentiable(completed) is completed


def test_existing_derivatives_are_used():
    class Marked(LogSumExp):
        def gradient(self, dictionary):
            return "by hand"

    D = np.eye(2)
    assert differentiable(Marked()).gradient(D) == "by hand"
    np.testing.assert_allclose(  # and the Hessian does not go through that gradient
        differentiable(Marked()).hessian(D, D), LogSumExpWithHessian().hessian(D, D), rtol=1e-13
    )


def test_constant_and_linear_penalties_have_zero_derivatives_without_a_warning(dictionary, direction):
    np.testing.assert_array_equal(differentiable(Constant()).gradient(dictionary), 0)
    np.testing.assert_array_equal(differentiable(Constant()).hessian(dictionary, direction), 0)
    np.testing.assert_array_equal(differentiable(Total(3.0)).gradient(dictionary), 3)
    np.testing.assert_array_equal(differentiable(Total(3.0)).hessian(dictionary, direction), 0)


def test_integer_dictionaries_are_differentiated_as_floats():
    gradient = differentiable(LogSumExp()).gradient(np.zeros((2, 2), dtype=int))
    np.testing.assert_allclose(gradient, 0.25, rtol=1e-15)


def test_value_that_autograd_cannot_differentiate_is_refused_with_advice():
    class PlainNumpy:
        def value(self, dictionary):
            return float(np.sum(np.exp(dictionary)))

    class PlainNumpyWithGradient(PlainNumpy):
        def gradient(self, dictionary):
            return np.exp(dictionary)

    D = np.eye(2)
    assert differentiable(PlainNumpy()).value(D) == pytest.approx(2 * np.e + 2)
    with pytest.raises(TypeError, match=r"PlainNumpy\.value .*autograd\.numpy, or .* a gradient method"):
        differentiable(PlainNumpy()).gradient(D)
    with pytest.raises(TypeError, match=r"write value with autograd\.numpy, or .* a hessian method"):
        differentiable(PlainNumpy()).hessian(D, D)
    # First-order methods need no more than the gradient that is there.
    np.testing.assert_array_equal(differentiable(PlainNumpyWithGradient()).gradient(D), np.exp(D))


def test_exceptions_inside_value_are_raised_unchanged():
    class Misspelt:
        def value(self, dictionary):
            return anp.sum(dictionary @ np.ones(7))

    with pytest.raises(ValueError, match="matmul"):
        differentiable(Misspelt()).gradient(np.eye(2))


def test_value_that_is_no_real_number_is_refused():
    class Forgotten:
        def value(self, dictionary):
            anp.sum(dictionary**2)

    class Unsummed:
        def value(self, dictionary):
            return dictionary**2

    with pytest.raises(TypeError, match=r"Forgotten\.value returned None; a penalty is one real number"):
        differentiable(Forgotten()).gradient(np.eye(2))
    with pytest.raises(TypeError, match=r"Unsummed\.value returned an array of shape \(2, 2\)"):
        differentiable(Unsummed()).gradient(np.eye(2))


def test_what_is_no_regularizer_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match=r"0\.1 has no method value\(dictionary\)"):
        differentiable(0.1)
    with pytest.raises(TypeError, match=r"Coherence is a class; .* an instance of it, Coherence\(\.\.\.\)"):
        differentiable(Coherence)


def test_penalties_with_own_derivatives_do_not_import_autograd():
    code = (
        "import sys; sys.modules['autograd'] = None; import numpy as np; "
        "from manifold_dl.regularizers import Coherence, Sparse; "
        "(2 * Coherence(0.1) + Sparse(0.1)).hessian(np.eye(2), np.eye(2))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
