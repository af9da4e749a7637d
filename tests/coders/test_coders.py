"""Sparse coders: against scikit-learn, against the reference kernels, and against what they promise."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csc_array, random_array
from sklearn.decomposition import sparse_encode
from sklearn.linear_model import orthogonal_mp

from manifold_dl.coders import (
    FOCUSS,
    IHT,
    OMP,
    BasisPursuit,
    FixedSupport,
    ForwardSelection,
    GradientPursuit,
    Lasso,
    MatchingPursuit,
    SubspacePursuit,
)
from manifold_dl.diagnostics import check_coder
from manifold_dl.engines.protocol import SMALLEST_BLOCK
from manifold_dl.kernels import coding
from manifold_dl.kernels.coding import (
    NO_TOLERANCE,
    FocussSettings,
    LassoSettings,
    PursuitSettings,
    StartingCodes,
    reference,
)


def problem(m, d, n, sparsity, noise=0.0, seed=0, dtype=np.float64):
    """Unit-norm Gaussian atoms, exactly `sparsity` Gaussian coefficients per signal, white noise."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((m, d))
    D /= np.linalg.norm(D, axis=0)
    X = np.zeros((d, n))
    for x in X.T:
        x[rng.permutation(d)[:sparsity]] = rng.standard_normal(sparsity)
    Y = D @ X + noise * rng.standard_normal((m, n))
    return D.astype(dtype), X.astype(dtype), Y.astype(dtype)


def residuals(Y, D, X):
    return np.sum((Y - D @ X.toarray()) ** 2, axis=0)


# --- The contract -----------------------------------------------------------------------------------------

# The oracle's support belongs to the 24 atoms and 40 signals check_coder uses.
SUPPORT = np.argsort(np.random.default_rng(0).random((40, 24)), axis=1)[:, :3]

