"""The estimator's `partial_fit`: learning from a stream of batches."""

import numpy as np
import pytest
from estimator_models import ROWS, model

from manifold_dl import (
    KSVD,
    MOD,
    OMP,
    Lasso,
    ManifoldDictionaryLearning,
    MiniBatches,
    SimCO,
    datasets,
    learn_dictionary,
    metrics,
    schedules,
)

# Mini-batches


def stream(n=9000, size=100, seed=0):
    D, _, signals = datasets.synthetic(16, 32, n, sparsity=4, snr_db=30, rng=seed)
    return D, np.split(np.ascontiguousarray(signals.T), n // size)


def test_batches_recover_the_dictionary():
    """Streamed signals, each seen once; `fit` needs 50 passes over 1500 of them for 0.9."""
    D, batches = stream()
    estimator = ManifoldDictionaryLearning(32, coder=OMP(sparsity=4), random_state=0)
    for batch in batches:
        estimator.partial_fit(batch)
    assert metrics.recovery(estimator.components_.T, D) >= 0.75
    assert estimator.n_iter_ == 90 and estimator.n_samples_seen_ == 9000
    history = estimator.history_
    assert len(history) == 90 and (np.diff(history.seconds) > 0).all()
    # What is recorded is the loss before a batch was learned from, so this fall is no memorising.
    assert history.loss[-10:].mean() < 0.3 * history.loss[:10].mean()


@pytest.mark.parametrize("update", [KSVD(), MOD(), None], ids=repr)
@pytest.mark.parametrize("coder", [OMP(sparsity=2), Lasso(alpha=0.1, sparsity=2)], ids=repr)
def test_any_components_learn_from_batches(update, coder):
    estimator = model(update=update, coder=coder)
    for _ in range(3):
        for batch in np.split(ROWS, 3):
            estimator.partial_fit(batch)
    first = model(update=update, coder=coder).partial_fit(ROWS[:30])
    assert estimator.score(ROWS) > first.score(ROWS)


def test_partial_fit_continues_after_fit():
    fitted = model(max_iter=30, tol=0).fit(ROWS)
    before = fitted.components_.copy()
    fitted.partial_fit(ROWS[:10])
    assert fitted.n_samples_seen_ == 100 and fitted.n_iter_ == 31 and len(fitted.history_) == 31
    moved = np.linalg.norm(fitted.components_ - before, axis=1)
    assert 0 < moved.max() < 0.5  # ten samples do not overthrow what ninety said
    fitted.fit(ROWS)
    assert fitted.n_samples_seen_ == 90 and fitted.n_iter_ == 30  # and fit begins anew
    np.testing.assert_array_equal(fitted.components_, before)


def test_batches_must_have_the_same_features():
    with pytest.raises(ValueError, match="X has 7 features, but ManifoldDictionaryLearning is expecting 8"):
        model().partial_fit(ROWS).partial_fit(ROWS[:, :7])


def test_random_schedules_differ_from_batch_to_batch():
    estimator = model(update=SimCO(mu=0.1, schedule=schedules.RandomSubsets(3, 1)))
    moved = []
    for _ in range(4):
        before = getattr(estimator, "components_", None)
        estimator.partial_fit(ROWS)
        if before is not None:
            moved.append(frozenset(np.flatnonzero(np.any(estimator.components_ != before, axis=1))))
    assert len(set(moved)) > 1


def test_batches_of_one_sample():
    estimator = model(4, coder=OMP(sparsity=1))
    for row in ROWS[:20]:
        estimator.partial_fit(row[None])
    assert np.isfinite(estimator.components_).all() and estimator.n_samples_seen_ == 20
    np.testing.assert_allclose(np.linalg.norm(estimator.components_, axis=1), 1, rtol=1e-14)


def test_fit_begins_with_the_minibatches_of_its_argument():
    rows = datasets.synthetic(8, 12, 3000, sparsity=2, rng=0).signals.T
    settings = {"coder": OMP(sparsity=2), "max_iter": 3, "tol": 0.0, "random_state": 0}
    fitted = ManifoldDictionaryLearning(12, minibatches=MiniBatches(size=1024), **settings).fit(rows)
    result = learn_dictionary(
        rows.T, 12, coder=OMP(sparsity=2), max_iter=3, tol=0.0, rng=0, minibatches=MiniBatches(size=1024)
    )
    np.testing.assert_array_equal(fitted.components_, result.dictionary.T)
    np.testing.assert_array_equal(fitted.history_.sets, [3, 3, 1])
    assert fitted.set_params(minibatches__size=2048).minibatches == MiniBatches(size=2048)
