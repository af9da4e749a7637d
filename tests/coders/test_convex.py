"""The lasso and basis pursuit: optimality conditions, scikit-learn, a linear programme, the reference."""

import numpy as np
import pytest
from coding_problems import problem, residuals
from scipy.optimize import linprog
from scipy.sparse import csc_array, random_array
from sklearn.decomposition import sparse_encode

from manifold_dl.coders import BasisPursuit, Lasso
from manifold_dl.kernels import coding
from manifold_dl.kernels.coding import LassoSettings, StartingCodes, reference


def lasso_objective(Y, D, X, alpha):
    return 0.5 * residuals(Y, D, X) + alpha * abs(X).sum(axis=0)


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.01])
@pytest.mark.parametrize(("m", "d"), [(16, 50), (20, 12)])
def test_lasso_satisfies_its_optimality_conditions(alpha, m, d):
    D, _, Y = problem(m, d, 200, 4, noise=0.1)
    D = D * np.random.default_rng(1).uniform(0.3, 3, d)  # atoms of any norm
    X = Lasso(alpha=alpha).encode(Y, D)
    h = D.T @ (Y - D @ X.toarray())
    assert np.abs(h).max() <= alpha * (1 + 1e-6)  # the default tol
    # On the support the condition is solved for, up to rounding magnified by the condition of the atoms.
    active = X.toarray() != 0
    np.testing.assert_allclose(h[active], alpha * np.sign(X.toarray()[active]), rtol=1e-7)


def test_lasso_reaches_the_objective_of_scikit_learn():
    D, _, Y = problem(16, 40, 100, 4, noise=0.1)
    for alpha in (0.3, 0.05):
        ours = lasso_objective(Y, D, Lasso(alpha=alpha).encode(Y, D), alpha)
        theirs = sparse_encode(Y.T, D.T, algorithm="lasso_cd", alpha=alpha, max_iter=10_000).T
        assert (ours <= lasso_objective(Y, D, csc_array(theirs), alpha) + 1e-12).all()  # rounding


@pytest.mark.parametrize("refit", [0, 3])
@pytest.mark.parametrize(("path", "relative"), [([0.2], False), ([0.5, 0.1], True)])
def test_compiled_lasso_equals_the_reference(refit, path, relative):
    D, _, Y = problem(10, 25, 20, 3, noise=0.1)
    atoms, rows = np.ascontiguousarray(D.T), np.ascontiguousarray(Y.T)
    start = StartingCodes(np.zeros(21, np.int64), np.zeros(0, np.int32), np.zeros(0))
    arguments = rows, LassoSettings(np.array(path), relative, 1e-13, refit), start
    counts, indices, values = coding.lasso(coding.prepare(atoms), *arguments)
    expected = reference.lasso(reference.prepare(atoms), *arguments)
    np.testing.assert_array_equal(counts, expected[0])
    for j, k in enumerate(counts):
        np.testing.assert_array_equal(indices[j, :k], expected[1][j, :k])
        np.testing.assert_allclose(values[j, :k], expected[2][j, :k], atol=1e-10)  # rounding


def test_lasso_solution_does_not_depend_on_the_starting_codes():
    D, _, Y = problem(16, 40, 300, 4, noise=0.1)
    cold = Lasso(alpha=0.1).encode(Y, D)
    rng = np.random.default_rng(0)
    for start in (
        cold,
        Lasso(alpha=0.5).encode(Y, D),
        random_array((40, 300), density=0.5, random_state=rng),
    ):
        warm = Lasso(alpha=0.1).encode(Y, D, codes=start)
        np.testing.assert_allclose(warm.toarray(), cold.toarray(), atol=1e-9)  # both are exact up to rounding


def test_lasso_with_dependent_atoms_still_satisfies_its_optimality_conditions():
    # Rank 3 in ten dimensions, every atom twice with both signs: an atom can only enter in exchange.
    rng = np.random.default_rng(0)
    D = np.linalg.qr(rng.standard_normal((10, 3)))[0] @ rng.standard_normal((3, 12))
    D = np.hstack([D / np.linalg.norm(D, axis=0), -D / np.linalg.norm(D, axis=0)])
    Y = rng.standard_normal((10, 200))
    for alpha in (0.3, 1e-3):
        X = Lasso(alpha=alpha).encode(Y, D)
        assert np.abs(D.T @ (Y - D @ X.toarray())).max() <= alpha * (1 + 1e-6)  # the default tol
        assert np.diff(X.indptr).max() <= 3


def test_lasso_codes_stay_bounded_with_atoms_that_differ_by_rounding():
    # At a penalty near rounding, twins of an active atom seem to violate the conditions, and must not enter.
    rng = np.random.default_rng(0)
    for seed in range(50):
        D, _, Y = problem(13, 4, 20, 1, seed=seed)
        D[:, 2] = -D[:, 0] + 1e-9 * rng.standard_normal(13)
        X = Lasso(alpha=1e-9, relative=True).encode(Y, D)
        assert np.abs(X.data).max() < 10 * np.abs(Y).max()


def test_lasso_with_sparsity_solves_least_squares_on_its_largest_entries():
    D, _, Y = problem(16, 40, 100, 4, noise=0.1)
    full, few = Lasso(alpha=0.05).encode(Y, D), Lasso(alpha=0.05, sparsity=2).encode(Y, D)
    assert np.diff(few.indptr).max() == 2
    for j in range(100):
        support = few[:, [j]].indices
        largest = np.argsort(-np.abs(full[:, [j]].toarray().ravel()))[:2]
        np.testing.assert_array_equal(support, np.sort(largest))
        expected = np.linalg.lstsq(D[:, support], Y[:, j])[0]
        np.testing.assert_allclose(few[:, [j]].data, expected, rtol=1e-9)  # two atoms at a random angle


def test_codes_of_a_relative_penalty_scale_with_the_signal():
    D, _, Y = problem(16, 40, 100, 4, noise=0.1)
    one, many = (Lasso(alpha=0.1, relative=True).encode(c * Y, D) for c in (1.0, 2.0**40))
    np.testing.assert_array_equal(one.data * 2.0**40, many.data)  # a power of two changes no digit
    assert Lasso(alpha=1.0, relative=True).encode(Y, D).nnz == 0


def test_basis_pursuit_solves_its_linear_programme():
    D, _, Y = problem(8, 20, 30, 3, noise=0.1)
    X = BasisPursuit().encode(Y, D)
    for j in range(30):
        best = linprog(np.ones(40), A_eq=np.hstack([D, -D]), b_eq=Y[:, j]).fun
        assert abs(X[:, [j]]).sum() == pytest.approx(best, rel=1e-8)  # HiGHS' own tolerance is 1e-7
    np.testing.assert_allclose(D @ X.toarray(), Y, atol=1e-9)  # eight random atoms: a condition of 1e3 or so


def test_basis_pursuit_finds_sparse_signals_exactly():
    D, X, Y = problem(24, 40, 200, 3)
    np.testing.assert_allclose(BasisPursuit().encode(Y, D).toarray(), X, atol=1e-10)  # rounding
