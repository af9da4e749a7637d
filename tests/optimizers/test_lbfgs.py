"""`LBFGS`: known minima on several manifolds, its directions, and dictionary problems."""

import numpy as np
import pytest
from lbfgs_problems import PROBLEMS, autograd_problem, dominant_subspace_on_stiefel, silent, start
from pymanopt.manifolds import Stiefel
from pymanopt.optimizers import TrustRegions
from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher

from manifold_dl.datasets import synthetic
from manifold_dl.line_search import WolfeSearch
from manifold_dl.problem.update_problem import update_problem


@pytest.mark.parametrize("setting", PROBLEMS)
class TestMinima:
    @pytest.mark.parametrize(
        "searcher",
        [None, WolfeSearch(curvature=0.1), BackTrackingLineSearcher(), AdaptiveLineSearcher()],
        ids=lambda searcher: type(searcher).__name__,
    )
    def test_reaches_the_known_minimum(self, setting, searcher):
        manifold, cost, minimum = setting()
        problem = autograd_problem(manifold, cost)
        result = silent(line_searcher=searcher).run(problem, initial_point=start(manifold))
        # A gradient norm of 1e-6 leaves an error of about its square over the curvature; rounding of the cost
        # may stop the search a little earlier.
        assert result.cost == pytest.approx(minimum, rel=1e-8)

    def test_reaches_the_minimum_of_the_trust_region(self, setting):
        manifold, cost, _ = setting()
        problem = autograd_problem(manifold, cost)
        ours = silent().run(problem, initial_point=start(manifold))
        theirs = TrustRegions(verbosity=0).run(problem, initial_point=start(manifold))
        assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)

    @pytest.mark.parametrize("memory", [1, 3, 50])
    def test_cost_decreases_with_any_memory(self, setting, memory):
        manifold, cost, minimum = setting()
        result = silent(memory=memory).run(autograd_problem(manifold, cost), initial_point=start(manifold))
        # The cost of a search is that of its point; a few roundings are allowed for points brought back.
        assert np.diff(result.log["iterations"]["cost"]).max() <= 1e-13 * abs(minimum)
        # One pair is barely more than a gradient, and slow: a looser tolerance.
        assert result.cost == pytest.approx(minimum, rel=1e-8 if memory > 1 else 1e-6)


class TestDictionaryUpdate:
    """The minimum of Pymanopt's trust region, on the problem that this optimizer is here for."""

    @pytest.mark.parametrize("mu", [0.0, 0.1])
    @pytest.mark.parametrize("n", [60, 150, 300])
    def test_reaches_the_minimum_of_the_trust_region(self, n, mu):
        rng = np.random.default_rng(n)
        true, X, Y = synthetic(16, 32, n, sparsity=4, snr_db=20, rng=rng)
        problem = update_problem(Y, X.astype(bool), mu=mu)
        # There are many minima, and from afar two methods may end in two of them: begin near the truth.
        D = problem.manifold.retraction(true, 0.05 * rng.standard_normal(true.shape))
        ours = silent(min_gradient_norm=1e-6).run(problem, initial_point=D)
        theirs = TrustRegions(verbosity=0, min_gradient_norm=1e-6).run(problem, initial_point=D)
        # What is left of the cost is the square of the gradient norm over the curvature, far less than 1e-8.
        assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)
        # Rounding of a cost of about 100 hides what a gradient of 1e-6 promises: the search ends earlier.
        assert ours.gradient_norm < 1e-5
        assert problem.manifold.dist(ours.point, theirs.point) < 1e-4

    def test_the_restriction_to_a_geodesic_is_used(self):
        _, X, Y = synthetic(16, 32, 60, sparsity=4, rng=0)
        problem = update_problem(Y, X.astype(bool), mu=0.1)
        result = silent(max_iterations=5).run(problem, initial_point=problem.manifold.random_point(0))
        assert problem.counts.probe >= 5
        # One value at the start, and one at every point accepted: none for a probe.
        assert problem.counts.value == result.iterations + 1


def test_dominant_subspace_on_stiefel_agrees_with_eigenvalues():
    A, cost = dominant_subspace_on_stiefel()
    problem = autograd_problem(Stiefel(20, 3), cost)
    x = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 3)))[0]
    ours = silent().run(problem, initial_point=x)
    theirs = TrustRegions(verbosity=0).run(problem, initial_point=x)
    # As above: the square of a gradient norm of 1e-6.
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)
    assert ours.cost == pytest.approx(-np.linalg.eigvalsh(A)[-3:].sum(), rel=1e-8)
