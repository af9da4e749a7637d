"""Synthetic signals have the distributions of the paper."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats

from manifold_dl.datasets import synthetic


def test_signals_are_dictionary_times_codes():
    D, X, Y = synthetic(16, 32, 200, sparsity=4, rng=0)
    assert D.shape == (16, 32) and X.shape == (32, 200) and Y.shape == (16, 200)
    np.testing.assert_allclose(Y, D @ X.toarray(), atol=1e-14)  # sums of 4 products of numbers of size 1


@pytest.mark.parametrize(("d", "sparsity"), [(32, 4), (32, 1), (5, 5)])
def test_exactly_s_nonzeros_in_every_signal(d, sparsity):
    X = synthetic(8, d, 500, sparsity, rng=0).codes
    assert (np.diff(X.indptr) == sparsity).all() and (X.data != 0).all()
    assert ((X.toarray() != 0).sum(axis=0) == sparsity).all()  # so no atom is named twice
    assert X.format == "csc" and X.has_canonical_format


def test_unit_atoms_in_uniform_directions():
    D = synthetic(3, 20000, 1, sparsity=1, rng=0).dictionary
    np.testing.assert_allclose(np.linalg.norm(D, axis=0), 1, rtol=1e-15)
    # Archimedes: each coordinate of a uniform point on the sphere in R³ is uniform on [−1, 1].
    for row in D:
        assert scipy.stats.kstest(row, "uniform", args=(-1, 2)).pvalue > 0.01


def test_values_are_standard_gaussian_and_positions_uniform():
    X = synthetic(8, 10, 20000, sparsity=3, rng=1).codes
    assert scipy.stats.kstest(X.data, "norm").pvalue > 0.01
    users = np.bincount(X.indices, minlength=10)
    # Without replacement the counts vary less than a multinomial, so χ² is, if anything, too small.
    assert scipy.stats.chisquare(users).pvalue > 0.01
    mask = (X.toarray() != 0).astype(float)
    pairs = mask @ mask.T / 20000
    # Two given atoms are used together in a fraction S(S−1)/(d(d−1)) = 6/90 of the signals, ± 0.0018.
    np.testing.assert_allclose(pairs[~np.eye(10, dtype=bool)], 6 / 90, atol=5 * 0.0018)


@pytest.mark.parametrize("snr_db", [-3, 10, 20, 40])
def test_noise_is_white_gaussian_at_the_given_ratio(snr_db):
    D, X, Y = synthetic(16, 32, 5000, sparsity=4, snr_db=snr_db, rng=2)
    clean = D @ X
    noise = Y - clean
    ratio = 10 * np.log10(np.sum(clean**2) / np.sum(noise**2))
    # The energy of 80,000 Gaussians has a relative standard deviation of √(2/80000): 0.02 dB; five of those.
    assert ratio == pytest.approx(snr_db, abs=0.1)
    assert scipy.stats.kstest(noise.ravel() / noise.std(), "norm").pvalue > 0.01
    np.testing.assert_allclose(np.corrcoef(noise), np.eye(16), atol=5 / np.sqrt(5000))


def test_noise_does_not_change_dictionary_and_codes():
    clean, noisy = synthetic(8, 12, 50, 2, rng=3), synthetic(8, 12, 50, 2, snr_db=10, rng=3)
    np.testing.assert_array_equal(clean.dictionary, noisy.dictionary)
    np.testing.assert_array_equal(clean.codes.toarray(), noisy.codes.toarray())
    assert not np.array_equal(clean.signals, noisy.signals)


def test_results_depend_on_the_seed_alone():
    one, same, other = (synthetic(8, 12, 50, 2, rng=seed).signals for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    generator = np.random.default_rng(5)
    np.testing.assert_array_equal(synthetic(8, 12, 50, 2, rng=generator).signals, one)
    assert not np.array_equal(synthetic(8, 12, 50, 2, rng=generator).signals, one)


@pytest.mark.parametrize("name", ["m", "d", "n", "sparsity"])
@pytest.mark.parametrize("value", [0, -1, 1.5])
def test_sizes_are_whole_numbers(name, value):
    with pytest.raises(ValueError, match=f"{name}={value}: give a whole number"):
        synthetic(**{"m": 8, "d": 12, "n": 50, "sparsity": 2, name: value})


def test_more_nonzeros_than_atoms_are_refused():
    with pytest.raises(ValueError, match="sparsity=13 exceeds the number of atoms d=12"):
        synthetic(8, 12, 50, sparsity=13)


def test_signals_have_the_same_bits_for_any_number_of_threads_of_blas():
    code = "import zlib, sys; from manifold_dl.datasets import synthetic\n"
    code += "print(zlib.crc32(synthetic(12, 20, 4000, sparsity=3, snr_db=20, rng=0).signals.tobytes()))"
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    checksums = set()
    for threads in ("1", "2", "3"):
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        checksums.add(run.stdout)
    assert len(checksums) == 1
