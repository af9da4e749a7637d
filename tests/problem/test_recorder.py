"""The record of a problem: the iterates of an optimizer, each once."""

from problem_cases import SETS, draw, make
from pymanopt.optimizers import ConjugateGradient

from manifold_dl import update_problem
from manifold_dl.line_search import WolfeSearch


def test_the_record_holds_value_and_gradient_norm_of_every_iterate(rng):
    Y, X, D = draw(rng)
    problem = update_problem(Y, X, mu=0.1)
    optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=10, verbosity=0)
    result = optimizer.run(problem, initial_point=D)
    assert len(problem.record) == result.iterations == 10
    seconds = [iterate.seconds for iterate in problem.record]
    assert seconds == sorted(seconds) and seconds[0] > 0
    fresh = update_problem(Y, X, mu=0.1)
    first, last = problem.record[0], problem.record[-1]
    for iterate, point in ((first, D), (last, result.point)):
        assert iterate.value == fresh.cost(point)
        gradient = fresh.riemannian_gradient(point)
        assert iterate.gradient_norm == fresh.manifold.norm(point, gradient)
    # Every accepted point was evaluated, and nothing else: the search probes φ.
    assert problem.counts.value == problem.counts.gradient == problem.counts.factorisation == 10
    assert problem.counts.probe >= 9 and problem.counts.hessian == 0


def test_two_gradients_at_one_point_leave_one_record(rng):
    problem, point, U = make(rng, SETS["three"], mu=0.1)
    problem.riemannian_gradient(point)
    problem.riemannian_gradient(point.copy())
    problem.riemannian_hessian(point, U)
    assert len(problem.record) == 1
    assert problem.record[0].seconds > 0


def test_a_new_problem_has_an_empty_record_and_no_counts(rng):
    problem, _, _ = make(rng, SETS["three"])
    assert problem.record == []
    assert set(vars(problem.counts).values()) == {0}
