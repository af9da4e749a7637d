"""The ridge of an update rule: a number, a sequence or a function of the iteration."""

import numpy as np
import pytest
from update_cases import problem_data

from manifold_dl.components.errors import ComponentError
from manifold_dl.updates import SimCO, begin


class TestRidge:
    @pytest.mark.parametrize(
        ("mu", "values"),
        [
            (0.5, [0.5, 0.5, 0.5]),
            (np.float64(0.5), [0.5, 0.5, 0.5]),
            ([0.1, 0.01], [0.1, 0.01, 0.01]),
            ((1, 0), [1, 0, 0]),
            (np.array([0.1, 0.01, 0.0]), [0.1, 0.01, 0.0]),
            (lambda t: 0.1 / (1 + t), [0.1, 0.05, 0.1 / 3]),
        ],
    )
    def test_is_a_number_a_sequence_or_a_function_of_the_iteration(self, mu, values):
        Y, D, X = problem_data()
        rule = SimCO(mu=mu)
        assert [rule.mu_at(t) for t in range(3)] == values
        assert rule.mu_at(50) == (0.1 / 51 if callable(mu) else values[-1])
        for t, value in enumerate(values):
            D_new, X_new = SimCO(mu=mu)(Y, D, X, iteration=t)
            expected, codes = SimCO(mu=value)(Y, D, X)
            np.testing.assert_array_equal(D_new, expected)
            np.testing.assert_array_equal(X_new.data, codes.data)

    @pytest.mark.parametrize(
        ("mu", "error", "sentence"),
        [
            (-0.1, ValueError, "mu=-0.1: the ridge must be finite and not negative"),
            (np.nan, ValueError, "mu=nan: the ridge must be finite"),
            ([0.1, np.inf], ValueError, "mu=inf: the ridge must be finite"),
            ([], ValueError, "mu is an empty sequence"),
            (np.array([]), ValueError, "mu is an empty sequence"),
            ("0.1", TypeError, "mu='0.1': the ridge is one number"),
            ([None], TypeError, "mu=None: the ridge is one number"),
            ([[0.1]], TypeError, "the ridge is one number"),
        ],
    )
    def test_invalid_ridges_are_refused_at_construction(self, mu, error, sentence):
        with pytest.raises(error, match=sentence):
            SimCO(mu=mu)

    def test_by_default_there_is_none_in_a_single_update_and_two_steps_in_a_loop(self):
        Y, D, X = problem_data()
        primitive = SimCO(mu=0.0)(Y, D, X)[0]
        for iteration in (None, 0, 29, 100):  # only a loop binds the schedule
            np.testing.assert_array_equal(SimCO()(Y, D, X, iteration=iteration)[0], primitive)
        for iteration, mu in ((0, 0.2), (29, 0.2), (30, 0.0), (100, 0.0)):
            expected = SimCO(mu=mu)(Y, D, X)[0]
            np.testing.assert_array_equal(begin(SimCO(), 50)(Y, D, X, iteration=iteration)[0], expected)

    def test_a_function_that_returns_an_invalid_ridge_is_named(self):
        with pytest.raises(ComponentError, match="returned -1, and the ridge is one finite number") as caught:
            SimCO(mu=lambda t: -1)(*problem_data())
        assert "mu=-1: the ridge must be finite and not negative" in str(caught.value.__cause__)
