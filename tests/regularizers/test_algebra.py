"""Sums and multiples of regularizers, and functions as regularizers."""

import copy
import pickle
from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
import pytest
from penalty_definitions import (
    LogSumExp,
    LogSumExpWithGradient,
    peaks,
    sparse_by_definition,
)

from manifold_dl.regularizers import (
    Coherence,
    Penalty,
    Regularizer,
    Scaled,
    Sparse,
    Sum,
    differentiable,
    regularizer,
)


def test_regularizers_add_scale_and_print():
    a, b = Coherence(0.1), Sparse(0.2)
    assert repr(2 * a + b) == "2 * Coherence(weight=0.1, power=8) + Sparse(weight=0.2, smoothing=0.01)"
    assert (
        repr(0.5 * (a + 4 * b))
        == "0.5 * Coherence(weight=0.1, power=8) + 2.0 * Sparse(weight=0.2, smoothing=0.01)"
    )
    assert 0.5 * (a + 2 * b) == 0.5 * a + b
    assert repr(np.float64(2.5) * a) == repr(a * np.float32(2.5)) == "2.5 * Coherence(weight=0.1, power=8)"
    assert 2 * a == a * 2 == Scaled(2, a) and 3 * (2 * a) == 6 * a and 1 * a == a
    assert (a + b) + (b + a) == Sum((a, b, b, a)) == a + (b + (b + a)) == sum([a, b, b, a])
    assert 2 * (a + b) == 2 * a + 2 * b


def test_values_and_derivatives_of_sums_and_multiples(dictionary, direction):
    a, b = Coherence(0.1), Sparse(0.2)
    total = 2 * a + b * 3
    assert total.value(dictionary) == pytest.approx(
        2 * a.value(dictionary) + 3 * b.value(dictionary), rel=1e-14
    )
    expected = 2 * a.gradient(dictionary) + 3 * b.gradient(dictionary)
    np.testing.assert_allclose(total.gradient(dictionary), expected, rtol=1e-14)
    expected = 2 * a.hessian(dictionary, direction) + 3 * b.hessian(dictionary, direction)
    np.testing.assert_allclose(total.hessian(dictionary, direction), expected, rtol=1e-14)


def test_regularizers_of_other_classes_add_on_either_side(dictionary):
    own = LogSumExp()
    for total in (own + Coherence(1.0), Coherence(1.0) + own):
        expected = float(own.value(dictionary)) + Coherence(1.0).value(dictionary)
        assert total.value(dictionary) == pytest.approx(expected, rel=1e-14)
        expected = LogSumExpWithGradient().gradient(dictionary) + Coherence(1.0).gradient(dictionary)
        np.testing.assert_allclose(total.gradient(dictionary), expected, rtol=1e-12, atol=1e-14)


def test_subclasses_of_penalty_need_only_value(dictionary):
    @dataclass(frozen=True)
    class Own(Penalty):
        power: int

        def value(self, dictionary):
            return anp.sum(dictionary**self.power)

    total = 2 * Own(4) + Coherence(1.0)
    expected = 8 * dictionary**3 + Coherence(1.0).gradient(dictionary)
    np.testing.assert_allclose(total.gradient(dictionary), expected, rtol=1e-13, atol=1e-14)
    assert total == 2 * Own(4) + Coherence(1.0) != 2 * Own(3) + Coherence(1.0)


@pytest.mark.parametrize(
    "combine",
    [
        lambda a: a + 1,
        lambda a: 1 + a,
        lambda a: a + Coherence,
        lambda a: a * a,
        lambda a: a * "2",
        lambda a: a * np.ones(2),
        lambda a: a - a,
    ],
)
def test_sums_and_products_with_other_objects_are_refused(combine):
    with pytest.raises(TypeError):
        combine(Coherence(1.0))


def test_decorated_function_is_a_regularizer_and_can_be_called(dictionary, direction):
    assert isinstance(peaks, Regularizer) and differentiable(peaks) is peaks
    assert peaks(dictionary) == peaks.value(dictionary) == np.sum(dictionary**4)
    # Products of at most four numbers of size one.
    np.testing.assert_allclose(peaks.gradient(dictionary), 4 * dictionary**3, rtol=1e-14)
    expected = 12 * dictionary**2 * direction
    np.testing.assert_allclose(peaks.hessian(dictionary, direction), expected, rtol=1e-13)
    assert repr(2 * peaks) == "2 * regularizer(peaks)" and peaks.__doc__ == "Fourth powers."
    assert peaks == peaks != regularizer(lambda D: anp.sum(D**4))


def test_functions_as_regularizers_copy_and_pickle():
    assert pickle.loads(pickle.dumps(peaks)) is peaks and copy.deepcopy(peaks) is peaks
    plain = regularizer(sparse_by_definition)
    assert pickle.loads(pickle.dumps(plain)) == plain == copy.deepcopy(plain)
    nameless = regularizer(lambda D: anp.sum(D))
    assert copy.deepcopy(nameless) == nameless and repr(nameless) == "regularizer(<lambda>)"


def test_decorator_refuses_what_is_no_function():
    with pytest.raises(TypeError, match=r"0\.1 is no function"):
        regularizer(0.1)
    with pytest.raises(TypeError, match="is no function"):
        regularizer(Coherence)
    with pytest.raises(TypeError, match="regularizer already"):
        regularizer(peaks)


def test_errors_of_functions_are_raised_when_they_are_evaluated():
    forgotten, unsummed = regularizer(lambda D: None), regularizer(lambda D: D**2)
    blind = regularizer(lambda D: float(np.sum(D)))
    for ask in (forgotten.value, forgotten.gradient):
        with pytest.raises(TypeError, match="<lambda> returned None; a penalty is one real number"):
            ask(np.eye(2))
    for ask in (unsummed.value, unsummed.gradient):
        with pytest.raises(TypeError, match=r"returned an array of shape \(2, 2\)"):
            ask(np.eye(2))
    with pytest.raises(TypeError, match=r"write <lambda> with autograd\.numpy, or write a class with"):
        blind.gradient(np.eye(2))


def test_function_is_evaluated_once_per_dictionary_for_all_hessian_products(dictionary, direction):
    calls = []

    @regularizer
    def counted(D):
        calls.append(type(D).__name__)
        return anp.sum(D**4)

    at = counted.at(dictionary)
    for _ in range(3):
        at.value, at.gradient, at.hessian(direction)
    # Once plainly, once for the gradient, once for all Hessian products.
    assert len(calls) == 3
