"""Initial dictionaries: unit atoms, distinct, and what they are said to be."""

import numpy as np
import pytest
import scipy.fft

from manifold_dl.datasets import synthetic
from manifold_dl.learning.initialization import initial_dictionary
from manifold_dl.metrics import recovery

RNG = np.random.default_rng(0)
Y = RNG.standard_normal((6, 40))


@pytest.mark.parametrize("init", ["data", "random", "dct", RNG.standard_normal((6, 9))], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_unit_atoms_of_the_signals_dtype(init, dtype):
    D = initial_dictionary(Y.astype(dtype), 9, init, rng=0)
    assert D.shape == (6, 9) and D.dtype == dtype
    # A norm of 6 numbers, each rounded once.
    np.testing.assert_allclose(np.linalg.norm(D, axis=0), 1, rtol=4 * np.finfo(dtype).eps)


def test_init_from_data_takes_distinct_signals():
    D = initial_dictionary(Y, 40, "data", rng=0)
    cosines = np.abs((Y / np.linalg.norm(Y, axis=0)).T @ D)
    # Every atom is one of the signals, and every signal is one of the atoms.
    np.testing.assert_allclose(cosines.max(axis=0), 1, rtol=1e-14)
    assert sorted(cosines.argmax(axis=0)) == list(range(40))


def test_init_from_data_draws_at_random():
    one, same, other = (initial_dictionary(Y, 5, "data", rng=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_init_from_data_skips_zero_signals_and_multiples():
    signals = np.hstack([np.zeros((6, 50)), Y[:, :3], -2 * Y[:, :3], 1e-30 * Y[:, :3], 1e30 * Y[:, :3]])
    D = initial_dictionary(signals, 3, "data", rng=0)
    cosines = np.abs((Y / np.linalg.norm(Y, axis=0)).T @ D)
    assert sorted(cosines[:3].argmax(axis=0)) == [0, 1, 2]
    np.testing.assert_allclose(cosines[:3].max(axis=0), 1, rtol=1e-14)


def test_init_from_too_few_signals_adds_random_directions():
    D = initial_dictionary(np.hstack([Y[:, :2], np.zeros((6, 9))]), 5, "data", rng=0)
    assert np.linalg.matrix_rank(D) == 5
    cosines = np.abs((Y / np.linalg.norm(Y, axis=0)).T @ D)
    assert (cosines[:2].max(axis=0) > 1 - 1e-12).sum() == 2
    np.testing.assert_allclose(np.linalg.norm(D, axis=0), 1, rtol=1e-15)


def test_random_directions_are_uniform():
    D = initial_dictionary(np.ones((3, 1)), 20000, "random", rng=0)
    # Of a uniform direction in R³ the mean is 0 and the covariance I/3; standard errors are below 0.004.
    np.testing.assert_allclose(D.mean(axis=1), 0, atol=0.02)
    np.testing.assert_allclose(D @ D.T / 20000, np.eye(3) / 3, atol=0.02)


def test_as_many_cosines_as_entries_are_the_dct():
    D = initial_dictionary(np.ones((7, 1)), 7, "dct", rng=0)
    expected = scipy.fft.idct(np.eye(7), norm="ortho", axis=0)
    # Sums of 7 cosines; the sign is the same because both begin with a positive entry.
    np.testing.assert_allclose(D, expected, atol=1e-15 * 7)


def test_on_square_pictures_cosines_are_separable():
    D = initial_dictionary(np.ones((16, 1)), 16, "dct", rng=0)
    np.testing.assert_allclose(D.T @ D, np.eye(16), atol=1e-14)  # products of sums of 4 cosines
    for atom in D.T:
        assert np.linalg.matrix_rank(atom.reshape(4, 4), tol=1e-12) == 1
    np.testing.assert_allclose(D[:, 0], 1 / 4, rtol=1e-14)  # low frequencies first


@pytest.mark.parametrize(("m", "d"), [(2, 5), (4, 9), (9, 30), (16, 64), (64, 256), (10, 25), (64, 3)])
def test_no_two_cosines_are_the_same(m, d):
    D = initial_dictionary(np.ones((m, 1)), d, "dct", rng=0)
    gram = np.abs(D.T @ D) - np.eye(d)
    assert gram.max() < 0.9999 and np.isfinite(D).all()


def test_a_given_dictionary_is_normalised_and_copied():
    given = np.asfortranarray(3 * Y[:, :4])
    before = given.copy()
    D = initial_dictionary(Y, 4, given, rng=0)
    np.testing.assert_allclose(D, given / np.linalg.norm(given, axis=0), rtol=1e-15)
    D[:] = 0
    np.testing.assert_array_equal(given, before)


def test_integer_start_equals_the_same_floats():
    assert initial_dictionary(Y, 2, np.eye(6, dtype=int)[:, :2], rng=0).dtype == float


@pytest.mark.parametrize(
    ("init", "sentence"),
    [
        ("dft", "init='dft': give 'data', 'random', 'dct' or"),
        (np.ones((6, 4)), "init has 4 atoms, but n_atoms=5"),
        (np.ones((5, 5)), "init has atoms of length 5, but the signals have length 6"),
        (np.full((6, 5), np.nan), "init holds nan"),
        (np.zeros((6, 5)), "init column 0 is zero"),
        (None, "init has dtype object"),
    ],
)
def test_refused_with_a_sentence(init, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        initial_dictionary(Y, 5, init, rng=0)


def test_random_start_with_the_seed_of_the_signals_is_not_their_dictionary():
    D_true, _, Y = synthetic(16, 32, 100, sparsity=4, rng=0)
    assert recovery(initial_dictionary(Y, 32, "random", rng=0), D_true) == 0