CODERS = [
    OMP(sparsity=3),
    OMP(tol=0.2),
    OMP(sparsity=3, tol=0.2),
    ForwardSelection(sparsity=3),
    ForwardSelection(tol=0.2),
    Lasso(alpha=0.1),
    Lasso(alpha=0.1, relative=True),
    Lasso(alpha=0.1, relative=True, sparsity=3),
    BasisPursuit(),
    SubspacePursuit(sparsity=3),
    MatchingPursuit(sparsity=3),
    MatchingPursuit(tol=0.2),
    GradientPursuit(sparsity=3),
    IHT(sparsity=3),
    FOCUSS(),
    FOCUSS(p=0.8, sparsity=3),
    FixedSupport(SUPPORT),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("coder", CODERS, ids=lambda coder: f"{type(coder).__name__}")
def test_every_coder_keeps_the_contract(coder, dtype):
    check_coder(coder, dtype=dtype)


@pytest.mark.parametrize("coder", CODERS, ids=lambda coder: f"{type(coder).__name__}")
def test_every_coder_keeps_the_contract_without_a_compiler(coder, monkeypatch):
    for name in coding.KERNELS:
        monkeypatch.setattr(coding, name, getattr(reference, name))
    check_coder(coder)


# --- OMP and forward selection ----------------------------------------------------------------------------


def test_omp_is_the_orthogonal_matching_pursuit_of_scikit_learn():
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(4, 24))
        d = int(rng.integers(m // 2 + 1, 3 * m))
        S = int(rng.integers(1, min(m, d) // 2 + 1))
        D, _, Y = problem(m, d, 3, S, noise=0.3, seed=seed)
        ours = OMP(sparsity=S).encode(Y, D, threads=1).toarray()
        theirs = orthogonal_mp(D, Y, n_nonzero_coefs=S).reshape(d, 3)
        assert ((ours != 0) == (theirs != 0)).all()
        # Both solve the normal equations of at most 12 atoms; conditions up to 1e4 cost four of sixteen
        # digits.
        np.testing.assert_allclose(ours, theirs, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("kernel", ["omp", "forward_selection"])
@pytest.mark.parametrize("tol", [NO_TOLERANCE, 0.5])
@pytest.mark.parametrize(("m", "d"), [(12, 40), (20, 9), (7, 500)])
def test_compiled_pursuits_equal_the_reference(kernel, tol, m, d):
    D, _, Y = problem(m, d, 50, 4, noise=0.2)
    atoms, rows = np.ascontiguousarray(D.T), np.ascontiguousarray(Y.T)
    counts, indices, values = getattr(coding, kernel)(coding.prepare(atoms), rows, PursuitSettings(5, tol))
    expected = getattr(reference, kernel)(reference.prepare(atoms), rows, PursuitSettings(5, tol))
    np.testing.assert_array_equal(counts, expected[0])
    for j, k in enumerate(counts):
        np.testing.assert_array_equal(indices[j, :k], expected[1][j, :k])
        # Normal equations against an orthogonal factorisation: the condition of five random atoms, squared.
        np.testing.assert_allclose(values[j, :k], expected[2][j, :k], rtol=1e-9, atol=1e-9)


def test_a_dictionary_too_large_for_one_product_is_multiplied_in_tiles():
    D, _, Y = problem(300, 700, 40, 6)
    prepared = coding.prepare(np.ascontiguousarray(D.T))
    assert len(prepared.tiles) > 1
    X = OMP(sparsity=6).encode(Y, D)
    assert residuals(Y, D, X).max() < 1e-20  # exactly sparse signals in general position: found exactly


@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
def test_the_squared_residual_meets_the_tolerance_and_no_atom_is_spare(coder):
    D, _, Y = problem(16, 48, 200, 5, noise=0.5)
    tol = 2.0
    X = coder(tol=tol).encode(Y, D)
    assert (residuals(Y, D, X) <= tol).all()
    fewer = coder(sparsity=16).encode(Y, D)
    for j in range(200):
        k = X[:, [j]].nnz
        if k:  # one atom less leaves more than tol
            before = coder(sparsity=k - 1).encode(Y[:, [j]], D) if k > 1 else 0 * fewer[:, [j]]
            assert residuals(Y[:, [j]], D, before)[0] > tol


@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
def test_a_tolerance_near_rounding_is_judged_by_the_true_residual(coder):
    # 1 − Σz² cannot resolve 1e-24 of the energy: a stop by that recursion alone would come too early or
    # never.
    D, _, Y = problem(32, 64, 300, 3)
    tol = 1e-24
    X = coder(tol=tol).encode(Y, D)
    assert (residuals(Y, D, X) <= tol).all()
    assert X.nnz < 6 * 300


@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
def test_both_stops_together(coder):
    D, _, Y = problem(16, 48, 100, 5, noise=0.5)
    X = coder(sparsity=3, tol=1.0).encode(Y, D)
    sizes = np.diff(X.indptr)
    assert sizes.max() == 3
    assert (residuals(Y, D, X)[sizes < 3] <= 1.0).all()


def test_forward_selection_leaves_no_larger_residual_with_two_atoms_than_omp():
    # The first choices agree, so the second, the best there is, cannot be worse than OMP's.
    D, _, Y = problem(16, 64, 500, 4, noise=0.1)
    best, plain = (residuals(Y, D, c(sparsity=2).encode(Y, D)) for c in (ForwardSelection, OMP))
    assert (best <= plain * (1 + 1e-12)).all()  # rounding of equal numbers
    assert best.sum() < plain.sum()


@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
def test_dependent_atoms_end_the_support(coder):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((8, 3)))[0]
    D = basis @ rng.standard_normal((3, 10))
    D = np.hstack([D / np.linalg.norm(D, axis=0)] * 2)  # rank 3, and every atom twice
    Y = rng.standard_normal((8, 50))
    X = coder(sparsity=8).encode(Y, D)
    assert np.diff(X.indptr).max() <= 3
    expected = Y - basis @ (basis.T @ Y)
    # Three atoms may be nearly dependent: half the digits remain.
    np.testing.assert_allclose(Y - D @ X.toarray(), expected, atol=1e-7)


def test_atoms_of_any_norm_change_the_codes_and_not_the_supports():
    D, _, Y = problem(12, 30, 100, 3, noise=0.1)
    norms = np.random.default_rng(1).uniform(0.1, 10, 30)
    X, scaled = OMP(sparsity=3).encode(Y, D), OMP(sparsity=3).encode(Y, D * norms)
    np.testing.assert_array_equal(X.indices, scaled.indices)
    np.testing.assert_allclose(
        X.data, scaled.data * norms[scaled.indices], rtol=1e-9
    )  # three atoms, random angles


@pytest.mark.parametrize("threads", [2, 3])
def test_the_codes_do_not_depend_on_threads_or_memory_layout(threads):
    D, _, Y = problem(16, 40, 3 * SMALLEST_BLOCK + 17, 3, noise=0.1)
    one = OMP(sparsity=3).encode(Y, D, threads=1)
    more = OMP(sparsity=3).encode(np.asfortranarray(Y), np.asfortranarray(D), threads=threads)
    for a, b in zip((one.indptr, one.indices, one.data), (more.indptr, more.indices, more.data), strict=True):
        np.testing.assert_array_equal(a, b)


# --- The lasso and basis pursuit --------------------------------------------------------------------------


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


def test_a_warm_start_changes_the_way_and_not_the_solution():
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


def test_lasso_survives_atoms_that_differ_by_rounding():
    # At a penalty near rounding, twins of an active atom seem to violate the conditions, and must not enter.
    rng = np.random.default_rng(0)
    for seed in range(50):
        D, _, Y = problem(13, 4, 20, 1, seed=seed)
        D[:, 2] = -D[:, 0] + 1e-9 * rng.standard_normal(13)
        X = Lasso(alpha=1e-9, relative=True).encode(Y, D)
        assert np.abs(X.data).max() < 10 * np.abs(Y).max()


def test_lasso_refits_its_largest_entries():
    D, _, Y = problem(16, 40, 100, 4, noise=0.1)
    full, few = Lasso(alpha=0.05).encode(Y, D), Lasso(alpha=0.05, sparsity=2).encode(Y, D)
    assert np.diff(few.indptr).max() == 2
    for j in range(100):
        support = few[:, [j]].indices
        largest = np.argsort(-np.abs(full[:, [j]].toarray().ravel()))[:2]
        np.testing.assert_array_equal(support, np.sort(largest))
        expected = np.linalg.lstsq(D[:, support], Y[:, j])[0]
        np.testing.assert_allclose(few[:, [j]].data, expected, rtol=1e-9)  # two atoms at a random angle


def test_a_relative_penalty_scales_with_the_signal():
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


# --- The other pursuits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        ("matching_pursuit", PursuitSettings(4, NO_TOLERANCE, 100)),
        ("matching_pursuit", PursuitSettings(4, 0.5, 100)),
        ("gradient_pursuit", PursuitSettings(4, max_iter=20)),
        ("subspace_pursuit", PursuitSettings(4, max_iter=20)),
        ("iht", PursuitSettings(4, max_iter=50)),
        ("focuss", FocussSettings(6, 0.5, 1e-6, 20, 1e-4)),
    ],
)
def test_compiled_pursuits_that_revise_equal_the_reference(kernel, settings):
    D, _, Y = problem(12, 30, 60, 3, noise=0.05)
    atoms, rows = np.ascontiguousarray(D.T), np.ascontiguousarray(Y.T)
    counts, indices, values = getattr(coding, kernel)(coding.prepare(atoms), rows, settings)
    expected = getattr(reference, kernel)(reference.prepare(atoms), rows, settings)
    np.testing.assert_array_equal(counts, expected[0])
    for j, k in enumerate(counts):
        np.testing.assert_array_equal(indices[j, :k], expected[1][j, :k])
        # Both iterate the same map; rounding differs in every step and contracts with the iteration.
        np.testing.assert_allclose(values[j, :k], expected[2][j, :k], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "coder", [OMP(3), ForwardSelection(3), SubspacePursuit(3), IHT(3), FOCUSS(), BasisPursuit()]
)
def test_signals_that_are_very_sparse_are_coded_exactly(coder):
    D, X, Y = problem(40, 60, 100, 3)
    found = coder.encode(Y, D).toarray()
    exact = np.abs(found - X).max(axis=0) < 1e-8  # three well separated atoms: rounding only
    assert exact.mean() > 0.95  # three of 60 atoms in 40 dimensions: a few draws are too coherent


def test_matching_pursuit_approaches_the_least_squares_fit():
    D, _, Y = problem(12, 6, 50, 3, noise=0.1)
    X = MatchingPursuit(tol=0.0, max_iter=5000).encode(Y, D)
    np.testing.assert_allclose(X.toarray(), np.linalg.lstsq(D, Y)[0], atol=1e-8)  # geometric convergence


@pytest.mark.parametrize("make", [lambda X: X != 0, lambda X: csc_array(X), lambda X: csc_array(X != 0)])
def test_the_oracle_knows_the_support(make):
    D, X, Y = problem(12, 30, 50, 4)
    np.testing.assert_allclose(
        FixedSupport(make(X)).encode(Y, D).toarray(), X, atol=1e-9
    )  # four random atoms


def test_the_oracle_gives_dependent_atoms_the_minimum_norm_codes():
    D, _, Y = problem(6, 4, 5, 2)
    D[:, 1] = D[:, 0]
    support = np.tile([0, 1, 3], (5, 1))
    X = FixedSupport(support).encode(Y, D).toarray()
    expected = np.linalg.pinv(D[:, [0, 1, 3]]) @ Y
    np.testing.assert_allclose(X[[0, 1, 3]], expected, atol=1e-9)  # rounding


# --- The door ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: OMP(), "needs a reason to stop"),
        (lambda: OMP(sparsity=0), "room for at least one atom"),
        (lambda: OMP(tol=-1.0), "must be finite and not negative"),
        (lambda: ForwardSelection(tol=np.nan), "must be finite and not negative"),
        (lambda: Lasso(alpha=0.0), "its limit 0 is BasisPursuit"),
        (lambda: Lasso(alpha=1.0, tol=0.0), "a fraction between 0 and 1"),
        (lambda: OMP(sparsity=9).encode(np.ones((8, 2)), np.eye(8)), "exceeds the signal dimension m=8"),
        (
            lambda: OMP(sparsity=4).encode(np.ones((8, 2)), np.eye(8)[:, :3]),
            "exceeds the number of atoms d=3",
        ),
        (lambda: OMP(sparsity=1).encode(np.ones((8, 2)), np.eye(7)), "atoms of length 7"),
        (lambda: OMP(sparsity=1).encode(np.full((8, 2), np.nan), np.eye(8)), "clean the data first"),
        (lambda: OMP(sparsity=1).encode(np.ones(8), np.eye(8)), "matrix with two axes"),
        (lambda: OMP(sparsity=1).encode(np.ones((8, 2)), np.zeros((8, 3))), "column 0 is zero"),
    ],
)
def test_mistakes_are_named_in_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_a_sparsity_that_is_no_whole_number_is_refused():
    with pytest.raises(TypeError, match="whole number"):
        OMP(sparsity=2.5)
