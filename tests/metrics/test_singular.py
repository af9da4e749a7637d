"""Singular and stationary points, Section V of the paper."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from pymanopt.manifolds import Oblique
from pymanopt.optimizers import ConjugateGradient, SteepestDescent

from manifold_dl.line_search import WolfeSearch
from manifold_dl.metrics import (
    Verdict,
    condition_number,
    is_singular,
)
from manifold_dl.problem.update_problem import update_problem


def unit_atoms(m, d, rng):
    D = rng.standard_normal((m, d))
    return D / np.linalg.norm(D, axis=0)


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

    def test_regular_point_with_a_gradient_is_neither(self):
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

    def test_weights_of_entries_enter_condition_number_and_gradient(self, rng):
        D, atoms = unit_atoms(8, 12, rng), np.argsort(rng.random((20, 12)), axis=1)[:, :3]
        Y, W = rng.standard_normal((8, 20)), rng.uniform(0.0, 2.0, (8, 20))
        W *= rng.random(W.shape) < 0.7
        diagnosis = is_singular(update_problem(Y, atoms, weights=W), D)
        kappa, smallest, gradient = [], [], np.zeros_like(D)
        for j, I in enumerate(atoms):
            own = np.sqrt(W[:, j])[:, None] * D[:, I]
            values = np.linalg.svd(own, compute_uv=False)
            kappa.append(values[0] / values[-1])
            smallest.append(values[-1])
            x = np.linalg.lstsq(own, np.sqrt(W[:, j]) * Y[:, j], rcond=None)[0]
            gradient[:, I] -= 2 * np.outer(W[:, j] * (Y[:, j] - D[:, I] @ x), x)
        tangent = gradient - D * np.sum(D * gradient, axis=0)
        assert diagnosis.condition_number == pytest.approx(max(kappa), rel=1e-8)
        assert diagnosis.smallest_singular_value == pytest.approx(min(smallest), rel=1e-8)
        norm = np.linalg.norm(tangent) / np.sum(W * Y**2)
        assert diagnosis.gradient_norm == pytest.approx(norm, rel=1e-8)

    def test_zero_signals_are_stationary(self):
        assert is_singular(self.problem(np.zeros(3)), self.atoms(0.5)).verdict is Verdict.STATIONARY

    def test_descent_ends_singular_without_a_ridge_and_stationary_with_one(self, rng):
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

    def test_text_of_the_diagnosis_is_a_sentence_with_numbers(self):
        text = str(is_singular(self.problem([1.0, 2.0, 0.0]), self.atoms(1e-3)))
        assert text.startswith("singular: some support is nearly dependent")
        assert "κ = 1.04e+03" in text

    def test_refuses_a_problem_without_a_support(self):
        with pytest.raises(TypeError, match="SimpleNamespace without support, scale"):
            is_singular(SimpleNamespace(riemannian_gradient=None, manifold=None), np.eye(2))
