"""The scikit-learn estimator: its own checks, rows and columns, randomness, pipelines."""

import pickle
import subprocess
import sys
import unittest

import joblib
import numpy as np
import pytest
import scipy.sparse
from estimator_models import D_TRUE, ROWS, Y, model
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import manifold_dl
from manifold_dl import (
    KSVD,
    OMP,
    History,
    ManifoldDictionaryLearning,
    Reason,
    SimCO,
    datasets,
    learn_dictionary,
    metrics,
)


@pytest.mark.filterwarnings(
    "ignore:there are .* signals for:UserWarning",
    "ignore:.* atoms are used by none:UserWarning",
    "ignore:signal 0 uses 1 atoms, as many as its m=1 entries:UserWarning",
)
@parametrize_with_checks(
    [
        ManifoldDictionaryLearning(max_iter=3),
        ManifoldDictionaryLearning(4, coder=OMP(sparsity=1), update=KSVD(), init="random", max_iter=2),
        ManifoldDictionaryLearning(max_iter=3, missing_values=np.nan),
        ManifoldDictionaryLearning(4, coder=OMP(sparsity=1), init="dct", max_iter=3, missing_values=np.nan),
    ],
    expected_failed_checks=lambda estimator: (
        {}
        if estimator.init != "data"
        else {
            "check_sample_weight_equivalence_on_dense_data": (
                "init='data' begins with samples drawn by their number, and the check shuffles and repeats "
                "them; from the same start the results are equal (test_weights.py)"
            )
        }
    ),
)
def test_scikit_learns_own_checks(estimator, check):
    try:
        check(estimator)
    except unittest.SkipTest as reason:  # pandas is missing, for example
        pytest.skip(str(reason))


# Rows and columns


def test_rows_are_the_columns_of_learn_dictionary():
    fitted = model().fit(ROWS)
    result = learn_dictionary(Y, 12, coder=OMP(sparsity=2), update=SimCO(mu=[0.1, 0.0]), max_iter=4, rng=0)
    np.testing.assert_array_equal(fitted.components_, result.dictionary.T)
    np.testing.assert_array_equal(fitted.transform(ROWS), result.codes.toarray().T)
    assert fitted.components_.shape == (12, 8) and fitted.n_features_in_ == 8
    assert fitted.n_iter_ == 4 and fitted.reason_ is Reason.ITERATION_LIMIT
    np.testing.assert_array_equal(fitted.history_.loss, result.history.loss)


def test_rows_are_not_copied():
    seen = []

    class Spy:
        def encode(self, signals, dictionary):
            seen.append(signals)
            return OMP(sparsity=2).encode(signals, dictionary)

    model(coder=Spy(), max_iter=1).fit(ROWS).transform(ROWS)
    assert seen and all(np.shares_memory(signals, ROWS) and signals.shape == (8, 90) for signals in seen)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(dtype):
    fitted = model().fit(ROWS.astype(dtype))
    codes = fitted.transform(ROWS.astype(dtype))
    assert fitted.components_.dtype == codes.dtype == fitted.inverse_transform(codes).dtype == dtype
    assert model().fit_transform(ROWS.astype(dtype)).dtype == dtype


def test_inverse_transform_of_codes_is_their_product():
    fitted = model(max_iter=20).fit(ROWS)
    codes = fitted.transform(ROWS)
    assert codes.shape == (90, 12) and isinstance(codes, np.ndarray)
    assert (np.count_nonzero(codes, axis=1) <= 2).all()
    again = fitted.inverse_transform(codes)
    np.testing.assert_allclose(again, codes @ fitted.components_, rtol=1e-15)
    np.testing.assert_allclose(fitted.inverse_transform(scipy.sparse.csr_array(codes)), again, atol=1e-14)
    np.testing.assert_array_equal(model(max_iter=20).fit_transform(ROWS), codes)


def test_codes_of_the_wrong_width_are_refused():
    with pytest.raises(ValueError, match="X has 5 columns, but there are 12 components"):
        model().fit(ROWS).inverse_transform(np.ones((3, 5)))


def test_score_is_the_explained_fraction():
    fitted = model().fit(ROWS)
    rest = ROWS - fitted.inverse_transform(fitted.transform(ROWS))
    # Sums of 720 squares in another order.
    assert fitted.score(ROWS) == pytest.approx(1 - np.sum(rest**2) / np.sum(ROWS**2), rel=1e-12)
    assert fitted.score(np.zeros((3, 8))) == 1.0
    assert fitted.score(3 * fitted.components_) == pytest.approx(1, abs=1e-14)
    assert fitted.score(ROWS * 1e-200) == pytest.approx(fitted.score(ROWS), rel=1e-9)
    assert model(max_iter=20).fit(ROWS).score(ROWS) > model(max_iter=1).fit(ROWS).score(ROWS)


# Defaults and starts


@pytest.mark.parametrize(("n_features", "sparsity"), [(2, 1), (19, 1), (20, 2), (64, 6)])
def test_defaults_are_found_in_fit(n_features, sparsity):
    rows = np.random.default_rng(0).standard_normal((200, n_features))
    estimator = ManifoldDictionaryLearning(max_iter=1, random_state=0)
    codes = estimator.fit_transform(rows)
    assert estimator.components_.shape == (n_features, n_features)
    assert np.count_nonzero(codes, axis=1).max() == sparsity
    assert estimator.coder is None and estimator.update is None and estimator.n_components is None


