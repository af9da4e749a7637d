"""Faults of optimizers: the user's are named, and Pymanopt's at a gradient of zero do no harm."""

from dataclasses import dataclass

import numpy as np
import pytest
from pymanopt.optimizers import ConjugateGradient, SteepestDescent

from manifold_dl import OMP, ComponentError, SimCO, WolfeSearch, datasets
from manifold_dl.optimizers import OptimizerRun

CODER = OMP(sparsity=2)
Y = datasets.synthetic(8, 12, 80, sparsity=2, snr_db=20, rng=0).signals
START = Y[:, :12] / np.linalg.norm(Y[:, :12], axis=0)
CODES = CODER.encode(Y, START)


class TestFaultsOfOptimizers:
    class Dividing(SteepestDescent):
        def run(self, problem, **options):
            return 1 / 0

    def test_a_division_by_zero_of_the_users_is_not_swallowed(self):
        with pytest.raises(
            ComponentError, match=r"optimizer .*Dividing.* raised ZeroDivisionError"
        ) as caught:
            SimCO(self.Dividing())(Y, START, CODES)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)

    @pytest.mark.parametrize("threshold", [0, 1e-6])
    @pytest.mark.parametrize("optimizer_type", [SteepestDescent, ConjugateGradient])
    @pytest.mark.parametrize("schedule", [None, [[0], [1]]], ids=["all", "one by one"])
    def test_pymanopt_at_a_gradient_of_zero_stays_there(self, optimizer_type, schedule, threshold):
        # Two orthogonal atoms that fit their signals exactly: the residual, and the gradient, are zero.
        D, X = np.eye(3)[:, :2], np.array([[1.0, 0.0, 2.0], [0.0, 4.0, 0.0]])
        rule = SimCO(optimizer_type(min_gradient_norm=threshold), schedule=schedule or [[0, 1]])
        D_new, X_new = rule(D @ X, D, X)
        np.testing.assert_array_equal(D_new, D)
        np.testing.assert_array_equal(X_new.toarray(), X)

    @pytest.mark.parametrize("optimizer_type", [SteepestDescent, ConjugateGradient])
    def test_a_gradient_that_becomes_zero_on_the_way_keeps_what_was_gained(self, optimizer_type):
        class OneStep:
            """Goes to the first axis, where the only signal is fitted exactly."""

            def search(self, objective, manifold, x, d, f0, df0):
                return 1.0, np.eye(2)[:, :1]

        optimizer = optimizer_type(line_searcher=OneStep(), min_gradient_norm=0)
        D, _ = SimCO(optimizer)(np.array([[2.0], [0.0]]), np.array([[0.6], [0.8]]), np.array([[1.0]]))
        np.testing.assert_array_equal(D, np.eye(2)[:, :1])

    def test_a_line_searcher_of_the_user_may_keep_its_step(self):
        class Remembering(WolfeSearch):
            pass

        @dataclass
        class Forgetting:
            """A searcher that does not declare that its memory may be kept."""

            first: list

            def search(self, objective, manifold, x, d, f0, df0):
                if not hasattr(self, "_last"):
                    self.first.append(None)
                self._last = 1.0
                return WolfeSearch().search(objective, manifold, x, d, f0, df0)

            def __deepcopy__(self, memo):
                return Forgetting(self.first)

        kept = OptimizerRun(SteepestDescent(line_searcher=Remembering(), max_iterations=2))
        assert begin_on_all(kept).memory.keys() == {"t", "ratio"}
        first = []
        rule = SimCO(
            SteepestDescent(line_searcher=Forgetting(first), max_iterations=3), schedule=[[0, 1], [2], [3]]
        )
        rule(Y, START, CODES)
        assert len(first) == 3  # once for every problem


def begin_on_all(run):
    from manifold_dl.updates.simco import SimCORun

    SimCORun(SimCO(mu=0.1), run)(Y, START, CODES)
    return run
