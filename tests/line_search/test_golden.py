"""Algorithm 2 of the paper, written down once more from its text, against `GoldenSection`."""

import math
from functools import partial

import numpy as np
import pymanopt
import pytest
from pymanopt.manifolds import ComplexCircle, Euclidean, Positive, Product, Sphere
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

import manifold_dl as mdl
from manifold_dl.line_search import trace

LINE = Euclidean(1)


def algorithm_2(f, t4, width):
    """Steps 2 to 8 and the output of Algorithm 2. Returns every t in the order of evaluation, and t*.

    "Sufficiently small" is `width` times the interval that Part A ends with.
    """
    c = (math.sqrt(5) - 1) / 2
    values = {0.0: f(0.0)}

    def value(t):
        if t not in values:
            values[t] = f(t)
        return values[t]

    t1 = 0.0
    t3, t2 = c * t4, (1 - c) * t4
    while True:
        if value(t1) <= value(t2):  # 3)
            t4 = t2
            t3, t2 = c * t4, (1 - c) * t4
        elif value(t2) <= value(t3):  # 4)
            t4, t3 = t3, t2
            t2 = (1 - c) * t4
        elif value(t3) > value(t4):  # 5)
            t2, t3 = t3, t4
            t4 = t3 / c
        else:  # 6)
            break
    small = width * (t4 - t1)
    while t4 - t1 > small:
        if value(t1) > value(t2) and value(t2) > value(t3):  # 7)
            t1, t2 = t2, t3
            t3 = t1 + c * (t4 - t1)
        else:  # 8)
            t4, t3 = t3, t2
            t2 = t1 + (1 - c) * (t4 - t1)
    best = min((t1, t2, t3, t4), key=value)
    return list(values)[1:], best


def one_minimum(rng):
    """A convex function with its minimum anywhere between 1e-6 and 1e6, and the first bracket anywhere."""
    minimiser, power = 10 ** rng.uniform(-6, 6), rng.uniform(1.2, 4)
    tilt = rng.uniform(-0.2, 0.2)  # so that it is not symmetric

    def f(t):
        u = (t - minimiser) / minimiser
        return abs(u) ** power * (1 + tilt * math.copysign(1, u))

    return f, minimiser * 10 ** rng.uniform(-3, 3)


def many_minima(rng):
    """A parabola with waves."""
    far, depth, waves = 10 ** rng.uniform(-3, 3), rng.uniform(0.05, 1), rng.uniform(2, 30)
    phase = rng.uniform(0, 2 * math.pi)

    def f(t):
        u = t / far
        return (u - 1) ** 2 + depth * math.cos(waves * u + phase)

    return f, far * 10 ** rng.uniform(-2, 1)


def search(f, t4, width):
    searcher = mdl.GoldenSection(t4=t4, width=width, g_min=0, max_probes=300)
    with trace() as searches:
        searcher.search(lambda x: f(float(x[0])), LINE, np.zeros(1), np.ones(1), f(0.0), -1.0)
    return [t for t, _ in searches[0].probes], searches[0].t


@pytest.mark.parametrize("seed", range(300))
def test_golden_section_evaluates_and_accepts_the_t_of_the_paper(seed):
    rng = np.random.default_rng(seed)
    f, t4 = one_minimum(rng)
    width = 10 ** rng.uniform(-5, -0.3)
    expected, best = algorithm_2(f, t4, width)
    probes, accepted = search(f, t4, width)
    assert probes == expected  # the same formulas: the same bits
    assert accepted == best


def test_with_several_minima_the_lowest_t_evaluated_is_accepted():
    lower = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        f, t4 = many_minima(rng)
        if (f(1e-9 * t4) - f(0.0)) > 0:  # not a descent direction
            continue
        expected, best = algorithm_2(f, t4, 1e-3)
        probes, accepted = search(f, t4, 1e-3)
        assert probes == expected
        assert accepted == min(probes, key=f)
        lower += f(accepted) < f(best)
    assert lower > 0  # the paper may drop the lowest t on the way; ours is then better


