"""Sums over the signals: against dense formulas, over several blocks, the same bits for any threads."""

import numpy as np
import pytest
import scipy.sparse

from manifold_dl import OMP, datasets
from manifold_dl.engines import Threads
from manifold_dl.engines.protocol import partition
from manifold_dl.learning.replacement import worst_represented
from manifold_dl.learning.signal_sums import (
    LossScale,
    code_energies,
    explained_fraction,
    squared_error,
    unexplained_fraction,
)
from manifold_dl.problem.support import as_support

D, _, Y = datasets.synthetic(8, 12, 5000, sparsity=2, snr_db=10, rng=0)
X = OMP(sparsity=2).encode(Y, D)
REST = Y - D @ X.toarray()


def test_the_signals_make_several_blocks():
    assert len(partition(Y.shape[1])) > 2


def test_squared_error_is_the_norm_of_the_residual():
    # Sums of 40,000 squares in another order.
    assert squared_error(Y, D, X) == pytest.approx(np.sum(REST**2), rel=1e-12)
    assert squared_error(Y, D, X, exponent=1) == squared_error(Y, D, X) / 4  # a power of two changes no digit


def test_explained_fraction_is_one_minus_the_relative_error():
    assert explained_fraction(Y, D, X) == pytest.approx(1 - np.sum(REST**2) / np.sum(Y**2), rel=1e-12)
    assert explained_fraction(np.zeros((8, 3)), D, scipy.sparse.csc_array((12, 3))) == 1.0


def test_code_energies_are_the_squared_norms_of_the_rows():
    np.testing.assert_allclose(code_energies(X, 0), np.sum(X.toarray() ** 2, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(code_energies(X, 2) * 16, code_energies(X, 0))


@pytest.mark.parametrize("total", [squared_error, unexplained_fraction])
def test_number_of_threads_changes_no_bit(total):
    assert total(Y, D, X, engine=Threads(1)) == total(Y, D, X, engine=Threads(3))
    np.testing.assert_array_equal(code_energies(X, 0, Threads(1)), code_energies(X, 0, Threads(3)))


@pytest.mark.parametrize("count", [1, 7, 10_000])
def test_worst_represented_signals_come_in_the_order_of_their_relative_error(count):
    fractions = np.sum(REST**2, axis=0) / np.sum(Y**2, axis=0)
    expected = np.argsort(-fractions, kind="stable")[:30]
    found = worst_represented(Y, D, as_support(X, Y.shape[1], 12), count, Threads(2))
    for j, signal in zip(expected, found, strict=False):
        factor = np.abs(Y[:, j]).max() / np.abs(signal).max()
        assert factor == 2.0 ** round(np.log2(factor))  # a unit of its own, which changes no digit
        np.testing.assert_array_equal(signal * factor, Y[:, j])


def test_worst_represented_signals_end_before_those_that_are_exact():
    codes = scipy.sparse.csc_array(np.eye(3))
    signals = np.eye(3) + np.array([[0.0, 0.0, 0.5]]).T * [1.0, 0.0, 0.0]
    found = list(worst_represented(signals, np.eye(3), as_support(codes, 3, 3), count=2))
    assert len(found) == 1


def test_loss_scale_of_zero_signals_has_no_relative_loss():
    scale = LossScale.of(np.zeros((4, 3)))
    assert scale.relative(0.0) == 0.0 and scale.per_signal(6.0) == 2.0


def test_loss_out_of_range_is_warned_of():
    scale = LossScale(total_weight=1, energy=1.0, exponent=600)
    with pytest.warns(UserWarning, match=r"history\.loss is inf"):
        scale.warn_if_out_of_range(0.5)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csc_array])
def test_whole_numbers_are_codes_and_not_indices(make):
    Y, D = np.array([[1.0, 2.0], [0.0, 3.0]]), np.eye(2)
    codes = make(np.array([[1, 2], [0, 1]]))
    assert squared_error(Y, D, codes) == 4.0
    assert explained_fraction(Y, D, codes) == pytest.approx(1 - 4 / 14)
