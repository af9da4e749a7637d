"""The estimator with weights of samples and with missing values."""

import numpy as np
import pytest
from estimator_models import ROWS, model

from manifold_dl import (
    MOD,
    OMP,
    BestOf,
    Lasso,
    ManifoldDictionaryLearning,
    MiniBatches,
    RmsLasso,
    SimCO,
    datasets,
    learn_dictionary,
    metrics,
)

MISSING = np.random.default_rng(0).random(ROWS.shape) < 0.2
INCOMPLETE = np.where(MISSING, np.nan, ROWS)


def test_missing_values_are_weights_of_zero_in_learning():
    fitted = model(missing_values=np.nan).fit(INCOMPLETE)
    settings = {"coder": fitted.coder, "update": fitted.update, "max_iter": 4, "rng": 0}
    result = learn_dictionary(ROWS.T, 12, weights=~MISSING.T, **settings)
    np.testing.assert_array_equal(fitted.components_, result.dictionary.T)
    assert fitted.explained == result.explained


def test_value_that_stood_at_a_missing_entry_never_matters():
    fitted = model(missing_values=np.nan).fit(INCOMPLETE)
    codes = fitted.transform(INCOMPLETE)
    assert np.isfinite(codes).all()
    expected = OMP(sparsity=2).encode(
        np.where(MISSING, 1e30, ROWS).T, fitted.components_.T, weights=~MISSING.T
    )
    np.testing.assert_array_equal(codes, expected.toarray().T)


def test_complete_samples_are_learned_as_without_the_option():
    with_option, without = model(missing_values=np.nan).fit(ROWS), model().fit(ROWS)
    np.testing.assert_array_equal(with_option.components_, without.components_)
    np.testing.assert_array_equal(with_option.impute(ROWS), ROWS)


def test_impute_fills_in_missing_entries_and_keeps_the_others():
    D, _, Y = datasets.synthetic(16, 24, 1500, sparsity=2, rng=0)
    missing = np.random.default_rng(1).random(Y.T.shape) < 0.2
    rows = np.where(missing, np.nan, Y.T)
    settings = {"coder": OMP(sparsity=2), "random_state": 0, "missing_values": np.nan, "init": D.T}
    fitted = ManifoldDictionaryLearning(24, max_iter=3, **settings).fit(rows)
    filled = fitted.impute(rows)
    np.testing.assert_array_equal(filled[~missing], Y.T[~missing])
    represented = fitted.inverse_transform(fitted.transform(rows))
    np.testing.assert_allclose(filled[missing], represented[missing], atol=1e-12)
    # From the true atoms most supports are found, and their entries exactly; a mean of zero leaves all of it.
    error = np.sum((filled - Y.T)[missing] ** 2) / np.sum(Y.T[missing] ** 2)
    assert error < 0.2 and metrics.recovery(fitted.components_.T, D) == 1
    assert fitted.score(rows) > 0.9


def test_sample_without_any_observed_entry_becomes_zero():
    fitted = model(missing_values=np.nan).fit(INCOMPLETE)
    rows = INCOMPLETE[:6].copy()
    rows[2] = np.nan
    filled = fitted.impute(rows)
    np.testing.assert_array_equal(filled[2], 0)  # its code is empty, and represents the zero signal
    np.testing.assert_array_equal(fitted.transform(rows)[2], 0)
    others = np.arange(6) != 2
    np.testing.assert_array_equal(filled[others], fitted.impute(INCOMPLETE[:6])[others])


def test_integer_weights_of_samples_count_as_repetitions():
    counts = np.arange(len(ROWS)) % 3
    start = {"init": ROWS[:12], "max_iter": 4}
    weighted = model(**start).fit(ROWS, sample_weight=counts)
    repeated = model(**start).fit(np.repeat(ROWS, counts, axis=0))
    # The same sums in another order.
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-8)
    assert weighted.score(ROWS, sample_weight=counts) == pytest.approx(
        repeated.score(np.repeat(ROWS, counts, axis=0)), rel=1e-8
    )


class Plain:
    """A user's coder, for arrays of weights alone."""

    def encode(self, signals, dictionary, weights=None):
        assert isinstance(weights, np.ndarray) and weights.shape == signals.shape
        return OMP(sparsity=2).encode(signals, dictionary, weights=weights)


