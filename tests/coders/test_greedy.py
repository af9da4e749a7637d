"""OMP and forward selection: against scikit-learn, against the reference kernels, and by their properties."""

import numpy as np
import pytest
from coding_problems import problem, residuals
from sklearn.linear_model import orthogonal_mp

from manifold_dl.coders import OMP, ForwardSelection
from manifold_dl.engines.protocol import SMALLEST_BLOCK
from manifold_dl.kernels import coding
from manifold_dl.kernels.coding import NO_TOLERANCE, PursuitSettings, reference


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


def test_large_dictionary_is_multiplied_in_tiles_with_the_same_result():
    D, _, Y = problem(300, 700, 40, 6)
    prepared = coding.prepare(np.ascontiguousarray(D.T))
    assert len(prepared.tiles) > 1
    X = OMP(sparsity=6).encode(Y, D)
    assert residuals(Y, D, X).max() < 1e-20  # exactly sparse signals in general position: found exactly


@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
def test_squared_residual_meets_the_tolerance_and_no_atom_is_superfluous(coder):
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
def test_tolerance_near_rounding_is_compared_with_the_residual_itself(coder):
    # 1 − Σz² cannot resolve 1e-24 of the energy: a stop by that recursion alone would come too early or
    # never.
    D, _, Y = problem(32, 64, 300, 3)
    tol = 1e-24
    X = coder(tol=tol).encode(Y, D)
    assert (residuals(Y, D, X) <= tol).all()
    assert X.nnz < 6 * 300


@pytest.mark.parametrize("coder", [OMP, ForwardSelection])
def test_pursuit_stops_at_sparsity_or_tolerance_whichever_is_first(coder):
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
def test_support_has_no_more_atoms_than_the_rank_of_the_dictionary(coder):
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
def test_codes_do_not_depend_on_threads_or_memory_layout(threads):
    D, _, Y = problem(16, 40, 3 * SMALLEST_BLOCK + 17, 3, noise=0.1)
    one = OMP(sparsity=3).encode(Y, D, threads=1)
    more = OMP(sparsity=3).encode(np.asfortranarray(Y), np.asfortranarray(D), threads=threads)
    for a, b in zip((one.indptr, one.indices, one.data), (more.indptr, more.indices, more.data), strict=True):
        np.testing.assert_array_equal(a, b)
