"""Unusual input that has to work, or be refused before anything is computed."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import manifold_dl as mdl
from manifold_dl import _validation

D, X, Y = mdl.datasets.synthetic(8, 12, 60, sparsity=2, snr_db=20, rng=0)
SINGLE = np.random.default_rng(0).standard_normal((1, 30))
UPDATES = ["simco", "ksvd", "mod", "trust region"]
EVERY_DICTIONARY_FITS = "ignore:signal 0 uses 1 atoms, as many as its m=1 entries:UserWarning"


def learn(signals=Y, n_atoms=12, **options):
    settings = {"coder": mdl.OMP(sparsity=2), "max_iter": 3, "rng": 0, **options}
    return mdl.learn_dictionary(signals, n_atoms, **settings)


# --- Sets of no atoms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [mdl.SimCO, mdl.KSVD])
def test_an_empty_set_of_atoms_leaves_the_dictionary(rule):
    for empty in ([[]], [np.zeros(12, bool)], [[], []]):
        moved, codes = rule(schedule=empty)(Y, D, X)
        np.testing.assert_array_equal(moved, D)
        np.testing.assert_array_equal(codes.toarray(), X.toarray())
    with_empty, _ = rule(schedule=[[], [3], []])(Y, D, X)
    np.testing.assert_array_equal(with_empty, rule(schedule=[[3]])(Y, D, X)[0])


# --- One feature ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings(EVERY_DICTIONARY_FITS, "ignore:1 of 2 atoms are used by none:UserWarning")
@pytest.mark.parametrize(
    "update", ["simco", "ksvd", "mod", mdl.SimCO("trust-region")], ids=lambda u: str(u)[:5]
)
@pytest.mark.parametrize("n_atoms", [1, 2])
def test_with_one_feature_atoms_are_signs(update, n_atoms):
    result = learn(SINGLE, n_atoms, coder=mdl.OMP(sparsity=1), update=update)
    assert (np.abs(result.dictionary) == 1).all()
    np.testing.assert_allclose(result.dictionary @ result.codes.toarray(), SINGLE, rtol=1e-15)


@pytest.mark.filterwarnings(EVERY_DICTIONARY_FITS)
def test_the_estimator_with_one_feature():
    model = mdl.ManifoldDictionaryLearning(1, max_iter=3, random_state=0).fit(SINGLE.T)
    np.testing.assert_allclose(model.inverse_transform(model.transform(SINGLE.T)), SINGLE.T, rtol=1e-15)
    assert np.abs(model.partial_fit(SINGLE.T).components_).tolist() == [[1.0]]


# --- Atoms of any norm in a start -------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1e160, 1e-160, 1e300, 1e-300])
def test_atoms_of_a_start_may_have_any_norm(norm):
    # The unit atoms have other roundings, which a few steps of an optimizer increase.
    np.testing.assert_allclose(learn(init=norm * D).dictionary, learn(init=D).dictionary, atol=1e-9)
    from_long, from_unit = (learn(init=start, update="mod").dictionary for start in (norm * D, D))
    np.testing.assert_allclose(from_long, from_unit, atol=1e-9)
    for rule in (mdl.SimCO(mu=0.1), mdl.KSVD(), mdl.MOD()):
        expected, _ = rule(Y, D, X)
        np.testing.assert_allclose(rule(Y, norm * D, X / norm)[0], expected, atol=1e-9)


@pytest.mark.parametrize("norm", [1e160, 1e-160])
def test_mod_refuses_codes_whose_squares_are_no_numbers(norm):
    with pytest.raises(ValueError, match=r"its square is no number of type float64\. MOD reads the values"):
        mdl.MOD()(Y, norm * D, X)


def test_atoms_too_short_for_codes_are_refused():
    with pytest.raises(ValueError, match=r"atoms of norm 1\.0e-310: the codes for such short atoms exceed"):
        mdl.OMP(sparsity=2).encode(Y, 1e-310 * D)


# --- Too many atoms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda n: learn(n_atoms=n),
        lambda n: learn(n_atoms=n, init="random"),
        lambda n: mdl.ManifoldDictionaryLearning(n).fit(Y.T),
        lambda n: mdl.ManifoldDictionaryLearning(n).partial_fit(Y.T),
        lambda n: mdl.images.denoise(np.zeros((20, 20)), 1.0, n_atoms=n),
        lambda n: mdl.images.inpaint(np.zeros((20, 20)), np.eye(20, dtype=bool), n_atoms=n),
        lambda n: mdl.lasso_problem(Y, n, alpha=0.1),
        lambda n: mdl.learn_dictionary(Y, n, **mdl.presets.recover(sparsity=2), rng=0),
    ],
    ids=["learn", "random", "fit", "partial_fit", "denoise", "inpaint", "lasso_problem", "recover"],
)
def test_a_billion_atoms_are_refused_before_memory_is_allocated(call, monkeypatch):
    monkeypatch.setattr(_validation, "physical_memory", lambda: 16 * 2.0**30)
    with pytest.raises(ValueError, match=r"1000000000 atoms of length .* this machine has 16 GiB of memory"):
        call(10**9)


# --- A sparsity above the number of components ------------------------------------------------------------


def test_the_estimator_clips_the_sparsity_with_a_warning():
    model = mdl.ManifoldDictionaryLearning(4, coder=mdl.OMP(sparsity=6), max_iter=2, random_state=0)
    with pytest.warns(UserWarning, match="sparsity=6 exceeds the number of components, 4: .* up to 4 atoms"):
        codes = model.fit_transform(Y.T)
    assert (np.count_nonzero(codes, axis=1) <= 4).all() and model.coder.sparsity == 6
    with pytest.raises(ValueError, match="sparsity=9 exceeds the signal dimension m=8"):
        mdl.ManifoldDictionaryLearning(4, coder=mdl.OMP(sparsity=9)).fit(Y.T)


def test_a_grid_search_over_both_does_not_fail():
    model = mdl.ManifoldDictionaryLearning(max_iter=2, coder=mdl.OMP(sparsity=1), random_state=0)
    grid = {"n_components": [3, 6], "coder__sparsity": [2, 5]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(Y.T)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# --- Entries that are not finite --------------------------------------------------------------------------


def test_the_number_of_entries_that_are_not_finite_is_given_and_where_the_first_is():
    wrong = Y.copy()
    wrong[3, 5] = wrong[6, 2] = np.nan
    wrong[4, 7] = np.inf
    with pytest.raises(ValueError, match="signals holds nan at row 3, column 5, the first of 3 entries that"):
        learn(wrong)
    with pytest.raises(ValueError, match="X holds nan at row 2, column 6, the first of 3 entries"):
        mdl.ManifoldDictionaryLearning(12).fit(wrong.T)
    picture = np.zeros((20, 20, 3))
    picture[4, 6, 1] = np.inf
    with pytest.raises(ValueError, match="the picture holds inf at row 4, column 6, the only entry that is"):
        mdl.images.denoise(picture, 1.0)
