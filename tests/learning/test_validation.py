"""Validation signals: the loss of other signals after every iteration."""

import numpy as np
import pytest

from manifold_dl import OMP, MiniBatches, datasets, learn_dictionary

_, _, Y = datasets.synthetic(8, 12, 5000, sparsity=2, snr_db=20, rng=0)


CODER, BATCHES = OMP(sparsity=2), MiniBatches(size=1024)


def learn(signals=Y, **settings):
    settings = {"coder": CODER, "max_iter": 4, "rng": 0, "tol": 0.0, "minibatches": BATCHES, **settings}
    return learn_dictionary(signals, 12, **settings)


def test_validation_is_the_loss_of_other_signals_after_every_iteration():
    seen, other = [], datasets.synthetic(8, 12, 300, sparsity=2, rng=5).signals
    result = learn(validation=other, callbacks=[seen.append])
    expected = [np.sum((other - s.dictionary @ CODER.encode(other, s.dictionary)) ** 2) / 300 for s in seen]
    np.testing.assert_allclose(result.history.validation, expected, rtol=1e-12)
    np.testing.assert_array_equal(learn().dictionary, result.dictionary)
    assert np.isnan(learn().history.validation).all()


def test_validation_signals_of_another_length_are_refused():
    with pytest.raises(ValueError, match="validation has signals of length 7, but the signals have length 8"):
        learn(validation=Y[:7])
