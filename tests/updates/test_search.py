"""`AtomSearch`: trials are kept only if they lower the objective, and a run can be resumed at any of them."""

import itertools

import numpy as np
import pytest

import manifold_dl as mdl
from manifold_dl import AtomSearch, RmsLasso, learn_dictionary
from manifold_dl.datasets import synthetic
from manifold_dl.manifolds import Spheres

CODER = RmsLasso(alpha=0.025, sparsity=2)
SETTINGS = {"coder": CODER, "update": AtomSearch(trials=4, patience=2), "init": "random", "replace": None}


@pytest.fixture(scope="module")
def data():
    return synthetic(8, 12, 60, sparsity=2, rng=3)


def objective(Y, D, alpha):
    """f_α with a penalty in units of the signals, by the coder alone."""
    penalty = alpha * np.sqrt(np.mean(np.sum(Y**2, axis=0)))
    X = mdl.Lasso(alpha=penalty, tol=1e-12).encode(Y, D).toarray()
    return 0.5 * np.sum((Y - D @ X) ** 2) + penalty * np.sum(np.abs(X))


def test_no_update_of_the_search_raises_the_objective(data):
    Y, run = data[2], AtomSearch(trials=6, patience=6).begin()
    D, rng = Spheres(8, 12).random_point(rng=1), np.random.default_rng(0)
    values, codes = [objective(Y, D, 0.025)], np.zeros((12, 60))
    for _ in range(7):
        assert not run.settled
        D, codes = run(Y, D, codes, rng=rng)
        values.append(objective(Y, D, 0.025))
    assert values[1] < 0.9 * values[0]
    # The search solves its lassos to a duality gap of 1e-6 of the signals' energy at the most.
    assert all(after <= before * (1 + 1e-6) for before, after in itertools.pairwise(values))
    assert run.settled


def test_patience_ends_the_search_and_success_resets_it(data):
    Y, run = data[2], AtomSearch(patience=2).begin()
    D, codes, rng = Spheres(8, 12).random_point(rng=1), np.zeros((12, 60)), np.random.default_rng(0)
    failures = []
    while not run.settled:
        D, codes = run(Y, D, codes, rng=rng)
        failures.append(run.failures)
    assert failures[-2:] == [1, 2]
    assert all(after in (0, before + 1) for before, after in itertools.pairwise(failures))


def test_resumed_search_has_the_same_bits(data, tmp_path):
    Y, path = data[2], tmp_path / "checkpoint.npz"
    whole = learn_dictionary(Y, 12, **SETTINGS, max_iter=8, rng=5)

    def stop(step):
        return step.iteration == 2  # in the middle of the trials

    checkpoint = mdl.Checkpoint(path)
    learn_dictionary(Y, 12, **SETTINGS, max_iter=8, rng=5, callbacks=[checkpoint, stop])
    resumed = learn_dictionary(Y, 12, **SETTINGS, max_iter=8, resume=path)
    np.testing.assert_array_equal(resumed.dictionary, whole.dictionary)
    np.testing.assert_array_equal(resumed.codes.toarray(), whole.codes.toarray())


def test_number_of_threads_does_not_change_a_bit():
    _, _, Y = synthetic(8, 12, 5000, sparsity=2, snr_db=20, rng=0)  # several blocks
    found = [learn_dictionary(Y, 12, **SETTINGS, max_iter=4, rng=5, threads=k).dictionary for k in (1, 2)]
    np.testing.assert_array_equal(*found)


def test_signals_times_eight_give_the_same_dictionary(data):
    Y = data[2]
    one, eight = (learn_dictionary(c * Y, 12, **SETTINGS, max_iter=8, rng=5) for c in (1, 8))
    np.testing.assert_array_equal(one.dictionary, eight.dictionary)
    np.testing.assert_array_equal(8 * one.codes.toarray(), eight.codes.toarray())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alphas": ()}, "alphas is empty"),
        ({"again": (-1.0,)}, "alpha"),
        ({"fraction": 0.0}, "fraction=0.0"),
        ({"patience": 0}, "patience"),
        ({"refinement": mdl.KSVD()}, "refinement"),
        ({"alphas": [0.1]}, "has to be the same"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, words):
    with pytest.raises((TypeError, ValueError), match=words):
        AtomSearch(**settings)


def test_settings_are_stored_with_the_result(data, tmp_path):
    rule = AtomSearch(trials=1, patience=1, alphas=(0.1, 0.05), again=(0.05,))
    result = learn_dictionary(data[2], 12, **{**SETTINGS, "update": rule}, max_iter=3, rng=0)
    mdl.save(result, tmp_path / "result.npz")
    loaded = mdl.load(tmp_path / "result.npz")
    assert loaded.component("update") == rule
    assert loaded.component("coder") == CODER