@pytest.mark.parametrize(
    "parts",
    [
        {"update": SimCO(mu=0.1)},
        {"update": MOD()},
        {"coder": OMP(tol=0.1)},
        {"coder": Lasso(alpha=0.1), "update": SimCO(codes=Lasso(alpha=0.1))},
        {"coder": RmsLasso(alpha=0.1), "update": SimCO(codes=RmsLasso(alpha=0.1))},
        {"coder": BestOf([OMP(sparsity=2), RmsLasso(alpha=0.1, sparsity=2)])},
        {"coder": Plain()},
    ],
    ids=["ridge", "mod", "tolerance", "lasso", "rms", "best", "own coder"],
)
def test_integer_weights_of_incomplete_samples_count_as_repetitions(parts):
    # The weight of a sample multiplies its ridge and its penalty, too; those of entries do not.
    rows, counts = INCOMPLETE.copy(), np.arange(len(ROWS)) % 3
    rows[4] = np.nan  # of weight 1, and nothing of it was seen
    start = {"init": ROWS[:12], "max_iter": 3, "missing_values": np.nan, **parts}
    repeated = np.repeat(rows, counts, axis=0)
    one, other = model(**start).fit(rows, sample_weight=counts), model(**start).fit(repeated)
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-8)  # sums in another order
    np.testing.assert_allclose(one.history_.loss, other.history_.loss, rtol=1e-8)
    np.testing.assert_allclose(one.history_.objective, other.history_.objective, rtol=1e-8)
    assert one.n_samples_seen_ == pytest.approx(other.n_samples_seen_, rel=1e-12)
    assert one.explained == pytest.approx(other.explained, rel=1e-8)
    assert one.score(rows, sample_weight=counts) == pytest.approx(other.score(repeated), rel=1e-8)
    one.partial_fit(rows, sample_weight=counts)
    other.partial_fit(repeated)
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-8)


def test_weights_and_missing_values_serve_mini_batches():
    rows = np.tile(INCOMPLETE, (30, 1))
    options = {"missing_values": np.nan, "minibatches": MiniBatches(size=1024), "init": ROWS[:12]}
    scaled, plain = (model(**options).fit(rows, sample_weight=w) for w in (np.full(len(rows), 4.0), None))
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-10)
    np.testing.assert_allclose(scaled.history_.objective, 4 * plain.history_.objective, rtol=1e-10)


def test_batches_take_weights_and_missing_values():
    fitted = model(missing_values=np.nan)
    for part in np.array_split(np.arange(len(ROWS)), 3):
        fitted.partial_fit(INCOMPLETE[part], sample_weight=np.full(len(part), 2.0))
    assert np.isfinite(fitted.components_).all()
    assert fitted.n_samples_seen_ == pytest.approx(2 * (~MISSING).mean() * len(ROWS))


def test_nan_is_refused_by_default_and_the_sentence_names_the_option():
    fitted = model().fit(ROWS)
    for call in (model().fit, model().partial_fit, fitted.transform, fitted.impute, fitted.score):
        with pytest.raises(ValueError, match=r"X holds nan.*missing_values=np.nan"):
            call(INCOMPLETE)
    with pytest.raises(ValueError, match="X holds inf at row"):
        model(missing_values=np.nan).fit(np.where(MISSING, np.inf, ROWS))


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [(np.ones((3, 2)), "one number for each of"), (-np.ones(len(ROWS)), "finite and not negative")],
)
def test_invalid_weights_of_samples_are_refused(weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        model().fit(ROWS, sample_weight=weights)


def test_other_marks_of_missing_values_are_refused():
    with pytest.raises(ValueError, match=r"marked by np\.nan, or not at all"):
        model(missing_values=-1).fit(ROWS)


def test_batches_without_any_weight_and_masked_weights_are_refused():
    fitted = model().partial_fit(ROWS)
    before = fitted.components_.copy()
    for estimator in (model(), fitted):
        with pytest.raises(ValueError, match="all weights of this batch are zero: there is nothing to learn"):
            estimator.partial_fit(ROWS, sample_weight=np.zeros(len(ROWS)))
    with pytest.raises(ValueError, match="all weights of this batch are zero"):
        model(missing_values=np.nan).partial_fit(np.full_like(ROWS, np.nan))
    np.testing.assert_array_equal(fitted.components_, before)
    masked = np.ma.masked_array(np.ones(len(ROWS)), mask=np.arange(len(ROWS)) < 3)
    for call in (model().fit, model().partial_fit):
        with pytest.raises(TypeError, match="sample_weight is a masked array"):
            call(ROWS, sample_weight=masked)
