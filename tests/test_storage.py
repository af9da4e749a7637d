"""Estimators as files: the same bits after loading, also those of the next batch; by skops as well."""

import numpy as np
import pytest
import skops.io
from stored_files import contents, rewrite

import manifold_dl as mdl

D, X, Y = mdl.datasets.synthetic(8, 12, 60, sparsity=2, snr_db=20, rng=0)
ROWS = np.ascontiguousarray(Y.T)
MODELS = {
    "defaults": {},
    "names": {"coder": "iht", "update": "mod"},
    "components": {
        "coder": mdl.Lasso(0.3, sparsity=3),
        "update": mdl.SimCO("trust-region", mu=[0.1, 0.0], regularizers=[mdl.regularizers.Coherence(0.1)]),
    },
    "start": {"init": D.T.copy(), "update": mdl.KSVD(schedule=mdl.schedules.OneAtATime("random"))},
}


def model(name, dtype=float):
    settings = {"max_iter": 3, "random_state": 0, "n_jobs": 1, **MODELS[name]}
    return mdl.ManifoldDictionaryLearning(12, **settings).fit(ROWS.astype(dtype))


def require_same(one, other):
    rows = ROWS.astype(one.components_.dtype)
    assert one.components_.dtype == other.components_.dtype
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.transform(rows), other.transform(rows))
    assert (one.n_iter_, one.n_samples_seen_, one.n_features_in_) == (
        other.n_iter_,
        other.n_samples_seen_,
        other.n_features_in_,
    )
    for column, values in one.history_.to_dict().items():
        np.testing.assert_array_equal(values, other.history_.to_dict()[column])
    # What is not seen from outside decides about the next batch, drawn at random in one of the models.
    np.testing.assert_array_equal(one.partial_fit(rows).components_, other.partial_fit(rows).components_)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_loaded_estimator_has_the_same_bits(tmp_path, name, dtype):
    fitted = model(name, dtype)
    mdl.save(fitted, tmp_path / "model.npz")
    loaded = mdl.load(tmp_path / "model.npz")
    assert isinstance(loaded, mdl.ManifoldDictionaryLearning)
    assert loaded.reason_ is fitted.reason_ and loaded.explained == fitted.explained
    assert repr(loaded.coder) == repr(fitted.coder) and loaded.random_state == 0
    require_same(loaded, fitted)
    np.testing.assert_array_equal(  # fit begins anew, from the stored parameters
        loaded.fit(ROWS).components_, fitted.fit(ROWS).components_
    )


def test_an_estimator_of_batches_and_one_that_is_not_fitted(tmp_path):
    path = tmp_path / "model.npz"
    online = mdl.ManifoldDictionaryLearning(12, random_state=0).partial_fit(ROWS[:30])
    mdl.save(online, path)
    loaded = mdl.load(path)
    assert not hasattr(loaded, "reason_")
    require_same(loaded, online)
    mdl.save(mdl.ManifoldDictionaryLearning(5, random_state=3), path)
    assert mdl.load(path).get_params()["n_components"] == 5 and not hasattr(mdl.load(path), "components_")


def test_an_estimator_of_weighted_batches(tmp_path):
    weights = np.random.default_rng(0).random(60) / 10  # what has been seen is no whole number
    online = mdl.ManifoldDictionaryLearning(12, random_state=0, missing_values=np.nan)
    online.partial_fit(ROWS, sample_weight=weights)
    mdl.save(online, tmp_path / "model.npz")
    loaded = mdl.load(tmp_path / "model.npz")
    assert loaded.n_samples_seen_ == pytest.approx(weights.sum(), rel=1e-14)
    require_same(loaded, online)


class Own:
    """A coder that nobody registered."""

    def encode(self, signals, dictionary):
        return mdl.OMP(sparsity=2).encode(signals, dictionary)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"coder": Own()}, "coder=<.*Own.*cannot be stored"),
        ({"random_state": np.random.default_rng(0)}, "random_state=Generator.*cannot be stored"),
        ({"callbacks": [print]}, "callbacks are not stored"),
    ],
    ids=["coder", "generator", "callback"],
)
def test_what_could_not_be_read_back_is_refused_when_it_is_saved(tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        mdl.save(mdl.ManifoldDictionaryLearning(12, **options), tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_anything_else_is_refused(tmp_path):
    with pytest.raises(TypeError, match="a dict cannot be saved: give a Result or a ManifoldDictionary"):
        mdl.save({"dictionary": D}, tmp_path / "file.npz")


@pytest.mark.parametrize(
    "changes",
    [
        {"energy": np.zeros(3)},
        {"energy": np.full(12, -1.0)},
        {"dictionary": np.zeros((12, 8))},
        {"header": {"fitted": {}}},
        {"header": {"parameters": {"n_components": 12, "something": 1}}},
        {"header": {"parameters": {"coder": {"component": "os.system", "parameters": {}}}}},
    ],
    ids=str,
)
def test_a_damaged_estimator_is_refused(tmp_path, changes):
    path = tmp_path / "model.npz"
    mdl.save(model("defaults"), path)
    rewrite(path, **changes)
    with pytest.raises(ValueError, match="is damaged: "):
        mdl.load(path)
    assert contents(path)[0]["kind"] == "estimator"


@pytest.mark.parametrize("name", MODELS)
def test_skops_stores_estimators(name):
    fitted = model(name)
    stored = skops.io.dumps(fitted)
    loaded = skops.io.loads(stored, trusted=skops.io.get_untrusted_types(data=stored))
    assert loaded.reason_ is fitted.reason_
    require_same(loaded, fitted)
