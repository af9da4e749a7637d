"""Penalties on the dictionary: their derivatives, and what autograd supplies where there are none."""

import pickle
import subprocess
import sys
from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad, hessian_vector_product

from manifold_dl.regularizers import Coherence, Regularizer, differentiable


def slope(errors, steps):
    """The order of errors ~ steps**order, by least squares on logarithmic axes."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@pytest.fixture(params=[(2, 1), (2, 2), (5, 8), (16, 32)], ids=lambda shape: f"{shape[0]}x{shape[1]}")
def dictionary(request):
    D = np.random.default_rng(1).standard_normal(request.param)
    return D / np.linalg.norm(D, axis=0)


@pytest.fixture
def direction(dictionary):
    return np.random.default_rng(2).standard_normal(dictionary.shape)


# Penalties as a user might write them: each lacks something else


class CoherenceByPairs:
    """Σ_{i≠j} ⟨d_i, d_j⟩² as the definition says it: an oracle that shares no line with `Coherence`."""

    def value(self, dictionary):
        d = dictionary.shape[1]
        return sum(
            anp.dot(dictionary[:, i], dictionary[:, j]) ** 2 for i in range(d) for j in range(d) if i != j
        )


class LogSumExp:
    """Smooth and not a polynomial: no derivative of it vanishes."""

    def value(self, dictionary):
        return anp.log(anp.sum(anp.exp(dictionary)))


class LogSumExpWithGradient(LogSumExp):
    def gradient(self, dictionary):
        return np.exp(dictionary) / np.sum(np.exp(dictionary))


class LogSumExpWithHessian(LogSumExp):
    def hessian(self, dictionary, direction):
        p = np.exp(dictionary) / np.sum(np.exp(dictionary))
        return p * direction - p * np.sum(p * direction)


@dataclass(frozen=True)
class Total:
    """Linear: its Hessian is zero, and autograd finds that its gradient does not depend on D."""

    weight: float = 3.0

    def value(self, dictionary):
        return self.weight * anp.sum(dictionary)


class Constant:
    def value(self, dictionary):
        return 3.0


REGULARIZERS = [
    Coherence(0.7),
    LogSumExp(),
    LogSumExpWithGradient(),
    LogSumExpWithHessian(),
    Total(),
    Constant(),
]


# Coherence


def test_coherence_is_the_sum_over_pairs_and_its_derivatives_are_autograds(dictionary, direction):
    oracle = CoherenceByPairs().value
    coherence = Coherence(0.7)
    # Sums of up to 1000 squares of size one: a few hundred roundings of 1e-16.
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(coherence.value(dictionary), 0.7 * oracle(dictionary), **close)
    if dictionary.shape[1] == 1:  # a sum over no pairs: nothing there to differentiate
        assert coherence.value(dictionary) == 0
        np.testing.assert_array_equal(coherence.gradient(dictionary), 0)
        np.testing.assert_array_equal(coherence.hessian(dictionary, direction), 0)
        return
    np.testing.assert_allclose(coherence.gradient(dictionary), 0.7 * grad(oracle)(dictionary), **close)
    np.testing.assert_allclose(
        coherence.hessian(dictionary, direction),
        0.7 * hessian_vector_product(oracle)(dictionary, direction),
        **close,
    )


def test_coherence_of_known_dictionaries():
    assert Coherence(2.0).value(np.eye(4)) == 0
    assert Coherence(2.0).value(np.ones((1, 3))) == 2.0 * 6  # three equal atoms: six ordered pairs
    D = np.array([[1.0, 0.6], [0.0, 0.8]])
    assert Coherence(1.0).value(D) == pytest.approx(2 * 0.36, rel=1e-15)


def test_coherence_ignores_signs_and_order(dictionary):
    rng = np.random.default_rng(3)
    d = dictionary.shape[1]
    shuffled = (dictionary * rng.choice([-1, 1], d))[:, rng.permutation(d)]
    assert Coherence(1.0).value(shuffled) == pytest.approx(Coherence(1.0).value(dictionary), rel=1e-12)


def test_coherence_leaves_its_argument_alone(dictionary, direction):
    before = dictionary.copy()
    coherence = Coherence(1.0)
    coherence.value(dictionary), coherence.gradient(dictionary), coherence.hessian(dictionary, direction)
    np.testing.assert_array_equal(dictionary, before)


@pytest.mark.parametrize("weight", [-0.1, np.inf, np.nan, "0.1", None, 1j])
def test_impossible_weights_are_refused_with_a_sentence(weight):
    with pytest.raises(ValueError, match=r"weight=.*a finite number of at least 0"):
        Coherence(weight)


def test_coherence_is_a_value():
    assert Coherence(0.5) == Coherence(0.5) != Coherence(0.6)
    assert repr(Coherence(0.5)) == "Coherence(weight=0.5)"
    assert pickle.loads(pickle.dumps(Coherence(0.5))) == Coherence(0.5)
    assert isinstance(Coherence(0.5), Regularizer)


# All of them, once completed


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: type(r).__name__)
def test_derivatives_give_the_taylor_expansion(regularizer, dictionary, direction):
    penalty = differentiable(regularizer)
    steps = np.logspace(-2, -3.5, 7)
    value, first = penalty.value(dictionary), np.vdot(penalty.gradient(dictionary), direction)
    second = np.vdot(penalty.hessian(dictionary, direction), direction)
    moved = np.array([penalty.value(dictionary + t * direction) for t in steps])
    remainders = abs(moved - value - steps * first - steps**2 / 2 * second)
    # Either the third derivative shows (a wrong gradient would give slope 1, a wrong Hessian 2, and the
    # fourth derivative bends the slope by a few percent), or there is none and what is left is rounding.
    vanishes = isinstance(regularizer, Total | Constant) or (
        isinstance(regularizer, Coherence) and dictionary.shape[1] == 1
    )
    if vanishes:
        np.testing.assert_allclose(remainders, 0, atol=1e-13 * max(1, abs(value)))
    else:
        assert slope(remainders, steps) == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: type(r).__name__)
def test_hessians_are_symmetric(regularizer, dictionary, direction):
    hessian = differentiable(regularizer).hessian
    other = np.random.default_rng(4).standard_normal(dictionary.shape)
    left = np.vdot(hessian(dictionary, direction), other)
    right = np.vdot(direction, hessian(dictionary, other))
    assert left == pytest.approx(right, rel=1e-11, abs=1e-12)  # sums of 512 terms that partly cancel


@pytest.mark.parametrize("regularizer", [*REGULARIZERS, Coherence(np.float64(0.5))], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivatives_have_shape_and_dtype_of_the_dictionary(regularizer, dictionary, direction, dtype):
    D, E = dictionary.astype(dtype), direction.astype(dtype)
    penalty = differentiable(regularizer)
    assert type(penalty.value(D)) is float
    for array in (penalty.gradient(D), penalty.hessian(D, E)):
        assert array.shape == D.shape
        assert array.dtype == dtype


# What autograd supplies


def test_a_complete_regularizer_is_returned_as_it_is():
    coherence = Coherence(0.1)
    assert differentiable(coherence) is coherence
    completed = differentiable(LogSumExp())
    assert differentiable(completed) is completed


def test_methods_that_exist_are_used():
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


def test_whole_numbers_are_differentiated_as_floats():
    gradient = differentiable(LogSumExp()).gradient(np.zeros((2, 2), dtype=int))
    np.testing.assert_allclose(gradient, 0.25, rtol=1e-15)


def test_a_value_autograd_cannot_see_through_is_refused_with_advice():
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


def test_a_mistake_inside_value_speaks_for_itself():
    class Misspelt:
        def value(self, dictionary):
            return anp.sum(dictionary @ np.ones(7))

    with pytest.raises(ValueError, match="matmul"):
        differentiable(Misspelt()).gradient(np.eye(2))


def test_a_penalty_is_one_number():
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


def test_hand_written_derivatives_do_without_autograd():
    code = (
        "import sys; sys.modules['autograd'] = None; import numpy as np; "
        "from manifold_dl.regularizers import Coherence, Sparse; "
        "(2 * Coherence(0.1) + Sparse(0.1)).hessian(np.eye(2), np.eye(2))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
