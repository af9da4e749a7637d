"""Codes on a support that is given."""

import numpy as np
import pytest
from coding_problems import problem
from scipy.sparse import csc_array

from manifold_dl.coders import FixedSupport


@pytest.mark.parametrize("make", [lambda X: X != 0, lambda X: csc_array(X), lambda X: csc_array(X != 0)])
def test_fixed_support_recovers_the_codes_from_any_form_of_the_support(make):
    D, X, Y = problem(12, 30, 50, 4)
    np.testing.assert_allclose(
        FixedSupport(make(X)).encode(Y, D).toarray(), X, atol=1e-9
    )  # four random atoms


def test_rank_deficient_support_uses_minimum_norm_solution():
    D, _, Y = problem(6, 4, 5, 2)
    D[:, 1] = D[:, 0]
    support = np.tile([0, 1, 3], (5, 1))
    X = FixedSupport(support).encode(Y, D).toarray()
    expected = np.linalg.pinv(D[:, [0, 1, 3]]) @ Y
    np.testing.assert_allclose(X[[0, 1, 3]], expected, atol=1e-9)  # rounding
