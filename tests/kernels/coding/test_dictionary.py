"""Products of signals with all atoms: right for any shape, and the same whatever signals are beside one."""

import numpy as np
import pytest

from manifold_dl.coders import OMP
from manifold_dl.kernels.coding import prepare


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("m", "d"), [(1, 1), (3, 5), (6, 33), (64, 256), (7, 1100)])
def test_gram_matrix_is_that_of_numpy(m, d, dtype):
    atoms = np.random.default_rng(0).standard_normal((d, m)).astype(dtype)
    gram = prepare(atoms).gram
    # Sums of m products, in another order than NumPy's.
    np.testing.assert_allclose(gram[:d, :d], atoms @ atoms.T, rtol=0, atol=16 * m * np.finfo(dtype).eps)
    np.testing.assert_array_equal(gram, gram.T)
    assert not gram[d:].any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("m", [9, 16])
def test_codes_of_a_signal_do_not_depend_on_those_beside_it(m, dtype):
    rng = np.random.default_rng(1)
    D, Y = rng.standard_normal((m, 40)).astype(dtype), rng.standard_normal((m, 35)).astype(dtype)
    D /= np.linalg.norm(D, axis=0)
    together = OMP(sparsity=4).encode(Y, D).toarray()
    for j in (0, 15, 16, 34):
        np.testing.assert_array_equal(OMP(sparsity=4).encode(Y[:, [j]], D).toarray()[:, 0], together[:, j])
    np.testing.assert_array_equal(OMP(sparsity=4).encode(Y[:, 1:], D).toarray(), together[:, 1:])
