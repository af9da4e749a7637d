"""Inner products of all pairs of rows: those of double precision, with the same bits from any memory."""

import numpy as np
import pytest

from manifold_dl.kernels.products import gram_matrix, inner_products


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d, m", [(24, 12), (32, 16), (300, 64), (40, 3000)])
def test_the_gram_matrix_is_symmetric_and_that_of_double_precision(d, m, dtype):
    rows = np.random.default_rng(d).standard_normal((d, m)).astype(dtype)
    gram = np.empty((d, d), dtype)
    gram_matrix(rows, gram)
    np.testing.assert_array_equal(gram, gram.T)
    exact = rows.astype(float) @ rows.astype(float).T
    # Of m products, each with a relative rounding of eps.
    np.testing.assert_allclose(gram, exact, atol=m * np.finfo(dtype).eps * exact.max())


@pytest.mark.parametrize("d, m", [(24, 12), (32, 16), (40, 27)])
def test_rows_that_are_not_aligned_have_the_same_bits(d, m):
    rows = np.random.default_rng(d).standard_normal((d, m)).astype(np.float32)
    memory = np.empty(rows.nbytes + 1, np.uint8)
    shifted = memory[1:].view(np.float32).reshape(d, m)  # as an array that came from another process
    shifted[:] = rows
    grams = np.empty((2, d, d), np.float32)
    gram_matrix(rows, grams[0])
    gram_matrix(shifted, grams[1])
    np.testing.assert_array_equal(*grams)


@pytest.mark.parametrize("d, k, m", [(5, 7, 3), (600, 20, 64), (40, 300, 2000)])
def test_inner_products_in_pieces_are_those_of_all_rows(d, k, m):
    rng = np.random.default_rng(0)
    atoms, others, products = rng.standard_normal((d, m)), rng.standard_normal((k, m)), np.empty((d, k))
    inner_products(atoms, others, products)
    np.testing.assert_allclose(products, atoms @ others.T, atol=m * 1e-15 * m)  # m products of a few units
