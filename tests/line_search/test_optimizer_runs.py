"""Line searches inside Pymanopt's optimizers, on problems with a known minimum."""

from itertools import pairwise

import numpy as np
import pymanopt
import pytest
from pymanopt.manifolds import Elliptope, Euclidean, Grassmann, Product, Sphere, Stiefel
from pymanopt.optimizers import ConjugateGradient, SteepestDescent
from search_cases import SEARCHERS, every_searcher

from manifold_dl.line_search import GoldenSection, WolfeSearch, trace


def rayleigh():
    """The smallest eigenvalue, on the sphere; the gradient by autograd."""
    A = symmetric(8)
    manifold = Sphere(8)

    @pymanopt.function.autograd(manifold)
    def cost(x):
        return x @ A @ x

    return pymanopt.Problem(manifold, cost), unit(8), np.linalg.eigvalsh(A)[0]


def subspace(geometry):
    """Minus the sum of the two largest eigenvalues, over orthonormal pairs."""

    def make():
        A = symmetric(6)
        manifold = geometry(6, 2)
        cost = pymanopt.function.numpy(manifold)(lambda x: -np.trace(x.T @ A @ x))
        gradient = pymanopt.function.numpy(manifold)(lambda x: -2 * A @ x)
        start = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 2)))[0]
        return (
            pymanopt.Problem(manifold, cost, euclidean_gradient=gradient),
            start,
            -np.linalg.eigvalsh(A)[-2:].sum(),
        )

    return make


def quadratic():
    """A convex quadratic with condition number 20."""
    manifold, target = Euclidean(5), np.arange(5.0)
    weights = np.geomspace(1, 20, 5)
    cost = pymanopt.function.numpy(manifold)(lambda x: float(weights @ (x - target) ** 2) - 7)
    gradient = pymanopt.function.numpy(manifold)(lambda x: 2 * weights * (x - target))
    return pymanopt.Problem(manifold, cost, euclidean_gradient=gradient), np.full(5, 10.0), -7.0


def elliptope():
    """Closest correlation matrix of rank 3, on a manifold that has a retraction but no exponential map."""
    manifold = Elliptope(5, 3)
    goal = np.random.default_rng(2).normal(size=(5, 3))
    goal /= np.linalg.norm(goal, axis=1, keepdims=True)
    G = goal @ goal.T

    @pymanopt.function.autograd(manifold)
    def cost(x):
        return ((x @ x.T - G) ** 2).sum()

    start = goal + 0.2 * np.random.default_rng(3).normal(size=(5, 3))
    return pymanopt.Problem(manifold, cost), start / np.linalg.norm(start, axis=1, keepdims=True), 0.0


def best_rank_one():
    """Minus the largest singular value, on a product of two spheres: points and directions are lists."""
    A = np.random.default_rng(4).normal(size=(4, 6))
    manifold = Product([Sphere(4), Sphere(6)])

    @pymanopt.function.autograd(manifold)
    def cost(u, v):
        return -(u @ A @ v)

    return pymanopt.Problem(manifold, cost), [unit(4), unit(6)], -np.linalg.svd(A)[1][0]


def symmetric(n):
    """Eigenvalues 1, 2, ..., n in a random basis: gaps wide enough for steepest descent."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
    return Q @ np.diag(np.arange(1.0, n + 1)) @ Q.T


def unit(n):
    x = np.random.default_rng(5).normal(size=n)
    return x / np.linalg.norm(x)


PROBLEMS = {
    "rayleigh": rayleigh,
    "stiefel": subspace(Stiefel),
    "grassmann": subspace(Grassmann),
    "quadratic": quadratic,
    "elliptope": elliptope,
    "rank one": best_rank_one,
}


def solve(problem, start, optimizer, searcher):
    run = optimizer(line_searcher=searcher, max_iterations=200, verbosity=0, log_verbosity=1)
    with trace() as searches:
        result = run.run(problem, initial_point=start)
    return result, searches


@every_searcher
@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient])
@pytest.mark.parametrize("name", PROBLEMS)
def test_optimizers_reach_the_known_minimum(searcher, optimizer, name):
    problem, start, minimum = PROBLEMS[name]()
    result, searches = solve(problem, start, optimizer, searcher)
    # Pymanopt stops at a gradient of 1e-6, or 1e-12 in a cost whose curvature is about 1. Steepest descent on
    # the elliptope is still on its way after 200 steps.
    assert result.cost == pytest.approx(minimum, abs=1e-9 if name != "elliptope" else 1e-6)
    costs = result.log["iterations"]["cost"]
    assert all(after <= before for before, after in pairwise(costs))
    assert all(len({t for t, _ in s.probes}) == len(s.probes) <= searcher.max_probes for s in searches)


@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient])
@pytest.mark.parametrize("name", PROBLEMS)
def test_wolfe_search_needs_several_times_fewer_probes(optimizer, name):
    probes = {}
    for searcher in SEARCHERS:
        problem, start, _ = PROBLEMS[name]()
        _, searches = solve(problem, start, optimizer, searcher)
        probes[type(searcher)] = sum(len(s.probes) for s in searches)
    assert probes[GoldenSection] >= 4 * probes[WolfeSearch]


@every_searcher
@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient])
def test_a_start_at_the_minimum_stays_there(searcher, optimizer):
    problem, _, minimum = quadratic()
    start = np.arange(5.0)
    result, searches = solve(problem, start, optimizer, searcher)
    assert result.point is start
    assert result.cost == minimum
    assert not any(s.probes for s in searches)


@every_searcher
@pytest.mark.parametrize("name", ["rayleigh", "stiefel"])
def test_points_do_not_drift_off_the_manifold(searcher, name):
    # Left alone, exp leaves the manifold by 1e-16, and where the cost falls there, a step multiplies that:
    # the same searches without the retraction were 1e-8 (sphere) and 5e-6 (Stiefel) off after 100 steps.
    problem, start, _ = PROBLEMS[name]()
    run = SteepestDescent(searcher, max_iterations=100, min_gradient_norm=0, min_step_size=0, verbosity=0)
    x = run.run(problem, initial_point=start).point
    # A few roundings of sums of squares.
    np.testing.assert_allclose(x.T @ x, np.eye(2) if name == "stiefel" else 1.0, atol=4e-15)


@every_searcher
def test_memory_carries_over_only_if_the_line_searcher_is_reused(searcher):
    problem, start, _ = quadratic()
    optimizer = SteepestDescent(line_searcher=searcher, max_iterations=1, verbosity=0)
    first = []
    for reuse in [False, False, True]:
        with trace() as searches:
            optimizer.run(problem, initial_point=start, reuse_line_searcher=reuse)
        first.append(searches[0].probes[0])
    assert first[0] == first[1] != first[2]