def test_the_last_t_placed_is_sometimes_the_best():
    """Otherwise the tests above would not notice whether it is evaluated."""
    last = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        f, t4 = one_minimum(rng)
        expected, best = algorithm_2(f, t4, 10 ** rng.uniform(-5, -0.3))
        last += best == expected[-1]
    assert last >= 30


@pytest.mark.parametrize("mu", [0.0, 0.1])
def test_a_search_of_a_dictionary_problem_takes_the_steps_of_the_paper(mu):
    _, X, Y = mdl.datasets.synthetic(8, 12, 60, sparsity=3, snr_db=20, rng=0)
    for seed in range(5):
        problem = mdl.update_problem(Y, X, mu=mu)
        x = problem.manifold.random_point(seed)
        d = -problem.riemannian_gradient(x)
        norm = problem.manifold.norm(x, d)
        with trace() as searches:
            mdl.GoldenSection(t4=0.5).search(
                problem.cost, problem.manifold, x, d, problem.cost(x), -(norm**2)
            )
        cost = mdl.update_problem(Y, X, mu=mu).cost
        phi = partial(phi_along, cost, problem.manifold, x, d)
        expected, best = algorithm_2(phi, 0.5 / norm, 1e-3)
        # φ by its products and f at the points agree to rounding, far less than what tells two t apart.
        assert [t for t, _ in searches[0].probes] == pytest.approx(expected, rel=1e-14)
        assert searches[0].t == pytest.approx(min(expected, key=phi), rel=1e-14)
        assert phi(searches[0].t) <= phi(best)


def phi_along(cost, manifold, x, d, t):
    return cost(manifold.exp(x, t * d))


# --- g_min: step 1 ---


def gradient_of_each_atom(problem, D, X, Y, mu):
    """‖ḡ_i‖ by eqs. (10) and (12), with the codes of `problem`."""
    codes = problem.codes(D).toarray()
    G = -2 * (Y - D @ codes) @ codes.T
    return np.linalg.norm(G - D * (D * G).sum(axis=0), axis=0)


@pytest.mark.parametrize("mu", [0.0, 0.05])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_nothing_is_probed_where_no_atom_has_a_gradient_above_g_min(mu, preconditioned):
    _, X, Y = mdl.datasets.synthetic(8, 12, 60, sparsity=3, snr_db=20, rng=0)
    problem = mdl.update_problem(Y, X, mu=mu)
    x = problem.manifold.random_point(1)
    gradient = problem.riemannian_gradient(x)
    largest = gradient_of_each_atom(problem, x, X, Y, mu).max() / np.sum(Y**2)
    total = np.linalg.norm(gradient) / np.sum(Y**2)
    assert total > 1.5 * largest  # or the two tests could not be told apart
    d = -(problem.preconditioner(x, gradient) if preconditioned else gradient)
    df0 = problem.manifold.inner_product(x, gradient, d)
    for g_min, moves in [(0.999 * largest, True), (1.001 * largest, False)]:
        searcher = mdl.GoldenSection(g_min=g_min)
        step, end = searcher.search(problem.cost, problem.manifold, x, d, problem.cost(x), df0)
        assert (step > 0, end is x) == (moves, not moves)


# --- On Pymanopt's manifolds ---


