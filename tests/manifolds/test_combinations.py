"""Every manifold with every optimizer and line searcher, as the page docs/manifolds.md says.

The combinations are those of docs/manifold_table.py, which writes the table on that page.
"""

import numpy as np
import pytest
from documented_manifolds import MANIFOLDS, OPTIMIZERS, manifold_table
from pymanopt.manifolds import Sphere
from pymanopt.optimizers import ConjugateGradient, TrustRegions

from manifold_dl import LBFGS, GoldenSection, WolfeSearch, update_problem
from manifold_dl.manifolds import (
    Columns,
    Spheres,
)
from manifold_dl.optimizers import LeadingSingularVector

REFUSED = {
    ("NonNegative", "LeadingSingularVector"): "no closed form on NonNegative",
    ("Euclidean", "LeadingSingularVector"): "no closed form on Euclidean",
    ("Columns(Sphere)", "LeadingSingularVector"): "no closed form on Columns",
    ("Orthonormal", "LeadingSingularVector"): "ties all atoms to each other, and 1 of 3 cannot move",
    (
        "Orthonormal",
        "NelderMead",
    ): "NelderMead needs the methods dist, log and pair_mean, which Orthonormal(4, 3)",
    ("Orthonormal", "ParticleSwarm"): "ParticleSwarm needs the method log, which Orthonormal(4, 3)",
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_optimizer_lowers_the_cost_on_the_manifold_or_is_refused(manifold, optimizer):
    outcome = manifold_table.outcome(manifold, optimizer)
    if (manifold, optimizer) in REFUSED:
        assert REFUSED[manifold, optimizer] in outcome.refusal
        return
    assert outcome.refusal is None
    for before, after in (outcome.problem_costs, outcome.update_costs):
        assert after < 0.9 * before  # not merely by rounding; the slowest, Nelder-Mead, gains 20 %
    point, D = outcome.points
    for atoms in (point, D):
        on = MANIFOLDS[manifold](*atoms.shape)
        if hasattr(on, "closest"):
            # 1e-5: NonNegative keeps its entries 1e-6 away from zero.
            np.testing.assert_allclose(on.closest(atoms), atoms, atol=1e-5)
        if manifold != "Euclidean":
            np.testing.assert_allclose(np.linalg.norm(atoms, axis=0), 1, atol=1e-13)


def test_table_in_the_documentation_is_up_to_date():
    """If this fails: python docs/manifold_table.py"""
    text = manifold_table.PAGE.read_text(encoding="utf-8")
    assert manifold_table.page(text) == text


@pytest.mark.parametrize("manifold", [name for name in MANIFOLDS if name != "Euclidean"])
def test_first_and_second_order_methods_find_the_true_dictionary(manifold):
    """The signals have an exact dictionary near the start: zero is the minimum, and all methods reach it."""
    tiny = manifold_table.tiny_problem(manifold, seed=1)
    scale = np.sum(tiny.signals**2)
    for optimizer in (
        TrustRegions(max_iterations=100, min_gradient_norm=1e-9, verbosity=0),
        LBFGS(max_iterations=1000, min_gradient_norm=1e-9, verbosity=0),
        ConjugateGradient(
            line_searcher=WolfeSearch(), max_iterations=1500, min_gradient_norm=1e-9, verbosity=0
        ),
    ):
        problem = update_problem(tiny.signals, tiny.codes, manifold=MANIFOLDS[manifold])
        point = optimizer.run(problem, initial_point=tiny.start).point
        # The objective is quadratic near zero; a gradient of 1e-9 leaves far less than this of it.
        assert problem.cost(point) < 1e-10 * scale
        cosines = np.abs(np.sum(point * tiny.truth, axis=0))
        np.testing.assert_allclose(cosines, 1, atol=1e-5)


@pytest.mark.parametrize("manifold", MANIFOLDS)
@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_derivatives_of_the_dictionary_problem_on_every_manifold(manifold, mu, codes):
    """Value, gradient and Hessian of the dictionary problem itself: remainders of order 2 and 3."""
    rng = np.random.default_rng(4)
    tiny = manifold_table.tiny_problem(manifold, seed=4)
    problem = update_problem(tiny.signals, tiny.codes, manifold=MANIFOLDS[manifold], mu=mu, codes=codes)
    on, x = problem.manifold, tiny.start
    gradient = problem.riemannian_gradient(x)
    steps = np.logspace(-1.5, -2.7, 5)
    first_order, second_order = [], []
    for _ in range(5):  # together, because along one direction a coefficient may happen to vanish
        v = 0.2 * on.random_tangent_vector(x, rng)
        first = on.inner_product(x, gradient, v)
        second = on.inner_product(x, problem.riemannian_hessian(x, v), v)
        moved = np.array([problem.cost(on.exp(x, t * v)) for t in steps]) - problem.cost(x)
        first_order.append(moved - steps * first)
        second_order.append(moved - steps * first - steps**2 / 2 * second)
    slope = lambda errors: np.polyfit(np.log(steps), np.log(np.linalg.norm(errors, axis=0)), 1)[0]
    assert slope(first_order) == pytest.approx(2, abs=0.1)  # a wrong gradient: 1
    if manifold == "Euclidean" and codes == "fixed":  # a quadratic: nothing is left but rounding
        assert np.max(np.abs(second_order)) < 1e-13 * tiny.signals.size
    else:
        assert slope(second_order) == pytest.approx(3, abs=0.15)  # a wrong Hessian: 2


@pytest.mark.parametrize("manifold", ["Spheres", "Lines", "ZeroMean", "Subspace(basis)"])
def test_spheres_in_a_subspace_use_the_restriction_to_a_geodesic(manifold):
    tiny = manifold_table.tiny_problem(manifold, seed=2)
    problem = update_problem(tiny.signals, tiny.codes, manifold=MANIFOLDS[manifold], mu=0.1)
    on, x = problem.manifold, tiny.start
    direction = -problem.riemannian_gradient(x)
    phi = problem.cost.restrict(x, direction)
    for t in (0.0, 0.01, 0.3, 1.0):
        assert phi(t) == pytest.approx(problem.cost(on.exp(x, t * direction)), rel=1e-11)
    before = problem.counts.probe
    GoldenSection().search(problem.cost, on, x, direction, problem.cost(x), -(on.norm(x, direction) ** 2))
    assert problem.counts.probe > before


def test_manifolds_without_great_circles_have_no_restriction_to_a_geodesic():
    for manifold in ("NonNegative", "Orthonormal", "Euclidean", "Columns(Sphere)"):
        tiny = manifold_table.tiny_problem(manifold)
        problem = update_problem(tiny.signals, tiny.codes, manifold=MANIFOLDS[manifold])
        assert not hasattr(problem.cost, "restrict")


def test_columns_of_spheres_take_the_same_steps_as_spheres():
    tiny = manifold_table.tiny_problem("Spheres", seed=3)
    points = []
    for manifold in (Spheres, Columns(Sphere)):
        optimizer = TrustRegions(max_iterations=4, use_rand=False, verbosity=0)
        problem = update_problem(tiny.signals, tiny.codes, manifold=manifold, mu=0.05)
        points.append(optimizer.run(problem, initial_point=tiny.start).point)
    np.testing.assert_allclose(points[0], points[1], atol=1e-9)  # the same formulas, in another order


@pytest.mark.parametrize("manifold", ["ZeroMean", "Subspace(basis)"])
@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_leading_singular_vector_in_a_subspace_is_the_minimum(manifold, mu):
    rng = np.random.default_rng(6)
    Y = rng.standard_normal((4, 30))  # not in the subspace: the plain singular vector would leave it
    problem = update_problem(Y, np.ones((1, 30), dtype=bool), manifold=MANIFOLDS[manifold], mu=mu)
    start = problem.manifold.random_point(rng)
    closed = LeadingSingularVector().run(problem, initial_point=start).point
    searched = TrustRegions(min_gradient_norm=1e-9, verbosity=0).run(problem, initial_point=start).point
    np.testing.assert_allclose(problem.manifold.within(closed), closed, atol=1e-14)
    assert problem.cost(closed) == pytest.approx(problem.cost(searched), rel=1e-10)
    power = LeadingSingularVector(power_steps=300).run(problem, initial_point=start).point
    assert abs(np.vdot(power, closed)) == pytest.approx(1, abs=1e-6)
