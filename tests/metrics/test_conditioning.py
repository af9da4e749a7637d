"""Condition numbers: agreement with NumPy signal by signal, and invariances."""

import numpy as np
import pytest
import scipy.sparse

from manifold_dl.metrics import (
    condition_number,
    condition_numbers,
)

# Singular values, cosines and norms of well-scaled matrices this small carry a few dozen roundings.
ROUNDING = 1e-13


def unit_atoms(m, d, rng):
    D = rng.standard_normal((m, d))
    return D / np.linalg.norm(D, axis=0)


@pytest.fixture
def mask(rng):
    """32 atoms, 60 signals, supports of every size from 0 to 6."""
    mask = np.zeros((32, 60), dtype=bool)
    for j in range(60):
        mask[rng.choice(32, size=j % 7, replace=False), j] = True
    return mask


class TestConditionNumber:
    def test_agrees_with_numpy_signal_by_signal(self, rng, mask):
        D = unit_atoms(16, 32, rng)
        expected = [np.linalg.cond(D[:, column]) if column.any() else 1.0 for column in mask.T]
        kappa, per_signal = condition_number(D, mask, distribution=True)
        np.testing.assert_allclose(per_signal, expected, rtol=ROUNDING)
        assert kappa == per_signal.max() == condition_number(D, mask)

    def test_every_form_of_a_support_means_the_same(self, rng, mask):
        D = unit_atoms(16, 32, rng)
        indices = np.full((60, 6), -1)
        for j, column in enumerate(mask.T):
            atoms = rng.permutation(np.flatnonzero(column))
            # Padding may stand anywhere, not only behind the last atom.
            indices[j, rng.choice(6, size=len(atoms), replace=False)] = atoms
        rows, columns = np.nonzero(mask)
        stored_zeros = scipy.sparse.coo_array((np.zeros(len(rows)), (rows, columns)), shape=mask.shape)
        twice = scipy.sparse.coo_array(
            (np.ones(2 * len(rows)), (np.tile(rows, 2), np.tile(columns, 2))), shape=mask.shape
        )
        expected = condition_numbers(D, mask)
        for support in (
            mask * rng.standard_normal(mask.shape),
            indices,
            indices.tolist(),
            scipy.sparse.csc_array(mask),
            scipy.sparse.csr_matrix(mask),
            stored_zeros,
            twice,
        ):
            # The order of the atoms in a support may differ, which changes the rounding.
            np.testing.assert_allclose(condition_numbers(D, support), expected, rtol=ROUNDING)

    def test_large_batches_agree_with_small_ones(self, rng):
        # 1024·8·1024 numbers are more than one piece holds.
        D = unit_atoms(1024, 64, rng)
        indices = np.tile(rng.permuted(np.tile(np.arange(64), (16, 1)), axis=1)[:, :8], (64, 1))
        per_signal = condition_numbers(D, indices)
        np.testing.assert_array_equal(per_signal, np.tile(per_signal[:16], 64))

    def test_ignores_signs_and_rotations(self, rng, mask):
        D = unit_atoms(16, 32, rng)
        Q = np.linalg.qr(rng.standard_normal((16, 16)))[0]
        signs = rng.choice([-1, 1], size=32)
        np.testing.assert_allclose(
            condition_numbers(Q @ D * signs, mask), condition_numbers(D, mask), rtol=ROUNDING
        )

    def test_two_atoms_at_a_known_angle(self):
        # Two unit atoms with cosine c have singular values √(1 ± c).
        for c in (0.0, 0.5, 0.999):
            D = np.array([[1.0, c], [0.0, np.sqrt(1 - c**2)]])
            # 1 − c of the larger cosine is known to about ε/(1 − c).
            assert condition_number(D, [[0, 1]]) == pytest.approx(np.sqrt((1 + c) / (1 - c)), rel=1e-12)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_dependent_atoms_are_infinite_in_the_precision_of_the_dictionary(self, rng, dtype):
        D = unit_atoms(16, 4, rng).astype(dtype)
        D[:, 3] = (D[:, 0] + D[:, 1]) / np.linalg.norm(D[:, 0] + D[:, 1])
        per_signal = condition_numbers(D, [[0, 1, 3], [0, 1, 2]])
        assert per_signal[0] == np.inf
        assert per_signal[1] < 10

    def test_more_atoms_than_dimensions_are_dependent(self, rng):
        assert condition_number(unit_atoms(3, 5, rng), [[0, 1, 2, 3]]) == np.inf

    def test_a_zero_atom_is_singular_even_alone(self):
        np.testing.assert_array_equal(
            condition_numbers([[1.0, 0.0], [0.0, 0.0]], [[0, 1], [0, -1], [1, -1]]), [np.inf, 1, np.inf]
        )

    def test_no_signals_is_perfectly_conditioned(self):
        kappa, per_signal = condition_number(np.eye(3), np.zeros((3, 0), dtype=bool), distribution=True)
        assert kappa == 1.0
        assert per_signal.shape == (0,)

    @pytest.mark.parametrize(
        ("support", "sentence"),
        [
            ([[0, 4]], "atom 4, but the dictionary has atoms 0 to 3"),
            ([[0, -2]], "atom -2"),
            ([[0, 1], [2, 2]], "signal 1 names atom 2 twice"),
            ([0, 1], r"shape \(2,\)"),
            (np.ones((3, 7), dtype=bool), "3 atoms, but the dictionary has 4"),
            (scipy.sparse.csc_array((3, 7)), "3 atoms, but the dictionary has 4"),
            (np.full((4, 7), np.nan), "holds nan"),
            (np.ones((4, 7), dtype=complex), "dtype complex128"),
        ],
    )
    def test_refuses_what_is_not_a_support(self, support, sentence):
        with pytest.raises((ValueError, TypeError), match=sentence):
            condition_numbers(np.eye(4), support)


class TestWeights:
    def test_agrees_with_numpy_signal_by_signal(self, rng, mask):
        D, weights = unit_atoms(16, 32, rng), rng.uniform(0.2, 3.0, (16, 60))
        weights[rng.random(weights.shape) < 0.3] = 0
        weights[:6] = np.maximum(weights[:6], 0.2)
        weights[:, 5::9] = 0  # no entry at all
        expected = [
            np.linalg.cond(np.sqrt(w)[:, None] * D[:, column]) if column.any() and w.any() else 1.0
            for column, w in zip(mask.T, weights.T, strict=True)
        ]
        kappa, per_signal = condition_number(D, mask, distribution=True, weights=weights)
        np.testing.assert_allclose(per_signal, expected, rtol=1e-11)
        assert kappa == per_signal.max()

    def test_weights_of_signals_leave_out_those_of_zero(self, rng, mask):
        D, weights = unit_atoms(16, 32, rng), rng.uniform(0.2, 3.0, 60)
        weights[::4] = 0
        expected = np.where(weights > 0, condition_numbers(D, mask), 1.0)
        np.testing.assert_allclose(condition_numbers(D, mask, weights=weights), expected, rtol=1e-12)

    def test_fewer_entries_than_atoms_are_dependent(self, rng):
        D, weights = unit_atoms(16, 32, rng), np.ones((16, 1))
        weights[3:] = 0
        assert condition_number(D, [[0, 1, 2, 3]], weights=weights) == np.inf