@pytest.mark.parametrize("searcher", [mdl.GoldenSection(), mdl.WolfeSearch()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient])
def test_phases_are_found_on_the_complex_circle(optimizer, searcher):
    """Σ |z_i − e^{iα_i}|² has its minimum, 0, at the phases α. `ComplexCircle.exp` returns real numbers."""
    n = 6
    goal = np.exp(1j * np.random.default_rng(0).uniform(-2, 2, n))
    manifold = ComplexCircle(n)
    cost = pymanopt.function.numpy(manifold)(lambda z: float(np.sum(abs(z - goal) ** 2)))
    gradient = pymanopt.function.numpy(manifold)(lambda z: 2 * (z - goal))
    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient)
    run = optimizer(line_searcher=searcher, max_iterations=200, verbosity=0)
    z = run.run(problem, initial_point=np.ones(n, dtype=complex)).point
    # Pymanopt stops at a gradient of 1e-6, and the Hessian there is 2.
    np.testing.assert_allclose(z, goal, atol=1e-6)
    np.testing.assert_allclose(abs(z), 1, atol=1e-15)


def test_phases_are_found_in_a_product():
    goal, axis = np.exp(1j * np.array([0.5, -1.0])), np.array([0.6, 0.0, 0.8])
    manifold = Product([ComplexCircle(2), Sphere(3)])
    cost = pymanopt.function.numpy(manifold)(
        lambda z, u: float(np.sum(abs(z - goal) ** 2) + np.sum((u - axis) ** 2))
    )
    gradient = pymanopt.function.numpy(manifold)(lambda z, u: [2 * (z - goal), 2 * (u - axis)])
    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient)
    run = ConjugateGradient(line_searcher=mdl.GoldenSection(), verbosity=0)
    z, u = run.run(problem, initial_point=[np.ones(2, dtype=complex), np.array([0.0, 1.0, 0.0])]).point
    np.testing.assert_allclose(z, goal, atol=1e-6)
    np.testing.assert_allclose(u, axis, atol=1e-6)


@pytest.mark.parametrize("searcher", [mdl.GoldenSection(), mdl.WolfeSearch()], ids=lambda s: type(s).__name__)
def test_positive_matrices_are_found_from_any_start(searcher):
    """‖x − T‖² over positive x: T itself, as TrustRegions finds it.

    In the last five of these draws a geodesic of `Positive` took an entry to 1e-4 of its start or less. The
    gradient there is x² times the Euclidean one: golden section stopped at 2.3 (draw 19) and 2.0 (draw 17).
    """
    for seed in (0, 7, 14, 15, 17, 19):
        rng = np.random.default_rng(seed)
        T, start = np.exp(rng.normal(size=(2, 4, 3)))
        manifold = Positive(4, 3)
        cost = pymanopt.function.numpy(manifold)(lambda x, T=T: float(np.sum((x - T) ** 2)))
        gradient = pymanopt.function.numpy(manifold)(lambda x, T=T: 2 * (x - T))
        hessian = pymanopt.function.numpy(manifold)(lambda x, e: 2 * e)
        problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
        run = ConjugateGradient(line_searcher=searcher, max_iterations=2000, verbosity=0)
        x = run.run(problem, initial_point=start).point
        reference = TrustRegions(verbosity=0).run(problem, initial_point=start).point
        # Both stop at a Riemannian gradient of 1e-6, x times the Euclidean one, and the smallest x is 0.05.
        np.testing.assert_allclose(x, reference, atol=1e-4)
        np.testing.assert_allclose(x, T, atol=1e-4)


def test_steepest_descent_on_positive_matrices_keeps_up_with_pymanopts_searcher():
    for seed in (7, 19):  # 0.17 and 4.6 after 2,000 steps along geodesics
        rng = np.random.default_rng(seed)
        T, start = np.exp(rng.normal(size=(2, 4, 3)))
        manifold = Positive(4, 3)
        cost = pymanopt.function.numpy(manifold)(lambda x, T=T: float(np.sum((x - T) ** 2)))
        gradient = pymanopt.function.numpy(manifold)(lambda x, T=T: 2 * (x - T))
        problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient)
        for options in ({"line_searcher": mdl.GoldenSection()}, {}):
            run = SteepestDescent(max_iterations=2000, verbosity=0, **options)
            assert run.run(problem, initial_point=start).cost < 1e-10  # a gradient of 1e-6, as above
