"""Coherence and recovery: invariances, and the assignment of atoms."""

import numpy as np
import pytest

from manifold_dl.metrics import (
    coherence,
    match,
    recovery,
)

# Singular values, cosines and norms of well-scaled matrices this small carry a few dozen roundings.
ROUNDING = 1e-13


def unit_atoms(m, d, rng):
    D = rng.standard_normal((m, d))
    return D / np.linalg.norm(D, axis=0)


class TestCoherence:
    def test_is_the_largest_cosine_of_two_atoms(self, rng):
        D = unit_atoms(5, 7, rng)
        expected = max(abs(D[:, i] @ D[:, j]) for i in range(7) for j in range(i))
        assert coherence(D) == pytest.approx(expected, rel=ROUNDING)
        assert coherence(D * rng.uniform(-9, 9, size=7)) == pytest.approx(expected, rel=ROUNDING)

    def test_coherence_is_0_for_orthogonal_and_1_for_parallel_atoms(self):
        assert coherence(np.eye(4)) == 0.0
        assert coherence(np.ones((3, 1))) == 0.0
        assert coherence(np.array([[0.1, -0.3], [0.1, -0.3], [0.1, -0.3]])) == pytest.approx(
            1.0, rel=ROUNDING
        )

    def test_atoms_of_extreme_norm_neither_overflow_nor_vanish(self):
        # A power of two scales without rounding.
        assert coherence(np.array([[3.0, 0.0], [4.0, 1.0]]) * [2.0**700, 2.0**-700]) == pytest.approx(
            0.8, rel=ROUNDING
        )


class TestRecovery:
    def test_undoes_permutation_sign_and_norm(self, rng):
        truth = unit_atoms(16, 32, rng)
        order, factors = rng.permutation(32), rng.uniform(1, 2, size=32) * rng.choice([-1, 1], size=32)
        shuffled = truth[:, order] * factors
        permutation, signs, cosines = match(shuffled, truth)
        np.testing.assert_array_equal(order[permutation], np.arange(32))
        np.testing.assert_array_equal(signs, np.sign(factors)[permutation])
        np.testing.assert_allclose(cosines, 1.0, rtol=ROUNDING)
        assert recovery(shuffled, truth) == 1.0

    def test_counts_the_atoms_within_the_threshold(self, rng):
        truth = np.eye(12)[:, :10]
        angles = np.zeros(10)
        angles[:4] = np.arccos([0.999, 0.992, 0.988, 0.5])
        dictionary = truth * np.cos(angles)
        dictionary[11] = np.sin(angles)
        assert recovery(dictionary, truth) == 0.8
        assert recovery(dictionary, truth, threshold=0.98) == 0.9
        assert recovery(dictionary, truth, threshold=0.995) == 0.7

    def test_one_atom_cannot_find_two(self, rng):
        # Both true atoms are within the threshold of the first atom, and only of the first.
        truth = np.array([[1.0, np.cos(0.05)], [0.0, np.sin(0.05)]])
        assert recovery(np.array([[1.0, 0.0], [0.02, 1.0]]), truth) == 0.5

    def test_the_assignment_is_optimal_and_not_greedy(self):
        # The closest pair are the first two atoms, but taking it leaves a pair at 80 degrees.
        def atoms(*degrees):
            return np.array([np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))])

        permutation, _, cosines = match(atoms(0, 30), atoms(10, -50))
        np.testing.assert_array_equal(permutation, [1, 0])
        np.testing.assert_allclose(cosines, np.cos(np.deg2rad([20, 50])), rtol=ROUNDING)

    def test_different_numbers_of_atoms(self, rng):
        truth = unit_atoms(16, 8, rng)
        more = np.hstack([unit_atoms(16, 5, rng), -truth])
        np.testing.assert_array_equal(match(more, truth).permutation, np.arange(5, 13))
        assert recovery(more, truth) == 1.0

        permutation, signs, cosines = match(truth[:, 2:5], truth)
        np.testing.assert_array_equal(permutation, [-1, -1, 0, 1, 2, -1, -1, -1])
        np.testing.assert_array_equal(signs, permutation >= 0)
        np.testing.assert_array_equal(cosines > 0, permutation >= 0)
        assert recovery(truth[:, 2:5], truth) == 3 / 8

    @pytest.mark.parametrize(
        ("call", "sentence"),
        [
            (
                lambda: recovery(np.eye(3), np.eye(4)),
                "atoms of length m=3, but true_dictionary of length m=4",
            ),
            (lambda: recovery(np.eye(3), np.eye(3), threshold=1.0), r"threshold=1.0 is not in \[0, 1\)"),
            (lambda: recovery(np.diag([1.0, 0, 1]), np.eye(3)), "dictionary column 1 is zero"),
            (lambda: recovery(np.eye(3), np.diag([1.0, 1, 0])), "true_dictionary column 2 is zero"),
            (lambda: coherence(np.diag([1, np.nan])), "dictionary holds nan at row 1, column 1"),
            (lambda: coherence(np.ones(3)), r"dictionary has shape \(3,\)"),
            (lambda: coherence(np.eye(3) * 1j), "dictionary has dtype complex128"),
        ],
    )
    def test_invalid_dictionaries_are_named(self, call, sentence):
        with pytest.raises((ValueError, TypeError), match=sentence):
            call()


def test_coherence_of_many_atoms_needs_no_square_matrix():
    rng = np.random.default_rng(0)
    D = rng.standard_normal((3, 700))
    D[:, 650] = -D[:, 20] + 1e-3 * rng.standard_normal(3)  # in different blocks of rows
    unit = D / np.linalg.norm(D, axis=0)
    gram = np.abs(unit.T @ unit) - np.eye(700)
    assert coherence(D) == pytest.approx(gram.max(), abs=1e-15)
