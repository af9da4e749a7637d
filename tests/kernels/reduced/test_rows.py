"""Rows of signals and of atoms: products with codes, inner products, energies, the preconditioner."""

import numpy as np
import pytest
from kernel_cases import TOLERANCE, Case, K, assert_close, both_dtypes, both_kernels, compiled, reference

from manifold_dl.kernels.reduced import reference_products


@both_dtypes
def test_compiled_and_reference_products_with_codes_agree(dtype):
    case = Case(dtype)
    found, expected = case.signals.copy(), case.signals.copy()
    compiled.add_products(found, case.indptr, case.indices, case.codes, case.atoms)
    reference.add_products(expected, case.indptr, case.indices, case.codes, case.atoms)
    assert_close(found, expected, dtype)


@both_dtypes
@both_kernels
def test_the_residual_is_that_of_dense_codes_and_leaves_the_signals_alone(kernels, dtype):
    case = Case(dtype)
    given = case.signals.copy()
    dense = np.zeros((len(case.signals), K))
    for j in range(len(dense)):
        own = slice(case.indptr[j], case.indptr[j + 1])
        dense[j, case.indices[own]] = case.codes[own]
    found = kernels.residual(given, case.indptr, case.indices, case.codes, case.atoms)
    assert found.dtype == dtype
    assert_close(found, case.signals - dense @ case.atoms, dtype)
    np.testing.assert_array_equal(given, case.signals)


@both_kernels
def test_the_other_atoms_are_subtracted_from_the_chosen_signals(kernels):
    case = Case()
    moves = np.isin(np.arange(K), [1, 5])
    chosen = np.array([2, 3, 17, 40], dtype=np.int32)
    rows = case.signals[chosen]
    kernels.subtract_other_atoms(rows, chosen, case.indptr, case.indices, case.codes, moves, case.atoms)
    for row, j in zip(rows, chosen, strict=True):
        own = slice(case.indptr[j], case.indptr[j + 1])
        others = ~moves[case.indices[own]]
        products = case.codes[own][others] @ case.atoms[case.indices[own][others]]
        np.testing.assert_allclose(row, case.signals[j] - products, atol=1e-14)


@both_dtypes
def test_compiled_and_reference_inner_products_and_energies_agree(dtype):
    case = Case(dtype)
    products = compiled.gram(case.atoms, case.direction)
    assert_close(products, reference.gram(case.atoms, case.direction), np.float64)
    np.testing.assert_allclose(products, case.atoms @ case.direction.T, rtol=0, atol=10 * TOLERANCE[dtype])
    energies = compiled.code_energies(case.indices, case.codes, K)
    assert_close(energies, reference.code_energies(case.indices, case.codes, K), np.float64)
    assert energies[2] == pytest.approx(np.sum(case.codes[case.indices == 2].astype(float) ** 2), rel=1e-12)


@pytest.mark.parametrize("k", [3, 200])
def test_large_gram_matrices_are_made_a_few_rows_at_a_time(k):
    # 200 rows of 64 are more than BLAS gets at once: the pieces are those of the whole.
    rng = np.random.default_rng(0)
    atoms, others = rng.standard_normal((2, k, 64))
    np.testing.assert_allclose(compiled.gram(atoms, others), atoms @ others.T, rtol=0, atol=1e-12)


@both_kernels
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.longdouble])
def test_the_preconditioner_divides_rows_by_their_relative_energies(kernels, dtype):
    rows = np.arange(12.0).reshape(4, 3).astype(dtype)
    energy = np.array([2.0, 4.0, 10.0, 0.0])
    found = kernels.precondition(rows, energy)
    assert found.dtype == dtype
    # The mean is 4, and the last atom, which no signal uses, counts as used a thousandth as much.
    np.testing.assert_allclose(found, rows * dtype([[2], [1], [0.4], [1000]]), rtol=1e-6)
    found = kernels.precondition(rows, np.zeros(4))
    np.testing.assert_array_equal(found, rows)
    assert found is not rows


@both_kernels
def test_the_preconditioner_refuses_another_number_of_rows(kernels):
    with pytest.raises(ValueError, match="not as many rows as energies"):
        kernels.precondition(np.ones((4, 3)), np.ones(3))


@both_dtypes
@pytest.mark.parametrize("kernels", [compiled, reference_products])
def test_products_with_the_gram_matrix_of_codes_are_those_of_dense_codes(kernels, dtype):
    case = Case(dtype)
    dense = np.zeros((len(case.signals), K))
    for j in range(len(dense)):
        own = slice(case.indptr[j], case.indptr[j + 1])
        dense[j, case.indices[own]] = case.codes[own]
    rows = np.random.default_rng(0).standard_normal((3, K)).astype(dtype).T  # not contiguous
    found = kernels.times_code_products(case.indptr, case.indices, case.codes, rows)
    assert found.dtype == dtype
    assert_close(found, dense.T @ (dense @ rows), dtype)
