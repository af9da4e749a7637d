"""What the paper proves, and the counting bound that goes past it, watched in the actual code."""

from itertools import pairwise

import numpy as np
import pytest
from pymanopt.optimizers import SteepestDescent, TrustRegions

from manifold_dl import update_problem
from manifold_dl.line_search import GoldenSection
from manifold_dl.manifolds import Spheres

# Theorem 1: with one atom, gradient descent finds the leading singular vector.

SINGULAR_VALUES = np.array([3.0, 2.0, 1.5, 1.0, 0.5, 0.2])
M, N = len(SINGULAR_VALUES), 10


def orthonormal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


@pytest.fixture
def rotated():
    """A matrix with the singular values above and random singular vectors; and the leading one."""
    rng = np.random.default_rng(0)
    U, V = orthonormal(rng, M), orthonormal(rng, N)
    return U * SINGULAR_VALUES @ V[:, :M].T, U[:, :1]


def rank_one(A, mu=0.0):
    """min_w ‖A − u wᵀ‖² + μ‖w‖² over unit vectors u."""
    return update_problem(A, np.ones((1, A.shape[1]), bool), mu=mu)


def angle(u, leading):
    """θ = arccos |⟨u, u₁⟩|, in the form that keeps its digits near 0."""
    cosine = abs(float(np.vdot(u, leading)))
    return np.arctan2(np.linalg.norm(u - leading * np.vdot(u, leading)), cosine)


def descend(problem, u, step, n_steps):
    """Plain gradient descent: small steps along the geodesics, and every point on the way."""
    path = [u]
    for _ in range(n_steps):
        u = problem.manifold.exp(u, -step * problem.riemannian_gradient(u))
        path.append(u)
    return path


def test_theorem_1_every_random_start_reaches_the_leading_singular_vector(rotated):
    A, leading = rotated
    optimizer = SteepestDescent(line_searcher=GoldenSection(), max_iterations=100, verbosity=0)
    for seed in range(200):
        problem = rank_one(A)
        result = optimizer.run(problem, initial_point=problem.manifold.random_point(seed))
        # The run ends at a gradient norm of 1e-6, or when rounding hides any decrease; near u₁ the gradient
        # is 2(σ₁² − σ₂²)θ = 10 θ, and f − f_min = 5 θ² is below the rounding of f from θ = 1e-8 on.
        assert angle(result.point, leading) < 1e-6
        # Eckart and Young: what is left are the other singular values.
        assert result.cost == pytest.approx(np.sum(SINGULAR_VALUES[1:] ** 2), rel=1e-11)


def test_lemma_1_a_path_in_the_bad_set_stays_there_exactly():
    # Where A is diagonal, u₁ is the first axis, and in the bad set every product with it is an exact zero:
    # no rounding can leave B, however long the path.
    A = np.zeros((M, N))
    np.fill_diagonal(A, SINGULAR_VALUES)
    problem = rank_one(A)
    u = np.random.default_rng(1).standard_normal((M, 1))
    u[0] = 0
    path = descend(problem, u / np.linalg.norm(u), step=0.05, n_steps=300)
    assert all(u[0] == 0 for u in path)
    # Within B the second singular vector is the best there is, and descent does find it.
    assert angle(path[-1], np.eye(M)[:, [1]]) < 1e-6


def test_lemma_1_for_any_other_matrix_up_to_rounding(rotated):
    A, leading = rotated
    problem = rank_one(A)
    u = np.random.default_rng(2).standard_normal((M, 1))
    u -= leading * np.vdot(leading, u)
    u /= np.linalg.norm(u)
    step, n_steps = 0.01, 40
    # B repels: near it the component along u₁ grows by at most 1 + 2 step (σ₁² − σ_min²) in a step, about
    # 1.18, and each step adds its own few roundings. In 40 steps that makes 1e-15 · 1.18⁴⁰/0.18 = 4e-12.
    growth = 1 + 2 * step * (SINGULAR_VALUES[0] ** 2 - SINGULAR_VALUES[-1] ** 2)
    bound = 1e-15 * growth**n_steps / (growth - 1)
    assert bound < 1e-11
    path = descend(problem, u, step, n_steps)
    assert all(abs(np.vdot(u, leading)) < bound for u in path)
    assert angle(path[0], path[-1]) > 0.1  # it did go somewhere