def test_fewer_components_than_a_tenth_of_the_features():
    rows = np.random.default_rng(0).standard_normal((30, 64))
    codes = ManifoldDictionaryLearning(2, max_iter=1, random_state=0).fit_transform(rows)
    assert codes.shape == (30, 2)


def test_a_start_of_ones_own_is_given_in_rows():
    fitted = model(None, init=5 * D_TRUE.T, max_iter=1).fit(ROWS)
    assert metrics.recovery(fitted.components_.T, D_TRUE, threshold=0.95) == 1
    with pytest.raises(
        ValueError, match=r"init has shape \(8, 12\); \(n_components, n_features\) = \(12, 8\)"
    ):
        model(init=D_TRUE).fit(ROWS)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_components": 0}, "n_components=0: give a whole number"),
        ({"n_components": 2.5}, "n_components=2.5: give a whole number"),
        ({"max_iter": 0}, "max_iter=0: give a whole number"),
        ({"init": "svd"}, "init='svd'"),
        ({"coder": OMP(sparsity=9)}, "sparsity=9 exceeds"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_refused_in_fit_with_a_sentence(options, sentence):
    estimator = model(**options)
    with pytest.raises(ValueError, match=sentence):
        estimator.fit(ROWS)


# Randomness and threads


@pytest.mark.parametrize(
    "state",
    [7, lambda: np.random.RandomState(7), lambda: np.random.default_rng(7)],
    ids=["int", "old", "new"],
)
def test_result_depends_on_the_random_state(state):
    fresh = state if callable(state) else lambda: state
    one, same = (model(random_state=fresh()).fit(ROWS).components_ for _ in range(2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, model(random_state=8).fit(ROWS).components_)


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    model(random_state=None).fit(ROWS).partial_fit(ROWS)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_jobs_do_not_change_a_bit():
    rows = np.ascontiguousarray(datasets.synthetic(8, 12, 5000, 2, rng=1).signals.T)
    one, two = (model(n_jobs=jobs, max_iter=2).fit(rows) for jobs in (None, 2))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.transform(rows), two.transform(rows))


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_model_fits_inside_joblib_workers(backend):
    shared = SimCO(mu=[0.1, 0.0])
    models = [model(update=shared, random_state=seed) for seed in range(4)]
    alone = [clone(m).fit(ROWS).components_ for m in models]
    fitted = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(m.fit)(ROWS) for m in models)
    for one, other in zip(fitted, alone, strict=True):
        np.testing.assert_array_equal(one.components_, other)


# With others


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_finds_the_sparsity(n_jobs):
    search = GridSearchCV(
        model(max_iter=5), {"coder__sparsity": [1, 2], "update__mu": [0.1]}, cv=2, n_jobs=n_jobs
    ).fit(ROWS)
    assert search.best_params_ == {"coder__sparsity": 2, "update__mu": 0.1}
    # More atoms explain more; the scores are fractions.
    first, second = search.cv_results_["mean_test_score"]
    assert 0 < first < second < 1


def test_estimator_works_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), model())
    codes = pipeline.fit_transform(ROWS)
    assert pipeline.inverse_transform(codes).shape == ROWS.shape
    assert pipeline.get_feature_names_out().tolist() == [f"manifolddictionarylearning{i}" for i in range(12)]
    pipeline.set_params(manifolddictionarylearning__coder__sparsity=1).fit(ROWS)
    assert np.count_nonzero(pipeline.transform(ROWS), axis=1).max() == 1


def test_set_output_default_is_an_array():
    fitted = model().set_output(transform="default").fit(ROWS)
    assert isinstance(fitted.transform(ROWS), np.ndarray)


def test_set_output_with_names():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(ROWS, columns=list("abcdefgh"))
    codes = model().set_output(transform="pandas").fit_transform(table)
    assert codes.columns.tolist() == [f"manifolddictionarylearning{i}" for i in range(12)]


def test_a_fitted_model_is_the_same_after_pickling():
    fitted = model().fit(ROWS).partial_fit(ROWS)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(ROWS), fitted.transform(ROWS))
    np.testing.assert_array_equal(again.partial_fit(ROWS).components_, fitted.partial_fit(ROWS).components_)


def test_callbacks_and_verbosity(capfd):
    steps = []
    fitted = model(callbacks=[steps.append, History(coherence=True)], verbose=True).fit(ROWS)
    assert len(steps) == 4 and fitted.history_.coherence.shape == (4,)
    assert fitted.fit(ROWS).history_.coherence.shape == (4,)  # of the last fit alone
    assert capfd.readouterr() == ("", "")  # no terminal, no bar


def test_interrupted_fit_keeps_the_best_dictionary_and_warns():
    def interrupt(step):
        if step.iteration == 1:
            raise KeyboardInterrupt

    estimator = model(callbacks=[interrupt])
    with pytest.warns(UserWarning, match="It was interrupted; this is the best dictionary until then"):
        estimator.fit(ROWS)
    assert estimator.reason_ is Reason.INTERRUPTED and estimator.n_iter_ == 2
    assert estimator.transform(ROWS).shape == (90, 12)


def test_scikit_learn_is_imported_with_the_estimator_alone():
    program = (
        "import sys, manifold_dl; assert 'sklearn' not in sys.modules; "
        "assert 'ManifoldDictionaryLearning' in dir(manifold_dl); "
        "manifold_dl.ManifoldDictionaryLearning; assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert "ManifoldDictionaryLearning" in manifold_dl.__all__
    with pytest.raises(AttributeError, match="Nothing"):
        _ = manifold_dl.Nothing
