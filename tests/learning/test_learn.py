"""What `learn_dictionary` returns and prints, what it depends on, and what it refuses."""

import numpy as np
import pytest
from learning_runs import CODER, NAMES, UPDATES, Interrupted, Recorder, Y, error, learn

from manifold_dl import (
    OMP,
    EarlyStopping,
    Progress,
    Reason,
    ReplaceAtoms,
    Result,
    SimCO,
    datasets,
)

# What comes out


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_result_has_the_dtype_of_the_data_and_unit_atoms(update, dtype):
    recorder = Recorder()
    result = learn(Y.astype(dtype), update=update, callbacks=[recorder])
    assert result.dictionary.dtype == result.codes.dtype == dtype
    assert all(step.dictionary.dtype == step.codes.dtype == dtype for step in recorder.steps)
    assert result.dictionary.shape == (8, 12) and result.codes.shape == (12, 90)
    # A norm of 8 numbers is exact to a few units in the last place.
    np.testing.assert_allclose(np.linalg.norm(result.dictionary, axis=0), 1, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
def test_codes_are_the_coders_codes_for_the_final_dictionary(update):
    result = learn(update=update)
    expected = CODER.encode(Y, result.dictionary)
    np.testing.assert_array_equal(result.codes.toarray(), expected.toarray())


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
def test_learning_lowers_the_loss(update):
    first = learn(update=update, max_iter=1)
    last = learn(update=update, max_iter=20)
    assert error(Y, last.dictionary, last.codes) < error(Y, first.dictionary, first.codes)


def test_default_update_is_simco():
    # SimCO's own default supposes 50 iterations; the loop's ends the ridge at three fifths of any number.
    one, other = learn(max_iter=50, tol=0.0), learn(update=SimCO(), max_iter=50, tol=0.0)
    np.testing.assert_array_equal(one.dictionary, other.dictionary)
    ridge = [0.2] * 6 + [0.0]
    one, other = learn(max_iter=10), learn(update=SimCO(mu=ridge), max_iter=10)
    np.testing.assert_array_equal(one.dictionary, other.dictionary)


def test_memory_layout_of_the_signals_does_not_change_a_bit():
    expected = learn().dictionary
    frozen = Y.copy()
    frozen.flags.writeable = False
    wide = np.repeat(Y, 2, axis=1)[:, ::2]
    for signals in (np.asfortranarray(Y), frozen, wide, Y.tolist()):
        np.testing.assert_array_equal(learn(signals).dictionary, expected)


def test_signals_are_not_changed():
    before = Y.copy()
    learn()
    np.testing.assert_array_equal(Y, before)


@pytest.mark.parametrize("update", UPDATES, ids=NAMES)
def test_scaling_the_signals_scales_the_codes_and_nothing_else(update):
    one, other = learn(update=update), learn(Y * 2.0**-40, update=update)
    np.testing.assert_array_equal(other.dictionary, one.dictionary)  # a power of two rounds nothing
    np.testing.assert_array_equal(other.codes.toarray(), one.codes.toarray() * 2.0**-40)
    assert other.history.replaced.tolist() == one.history.replaced.tolist()


@pytest.mark.parametrize(
    ("signals", "n_atoms"),
    [(np.zeros((8, 20)), 5), (Y[:, :1], 5), (Y[:, :4], 12), (Y, 1), (np.repeat(Y[:, :1], 20, axis=1), 3)],
    ids=["zeros", "one signal", "fewer signals than atoms", "one atom", "equal signals"],
)
@pytest.mark.filterwarnings(
    "ignore:there are .* signals for:UserWarning", "ignore:.* atoms are used by none:UserWarning"
)
def test_degenerate_signals_give_finite_unit_atoms(signals, n_atoms):
    result = learn(signals, n_atoms, coder=OMP(sparsity=1))
    assert np.isfinite(result.dictionary).all() and np.isfinite(result.codes.data).all()
    np.testing.assert_allclose(np.linalg.norm(result.dictionary, axis=0), 1, rtol=1e-15)


# Reproducibility


def test_threads_do_not_change_a_bit():
    signals = datasets.synthetic(8, 12, 5000, sparsity=2, snr_db=20, rng=1).signals  # several blocks
    one, two = (learn(signals, max_iter=3, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.dictionary, two.dictionary)
    np.testing.assert_array_equal(one.codes.data, two.codes.data)
    np.testing.assert_array_equal(one.history.loss, two.history.loss)


def test_result_depends_on_the_seed_alone():
    same = [learn(rng=seed).dictionary for seed in (3, 3, np.random.default_rng(3))]
    for D in same[1:]:
        np.testing.assert_array_equal(D, same[0])
    assert not np.array_equal(learn(rng=4).dictionary, same[0])
    generator = np.random.default_rng(3)
    assert not np.array_equal(learn(rng=generator).dictionary, learn(rng=generator).dictionary)


def test_the_same_update_object_may_serve_many_runs():
    update = SimCO(mu=0.1)
    first = learn(update=update)
    learn(3 * Y[::-1], update=update, rng=1)  # leaves another step length behind
    np.testing.assert_array_equal(learn(update=update).dictionary, first.dictionary)


def test_the_global_generator_is_neither_read_nor_changed():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = learn(rng=5).dictionary
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(learn(rng=5).dictionary, first)


# What is refused


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"signals": np.where(Y > 1, np.nan, Y)}, "signals holds nan at row"),
        ({"signals": Y[0]}, "a matrix with two axes"),
        ({"signals": Y * 1j}, "only real numbers"),
        ({"signals": np.zeros((8, 0))}, "it is empty"),
        ({"n_atoms": 0}, "n_atoms=0: give a whole number"),
        ({"n_atoms": 2.0}, r"n_atoms=2\.0: give a whole number"),
        ({"n_atoms": None}, "n_atoms=None: give a whole number"),
        ({"n_atoms": True}, "n_atoms=True: give a whole number"),
        ({"max_iter": 0}, "max_iter=0: give a whole number"),
        ({"max_iter": np.inf}, "max_iter=inf: give a whole number"),
        ({"tol": -1e-3}, "tol=-0.001"),
        ({"tol": None}, "tol=None"),
        ({"tol": np.nan}, "tol=nan"),
        ({"init": "svd"}, "init='svd': give 'data', 'random', 'dct' or"),
        ({"init": None}, "init has dtype object"),
        ({"init": np.ones((8, 11))}, "init has 11 atoms, but n_atoms=12"),
        ({"init": np.ones((7, 12))}, "init has atoms of length 7"),
        ({"init": np.zeros((8, 12))}, "init column 0 is zero"),
        ({"threads": 0}, "threads=0"),
        ({"coder": None}, "pass an object with a method encode"),
        ({"coder": OMP}, "pass an object with a method encode"),
        ({"coder": OMP(sparsity=9)}, "sparsity=9 exceeds the signal dimension"),
        ({"update": SimCO}, "update: .* cannot be called as such"),
        ({"update": 3}, "update: 3 cannot be called"),
        ({"replace": ReplaceAtoms}, "replace: .* cannot be called as such"),
        ({"callbacks": [EarlyStopping]}, "callbacks: .* cannot be called as such"),
        ({"callbacks": Progress()}, "pass a list of them"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value,
)
def test_refused_with_a_sentence(options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        learn(**options)


# What is shown


def test_a_result_prints_a_short_summary():
    result = learn(max_iter=2)
    text = str(result)
    assert text == repr(result) and text.count("\n") == 2
    assert "12 atoms of length 8 learned from 90 signals in 2 iterations." in text
    assert str(Reason.ITERATION_LIMIT) in text and f"{result.history.loss[-1]:.4g}" in text


def test_a_result_without_iterations_prints_too():
    assert "0 iterations" in str(learn(coder=Interrupted(1)))


@pytest.mark.parametrize("reason", Reason)
def test_reasons_are_sentences(reason):
    assert str(reason)[0].isupper() and str(reason).endswith(".") and " " in str(reason)


def test_results_are_not_compared_entry_by_entry():
    result = learn(max_iter=1)
    assert result == result and result != Result(
        result.dictionary, result.codes, result.history, result.reason
    )
