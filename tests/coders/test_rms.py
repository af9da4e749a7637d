"""`RmsLasso`: the lasso with a penalty in units of the signals."""

import numpy as np
import pytest

from manifold_dl import Lasso, RmsLasso
from manifold_dl.datasets import synthetic
from manifold_dl.manifolds import Spheres
from manifold_dl.problem.solvers import SignalUnit


@pytest.fixture
def data():
    _, _, Y = synthetic(8, 12, 60, sparsity=2, snr_db=20, rng=0)
    return Y, Spheres(8, 12).random_point(rng=1)


def test_codes_are_those_of_the_lasso_with_the_absolute_penalty(data):
    Y, D = data
    rms = np.sqrt(np.mean(np.sum(Y**2, axis=0)))
    ours = RmsLasso(alpha=0.1).encode(Y, D).toarray()
    np.testing.assert_allclose(ours, Lasso(alpha=0.1 * rms).encode(Y, D).toarray(), atol=1e-12)


@pytest.mark.parametrize("exponent", [3, 300, -300])
def test_signals_times_a_power_of_two_get_codes_times_it(data, exponent):
    Y, D = data
    codes = RmsLasso(alpha=0.1).encode(Y, D).toarray()
    scaled = RmsLasso(alpha=0.1).encode(np.ldexp(Y, exponent), D).toarray()
    np.testing.assert_array_equal(scaled, np.ldexp(codes, exponent))


def test_sparsity_keeps_the_largest_entries_with_least_squares(data):
    Y, D = data
    full = RmsLasso(alpha=0.05).encode(Y, D).toarray()
    codes = RmsLasso(alpha=0.05, sparsity=2).encode(Y, D).toarray()
    for y, x, whole in zip(Y.T, codes.T, full.T, strict=True):
        support = np.flatnonzero(x)
        assert set(support) <= set(np.argsort(-np.abs(whole))[:2])
        np.testing.assert_allclose(x[support], np.linalg.lstsq(D[:, support], y)[0], atol=1e-10)


def test_zero_signals_get_no_atoms(data):
    assert RmsLasso(alpha=0.1).encode(np.zeros((8, 3)), data[1]).nnz == 0


def test_inner_solver_has_the_penalty_in_units_of_the_signals():
    assert RmsLasso(alpha=0.1).inner_solver(0.5, SignalUnit(rms=3.0, exponent=7)).alpha == 0.1 * 3.0
    with pytest.raises(ValueError, match="sparsity"):
        RmsLasso(alpha=0.1, sparsity=2).inner_solver(0.0, SignalUnit(1.0, 0))