def test_lemma_2_the_angle_falls_along_the_path(rotated):
    A, leading = rotated
    problem = rank_one(A)
    for seed in range(20):
        path = descend(problem, problem.manifold.random_point(seed), step=0.01, n_steps=150)
        angles = [angle(u, leading) for u in path]
        assert 0 < angles[0] < np.pi / 2
        # Strictly, until θ itself is no more than the rounding of a unit vector.
        assert all(later < earlier for earlier, later in pairwise(angles) if earlier > 1e-12)
        assert angles[-1] < 1e-2 * angles[0]


def test_lemma_2_as_a_directional_derivative(rotated):
    A, leading = rotated
    problem, h = rank_one(A), 1e-6
    for seed in range(200):
        u = problem.manifold.random_point(seed)
        descent = -problem.riemannian_gradient(u)
        slope = (angle(problem.manifold.exp(u, h * descent), leading) - angle(u, leading)) / h
        assert slope < 0


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_a_ridge_does_not_move_the_minimiser_of_one_atom(rotated, mu):
    # f(u) = ‖A‖² − ‖Aᵀu‖²/(1 + μ), since uᵀu + μ = 1 + μ; the codes shrink by the same factor.
    A, leading = rotated
    problem = rank_one(A, mu)
    for seed in range(5):
        u = problem.manifold.random_point(seed)
        expected = np.sum(A**2) - np.sum((A.T @ u) ** 2) / (1 + mu)
        assert problem.cost(u) == pytest.approx(expected, rel=1e-14)
        np.testing.assert_allclose(problem.codes(u).toarray(), u.T @ A / (1 + mu), rtol=1e-13, atol=1e-14)
    u = descend(problem, problem.manifold.random_point(0), step=0.03, n_steps=300)[-1]
    assert angle(u, leading) < 1e-10


# The counting bound: d(m − 1) + nS unknowns, nm equations. With the support known n ≥ d(m − 1)/(m − S) = 40
# signals determine a 16×32 dictionary of which every signal uses four atoms; a trust region on a ridge that
# is taken away step by step finds it from hardly more.


def recovers(n, seed, m=16, d=32, sparsity=4):
    """Whether a random dictionary is found from n signals, their supports and a random start."""
    rng = np.random.default_rng(seed)
    true = Spheres(m, d).random_point(rng)
    support = np.array([rng.choice(d, sparsity, replace=False) for _ in range(n)])
    X = np.zeros((d, n))
    np.put_along_axis(X, support.T, rng.standard_normal((sparsity, n)), axis=0)
    Y, point = true @ X, Spheres(m, d).random_point(rng)
    optimizer = TrustRegions(max_iterations=60, min_gradient_norm=1e-12, verbosity=0)
    for mu in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0.0):
        problem = update_problem(Y, support, mu=mu, dictionary=true)
        point = optimizer.run(problem, initial_point=point).point
    return np.sum((Y - point @ problem.codes(point).toarray()) ** 2) / n < 1e-12


@pytest.mark.parametrize("seed", range(2))
def test_dictionaries_are_recovered_close_to_the_counting_bound(seed):
    assert recovers(n=52, seed=seed)


@pytest.mark.slow
def test_all_of_ten_dictionaries_are_recovered_from_52_signals():
    assert sum(recovers(n=52, seed=seed) for seed in range(10)) == 10


@pytest.mark.slow
def test_nine_of_ten_dictionaries_are_recovered_from_48_signals():
    assert sum(recovers(n=48, seed=seed) for seed in range(10)) >= 9
