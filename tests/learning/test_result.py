"""The fraction of energy that a result explains: that of its own dictionary and codes, at every scale."""

import numpy as np
import pytest

import manifold_dl as mdl
from manifold_dl.learning.signal_sums import explained_fraction

Y = mdl.datasets.synthetic(8, 12, 150, sparsity=3, snr_db=20, rng=0).signals


def learn(signals=Y, **options):
    settings = {"coder": mdl.OMP(sparsity=3), "max_iter": 4, "rng": 0, **options}
    return mdl.learn_dictionary(signals, 12, **settings)


def by_formula(signals, result):
    rest = signals - result.dictionary.astype(float) @ result.codes.toarray().astype(float)
    return 1 - np.sum(rest**2) / np.sum(signals.astype(float) ** 2)


@pytest.mark.parametrize("mu", [0.0, 0.5], ids=["no ridge", "ridge"])
def test_explained_is_that_of_the_stored_dictionary_and_codes(mu):
    result = learn(update=mdl.SimCO(mu=mu))
    # Sums of 1,200 squares in another order.
    assert result.explained == pytest.approx(by_formula(Y, result), rel=1e-12)
    if mu:  # the codes of the last update are shrunk by the ridge and explain less than the stored ones
        energy = np.sum(Y**2) / Y.shape[1]
        assert result.explained > 1 - result.history.loss[-1] / energy + 0.01


def test_explained_in_single_precision_is_a_sum_in_double():
    result = learn(Y.astype(np.float32))
    assert result.explained == pytest.approx(by_formula(Y.astype(np.float32), result), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_explained_does_not_overflow_or_vanish(scale):
    result = learn()
    scaled = explained_fraction(Y * scale, result.dictionary, result.codes * scale)
    assert scaled == pytest.approx(result.explained, rel=1e-12)


def test_integers_are_not_squared_in_their_own_type():
    pixels = np.random.default_rng(0).integers(0, 255, (8, 60)).astype(np.uint8)
    result = learn(pixels)
    assert 0 < result.explained <= 1
    assert result.explained == pytest.approx(by_formula(pixels, result), rel=1e-12)


def test_the_best_restart_explains_most():
    assert learn(restarts=3).explained >= learn().explained


def test_explained_is_the_same_after_saving(tmp_path):
    result = learn()
    mdl.save(result, tmp_path / "result.npz")
    assert mdl.load(tmp_path / "result.npz").explained == result.explained


def test_result_without_explained_fraction_prints_none(tmp_path):
    known = learn()
    result = mdl.Result(known.dictionary, known.codes, known.history, known.reason)
    mdl.save(result, tmp_path / "result.npz")
    assert np.isnan(mdl.load(tmp_path / "result.npz").explained)
    assert "explained" not in str(result) and "of the energy explained" in str(known)


def test_explained_of_the_estimator_is_that_of_its_codes():
    model = mdl.ManifoldDictionaryLearning(12, coder=mdl.OMP(sparsity=3), max_iter=4, random_state=0)
    codes = model.fit_transform(Y.T)
    rest = Y.T - codes @ model.components_
    assert model.explained == pytest.approx(1 - np.sum(rest**2) / np.sum(Y**2), rel=1e-12)
    assert model.explained == learn(update=mdl.SimCO()).explained


def test_explained_is_undefined_after_partial_fit():
    model = mdl.ManifoldDictionaryLearning(12, coder=mdl.OMP(sparsity=3), max_iter=2, random_state=0)
    with pytest.raises(AttributeError, match="not fitted"):
        _ = model.explained
    model.fit(Y.T).partial_fit(Y.T)
    with pytest.raises(AttributeError, match=r"known after fit only.*use score"):
        _ = model.explained
