"""`BestOf`: of every signal the codes of the coder that fits it best."""

import numpy as np
import pytest

from manifold_dl import OMP, BestOf, FixedSupport, Lasso
from manifold_dl.datasets import synthetic
from manifold_dl.manifolds import Spheres


@pytest.fixture
def data():
    _, _, Y = synthetic(8, 12, 70, sparsity=3, snr_db=20, rng=0)
    return Y, Spheres(8, 12).random_point(rng=1)


def test_every_signal_has_the_codes_with_the_smallest_error(data):
    Y, D = data
    coders = [OMP(sparsity=3), Lasso(alpha=0.05, sparsity=3)]
    found = [coder.encode(Y, D).toarray() for coder in coders]
    errors = np.array([np.sum((Y - D @ X) ** 2, axis=0) for X in found])
    assert len(set(errors.argmin(axis=0))) == 2  # neither coder is the best for all signals
    best = BestOf(coders).encode(Y, D).toarray()
    expected = np.where(errors[0] <= errors[1], found[0], found[1])
    # Where both coders choose the same atoms, the errors differ by rounding, and either may be chosen.
    np.testing.assert_allclose(best, expected, atol=1e-12)


def test_first_coder_counts_where_both_fit_equally(data):
    Y, D = data
    same = BestOf([OMP(sparsity=3), OMP(sparsity=3)]).encode(Y, D)
    np.testing.assert_array_equal(same.toarray(), OMP(sparsity=3).encode(Y, D).toarray())


def test_properties_are_those_that_all_coders_have():
    both = BestOf([OMP(sparsity=2), Lasso(alpha=0.1, sparsity=2)])
    assert both.optimal_on_support
    assert not both.scale_equivariant  # an absolute penalty is not
    assert not BestOf([OMP(sparsity=2), Lasso(alpha=0.1)]).optimal_on_support
    assert BestOf([OMP(sparsity=2), FixedSupport(np.eye(4))]).numbers_atoms


@pytest.mark.parametrize("coders", [[], [3], [OMP]])
def test_what_is_no_coder_is_refused(coders):
    with pytest.raises((ValueError, TypeError), match="coder"):
        BestOf(coders)
