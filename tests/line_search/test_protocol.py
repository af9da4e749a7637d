"""What a line searcher finds of a cost and of φ, and what it does without."""

import numpy as np
import pytest
from pymanopt.manifolds import Euclidean
from pymanopt.optimizers import SteepestDescent
from pymanopt.optimizers.line_search import BackTrackingLineSearcher

import manifold_dl as mdl
from manifold_dl.datasets import synthetic
from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.line_search.protocol import (
    keeps_step,
    members_of_cost,
    members_of_restriction,
    memory_of,
    restore_memory,
)
from manifold_dl.optimizers.running import OptimizerRun


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


class Doubling:
    """Half of the step that the last search accepted is doubled until the cost rises."""

    keeps_step = True

    def __init__(self):
        self.last, self.firsts = 1.0, []

    @property
    def memory(self):
        return {"last": np.float32(self.last)}

    def restore(self, memory):
        self.last = memory["last"]

    def __deepcopy__(self, memo):
        copy = Doubling()
        copy.last, copy.firsts = self.last, self.firsts
        return copy

    def search(self, objective, manifold, x, d, f0, df0):
        norm, t = manifold.norm(x, d), self.last / 2
        self.firsts.append(t)
        while t > 1e-12 and objective(manifold.retraction(x, t * d)) >= f0:
            t /= 2
        self.last = t
        return t * norm, manifold.retraction(x, t * d)


class WithoutMemory:
    keeps_step = True


@pytest.mark.parametrize("make", [GoldenSection, WolfeSearch])
def test_restored_searcher_makes_the_probes_of_the_one_that_was_not_interrupted(make):
    def search(searcher, a):
        probes = []

        def cost(x):
            probes.append(float(x[0]))
            return float((x[0] - a) ** 4 + (x[0] - a) ** 2)

        searcher.search(cost, Euclidean(1), np.zeros(1), np.ones(1), a**4 + a**2, -4 * a**3 - 2 * a)
        return probes

    whole, resumed = make(), make()
    search(whole, 3.0)
    stored = memory_of(whole)
    restore_memory(resumed, stored)
    assert all(value is None or type(value) is float for value in stored.values())
    # Without the memory the search begins with another probe.
    assert search(resumed, 3.5) == search(whole, 3.5) != search(make(), 3.5)


def test_memory_of_a_searcher_that_does_not_keep_its_step_is_empty():
    searcher = BackTrackingLineSearcher()
    searcher.memory = 7  # what it means by the name is not ours to read
    assert not keeps_step(searcher) and not keeps_step(None)
    assert memory_of(searcher) == memory_of(None) == memory_of(WithoutMemory()) == {}
    assert restore_memory(WithoutMemory(), {"t": 1.0}) is None


def test_declared_memory_of_a_users_searcher_continues_in_another_run():
    _, X, Y = synthetic(8, 12, 60, sparsity=2, snr_db=20, rng=0)
    problem = mdl.update_problem(Y, X, mu=0.1)
    start = problem.manifold.random_point(1)
    first = OptimizerRun(SteepestDescent(line_searcher=Doubling(), max_iterations=3))
    point = first.minimize(problem, start)
    assert first.memory.keys() == {"last"} and type(first.memory["last"]) is float
    searcher = Doubling()
    second = OptimizerRun(SteepestDescent(line_searcher=searcher, max_iterations=3), first.memory)
    second.minimize(problem, point)
    assert searcher.firsts[0] == first.memory["last"] / 2
