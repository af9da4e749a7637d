"""Codes of the estimator as a sparse array: the same numbers, in far less memory."""

import numpy as np
import scipy.sparse
from sklearn.base import clone

from manifold_dl import OMP, ManifoldDictionaryLearning


def fitted(**parameters):
    rows = np.random.default_rng(0).standard_normal((60, 8))
    model = ManifoldDictionaryLearning(20, coder=OMP(sparsity=2), max_iter=2, random_state=0, **parameters)
    return model, rows, model.fit_transform(rows)


def test_sparse_codes_are_the_dense_ones():
    model, rows, codes = fitted(sparse_output=True)
    _, _, dense = fitted()
    assert isinstance(codes, scipy.sparse.csr_array) and codes.shape == (60, 20)
    np.testing.assert_array_equal(codes.toarray(), dense)
    again = model.transform(rows)
    assert isinstance(again, scipy.sparse.csr_array) and again.nnz == 120 and again.has_sorted_indices
    dense_again = model.set_params(sparse_output=False).transform(rows)
    np.testing.assert_array_equal(again.toarray(), dense_again)
    np.testing.assert_allclose(
        model.inverse_transform(again), model.inverse_transform(dense_again), rtol=1e-13
    )


def test_the_parameter_is_cloned_and_stored(tmp_path):
    from manifold_dl import load, save

    model, rows, _ = fitted(sparse_output=True)
    assert clone(model).sparse_output
    save(model, tmp_path / "model.npz")
    assert scipy.sparse.issparse(load(tmp_path / "model.npz").transform(rows))
