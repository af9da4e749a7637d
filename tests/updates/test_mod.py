"""MOD: least squares for the whole dictionary, then unit norms."""

import numpy as np
import pytest
import scipy.sparse
from update_cases import (
    D_,
    M,
    N,
    S,
    assert_same_pattern,
    assert_unit,
    objective,
    problem_data,
)

from manifold_dl.datasets import synthetic
from manifold_dl.updates import MOD


class TestMOD:
    def test_is_least_squares_then_unit_norms(self):
        Y, D, X = problem_data()
        D_new, X_new = MOD()(Y, D, X)
        expected = np.linalg.lstsq(X.toarray().T, Y.T)[0].T
        # Normal equations square the condition of X, here about 10: two digits of sixteen.
        np.testing.assert_allclose(D_new, expected / np.linalg.norm(expected, axis=0), atol=1e-13)
        np.testing.assert_allclose(D_new @ X_new, expected @ X, atol=1e-13 * np.abs(Y).max())
        assert_same_pattern(X, X_new)
        assert_unit(D_new)

    def test_unused_atoms_stay(self):
        Y, D, X = problem_data()
        X = scipy.sparse.csc_array(scipy.sparse.diags_array((np.arange(D_) != 3).astype(float)) @ X)
        X.eliminate_zeros()
        D_new, X_new = MOD()(Y, D, X)
        np.testing.assert_array_equal(D_new[:, 3], D[:, 3])
        projection = Y @ np.linalg.pinv(X.toarray()) @ X.toarray()
        np.testing.assert_allclose(D_new @ X_new, projection, atol=1e-12)  # see below

    def test_of_atoms_with_equal_codes_only_the_sum_changes(self):
        # Only the sum of two atoms with the same codes is determined; their difference stays as it was.
        Y, D, X = problem_data()
        X = X.toarray()
        X[1] = X[0]
        D_new, X_new = MOD()(Y, D, scipy.sparse.csc_array(X))
        projection = Y @ np.linalg.pinv(X) @ X
        # The squared condition of X without its null space, on entries of order one.
        np.testing.assert_allclose(D_new @ X_new, projection, atol=1e-12)
        norms = [X_new.toarray()[i].sum() / X[i].sum() for i in (0, 1)]
        difference = D_new[:, 0] * norms[0] - D_new[:, 1] * norms[1]
        np.testing.assert_allclose(difference, D[:, 0] - D[:, 1], atol=1e-12)

    @pytest.mark.parametrize("ridge", [1e-3, 1.0])
    def test_ridge_pulls_towards_the_old_dictionary(self, ridge):
        Y, D, X = problem_data()
        weight = np.sqrt(ridge * scipy.sparse.linalg.norm(X) ** 2 / D_)
        # min ‖Y − D X‖² + weight²‖D − D_old‖² as one least-squares problem.
        left = np.hstack([X.toarray(), weight * np.eye(D_)])
        right = np.hstack([Y, weight * D])
        expected = np.linalg.lstsq(left.T, right.T)[0].T
        D_new, X_new = MOD(ridge=ridge)(Y, D, X)
        np.testing.assert_allclose(D_new @ X_new, expected @ X, atol=1e-13 * np.abs(Y).max())
        assert objective(Y, D_new, X_new) < objective(Y, D, X)

    def test_a_huge_ridge_changes_nothing(self):
        Y, D, X = problem_data()
        # The change is about 1/ridge.
        np.testing.assert_allclose(MOD(ridge=1e12)(Y, D, X)[0], D, atol=1e-11)

    def test_an_atom_that_should_be_zero_keeps_its_direction_and_loses_its_codes(self):
        D, X, Y = synthetic(M, D_, N, S, rng=0)
        Y = Y - np.outer(D[:, 4], X.toarray()[4])  # all that atom 4 contributed
        D_new, X_new = MOD()(Y, D, X)
        assert_unit(D_new)
        assert objective(Y, D_new, X_new) <= 1e-24 * np.linalg.norm(Y) ** 2  # rounding, squared
        # The same for all atoms at once, where nothing but rounding is left.
        D_new, X_new = MOD()(0 * Y, D, X)
        np.testing.assert_allclose(D_new, D, rtol=4e-16)
        assert not X_new.data.any()

    @pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf])
    def test_invalid_ridges_are_refused(self, ridge):
        with pytest.raises(ValueError, match="the ridge must be finite and not negative"):
            MOD(ridge=ridge)


def test_mod_without_a_single_user_changes_nothing():
    Y, D, X = problem_data()
    D_new, X_new = MOD()(Y, D, 0 * X.toarray())
    np.testing.assert_array_equal(D_new, D)
    assert X_new.nnz == 0


# Many atoms: conjugate gradients instead of X Xᵀ


def large_problem(n, seed=0):
    """180 atoms, of which codes touch few pairs; the first three have no users."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((9, 180))
    D /= np.linalg.norm(D, axis=0)
    mask = np.zeros((180, n), bool)
    for j in range(n):
        mask[3 + rng.choice(177, 4, replace=False), j] = True
    return rng.standard_normal((9, n)), D, mask * rng.standard_normal((180, n))


@pytest.mark.parametrize("n", [120, 2000])  # fewer signals than atoms, where the solution is not unique
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_many_atoms_are_updated_by_least_squares_to_the_given_tolerance(n, ridge):
    Y, D, X = large_problem(n)
    used = X.any(axis=1)
    gram = (X @ X.T)[np.ix_(used, used)]
    rho = ridge * np.trace(gram) / used.sum()
    # The least-squares solution nearest to D, by a pseudo-inverse of X itself where there is no ridge.
    residual = Y - D @ X
    if ridge == 0:
        expected = D[:, used] + residual @ np.linalg.pinv(X[used])
    else:
        expected = D[:, used] + residual @ X[used].T @ np.linalg.inv(gram + rho * np.eye(len(gram)))
    found, codes = MOD(ridge=ridge, tol=1e-20)(Y, D, X)
    norms = np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(found[:, used], expected / norms, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found[:, ~used], D[:, ~used])
    np.testing.assert_allclose(codes.toarray()[used], X[used] * norms[:, None], rtol=0, atol=1e-5)


def test_default_tolerance_leaves_little_of_the_decrease():
    Y, D, X = large_problem(2000)
    found, codes = MOD()(Y, D, X)
    least = np.sum((Y - (D + (Y - D @ X) @ np.linalg.pinv(X)) @ X) ** 2)
    before, after = np.sum((Y - D @ X) ** 2), np.sum((Y - found @ codes) ** 2)
    # The iterations lower it geometrically here, and the last one did by less than 1e-3 of the decrease.
    assert after - least < 1e-3 * (before - least)


@pytest.mark.parametrize("unit", [1.0, 1e-15, 1e15])  # in single precision squares of these are no numbers
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_many_atoms_in_single_precision_are_those_of_double_precision(ridge, unit):
    Y, D, X = large_problem(2000)
    expected, expected_codes = MOD(ridge=ridge)(Y, D, X)
    found, codes = MOD(ridge=ridge)(*(array.astype(np.float32) for array in (unit * Y, D, unit * X)))
    assert found.dtype == codes.dtype == np.float32
    # A hundred roundings of entries of order one.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(codes.toarray() / unit, expected_codes.toarray(), rtol=0, atol=1e-4)
