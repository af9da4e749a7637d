"""What a line searcher finds of a cost and of φ, and what it does without."""

import numpy as np
from pymanopt.manifolds import Euclidean

import manifold_dl as mdl
from manifold_dl.datasets import synthetic
from manifold_dl.line_search import GoldenSection
from manifold_dl.line_search.protocol import members_of_cost, members_of_restriction


def test_cost_of_a_dictionary_problem_has_every_member():
    D, X, Y = synthetic(8, 12, 40, sparsity=2, rng=0)
    members = members_of_cost(mdl.update_problem(Y, X, mu=0.1).cost)
    assert all(member is not None for member in members)
    assert members.restrict is not None and members.gradient_norms is not None
    phi = members_of_restriction(members.restrict(D, np.zeros_like(D)))
    assert phi.derivative is not None
    # On a direction of zero nothing changes, so φ′ is exactly 0.
    assert phi.derivative(0.5) == 0
    np.testing.assert_allclose(members.scale, np.sum(Y**2), rtol=1e-12)  # a sum in another order
    assert members.gradient_norms(D).shape == (12,)


def test_restriction_without_commit_and_derivative_gets_the_defaults():
    derivative, commit = members_of_restriction(lambda t: t * t)
    assert derivative is None
    assert commit(0.5, np.zeros(1)) is None


def test_scale_of_a_cost_decides_which_slope_is_flat():
    def cost(x):
        return 5.0 - 1e-3 * x[0] + x[0] ** 2

    def steps(scale):
        cost.scale = scale
        step, _ = GoldenSection(g_min=1e-6).search(cost, Euclidean(1), np.zeros(1), np.ones(1), 5.0, -1e-3)
        return step

    assert steps(1.0) > 0
    assert steps(1e4) == 0  # the slope is below 1e-6 of this scale
