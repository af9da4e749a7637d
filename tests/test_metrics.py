"""Metrics: invariances, agreement with a loop over signals, and the singular points of the paper."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from pymanopt.manifolds import Oblique
from pymanopt.optimizers import ConjugateGradient, SteepestDescent

from manifold_dl.line_search import WolfeSearch
from manifold_dl.metrics import (
    Verdict,
    coherence,
    condition_number,
    condition_numbers,
    is_singular,
    match,
    recovery,
)
from manifold_dl.problem.update_problem import update_problem

# Singular values, cosines and norms of well-scaled matrices this small carry a few dozen roundings.
ROUNDING = 1e-13


def unit_atoms(m, d, rng):
    D = rng.standard_normal((m, d))
    return D / np.linalg.norm(D, axis=0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


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

    def test_pieces_of_a_large_batch_are_put_together_again(self, rng):
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


class TestCoherence:
    def test_is_the_largest_cosine_of_two_atoms(self, rng):
        D = unit_atoms(5, 7, rng)
        expected = max(abs(D[:, i] @ D[:, j]) for i in range(7) for j in range(i))
        assert coherence(D) == pytest.approx(expected, rel=ROUNDING)
        assert coherence(D * rng.uniform(-9, 9, size=7)) == pytest.approx(expected, rel=ROUNDING)

    def test_extremes(self):
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
    def test_errors_name_the_culprit(self, call, sentence):
        with pytest.raises((ValueError, TypeError), match=sentence):
            call()


class TestIsSingular:
    """One signal and two atoms that differ by 2δ in their second entry.

    Their span is the same for every δ > 0, and so is the residual; the coefficients that reach a signal with
    a second entry of its own, and with them the gradient −2rxᵀ, grow like 1/δ: the picture of Section V.
    """

    @staticmethod
    def problem(y, d=2):
        y = np.asarray(y, dtype=float)

        def gradient(D):
            x = np.linalg.lstsq(D, y, rcond=None)[0]
            return manifold.projection(D, -2 * np.outer(y - D @ x, x))

        manifold = Oblique(len(y), d)
        return SimpleNamespace(
            manifold=manifold,
            riemannian_gradient=gradient,
            support=scipy.sparse.csc_array(np.ones((d, 1))),
            scale=float(y @ y),
        )

    @staticmethod
    def atoms(delta):
        D = np.array([[1.0, 1.0], [delta, -delta], [0.3, 0.3]])
        return D / np.linalg.norm(D, axis=0)

    def test_a_minimum_is_stationary(self):
        D = self.atoms(0.5)
        diagnosis = is_singular(self.problem(D @ [1.0, 2.0]), D)
        assert diagnosis.verdict is Verdict.STATIONARY
        assert not diagnosis

    def test_nearly_collinear_atoms_with_a_large_gradient_are_singular(self):
        y = [1.0, 2.0, 0.0]
        norms = []
        for delta in (1e-2, 1e-4, 1e-6):
            diagnosis = is_singular(self.problem(y), self.atoms(delta))
            assert diagnosis
            assert diagnosis.verdict is Verdict.SINGULAR
            norms.append(diagnosis.gradient_norm)
        assert norms[0] > 0.1
        # The gradient grows like 1/δ: a factor 100 each time, up to terms of relative order δ.
        np.testing.assert_allclose(np.divide(norms[1:], norms[:-1]), 100, rtol=0.05)

    def test_exactly_collinear_atoms(self):
        diagnosis = is_singular(self.problem([1.0, 2.0, 0.0]), self.atoms(0.0))
        assert diagnosis
        assert diagnosis.condition_number == np.inf
        assert diagnosis.smallest_singular_value == 0.0

    def test_a_point_on_the_way_is_neither(self):
        diagnosis = is_singular(self.problem([1.0, 2.0, 0.0]), self.atoms(0.5))
        assert diagnosis.verdict is Verdict.NEITHER
        assert not diagnosis

    def test_a_vanishing_gradient_is_stationary_whatever_the_conditioning(self):
        D = self.atoms(1e-4)
        diagnosis = is_singular(self.problem(D @ [1.0, 1.0]), D)
        assert diagnosis.condition_number > 1e3
        assert diagnosis.verdict is Verdict.STATIONARY

    def test_ignores_the_scale_of_the_signals(self):
        y, D = np.array([1.0, 2.0, 0.0]), self.atoms(1e-3)
        small, large = (is_singular(self.problem(c * y), D) for c in (2.0**-100, 2.0**100))
        # Powers of two scale without rounding.
        assert small == large

    def test_an_overflowing_gradient_is_not_small(self):
        problem = self.problem([1.0, 2.0, 0.0])
        problem.riemannian_gradient = lambda D: np.full_like(D, np.nan)
        assert is_singular(problem, self.atoms(0.0))

    def test_zero_signals_are_stationary(self):
        assert is_singular(self.problem(np.zeros(3)), self.atoms(0.5)).verdict is Verdict.STATIONARY

    def test_the_two_ends_of_a_descent(self, rng):
        """Section VI-A: the same signals and the same start, without a ridge and with one."""
        truth, start = unit_atoms(16, 32, rng), unit_atoms(16, 32, rng)
        atoms = np.argsort(rng.random((78, 32)), axis=1)[:, :4]
        Y = np.einsum("mjs,js->mj", truth[:, atoms], rng.standard_normal((78, 4)))
        primitive, regularized = (update_problem(Y, atoms, mu=mu) for mu in (0.0, 0.01))

        settings = {"max_iterations": 300, "verbosity": 0, "line_searcher": WolfeSearch()}
        # κ = 34.7 here, and a start moved by 1e-12 changes no digit of that.
        stuck = SteepestDescent(**settings).run(primitive, initial_point=start).point
        assert is_singular(primitive, stuck)
        found = ConjugateGradient(**settings).run(regularized, initial_point=start).point
        assert is_singular(regularized, found).verdict is Verdict.STATIONARY
        assert condition_number(found, atoms) < 20 < condition_number(stuck, atoms)

    def test_speaks_in_sentences(self):
        text = str(is_singular(self.problem([1.0, 2.0, 0.0]), self.atoms(1e-3)))
        assert text.startswith("singular: some support is nearly dependent")
        assert "κ = 1.04e+03" in text

    def test_refuses_a_problem_without_a_support(self):
        with pytest.raises(TypeError, match="SimpleNamespace without support, scale"):
            is_singular(SimpleNamespace(riemannian_gradient=None, manifold=None), np.eye(2))
