"""What optimizers find of a problem beyond Pymanopt's interface."""

import pymanopt

import manifold_dl as mdl
from manifold_dl.datasets import synthetic
from manifold_dl.optimizers.protocol import ProblemMembers, members_of_problem


def test_plain_problem_of_pymanopt_has_none_of_the_members():
    sphere = pymanopt.manifolds.Sphere(3)
    problem = pymanopt.Problem(sphere, pymanopt.function.numpy(sphere)(lambda x: x[0]))
    assert members_of_problem(problem) == ProblemMembers(*[None] * 6)


def test_dictionary_problem_has_the_members_that_it_documents():
    _, X, Y = synthetic(8, 12, 40, sparsity=2, rng=0)
    problem = mdl.update_problem(Y, X, mu=0.1)
    members = members_of_problem(problem)
    assert members.feasible is problem.feasible
    assert members.counts is problem.counts and members.objective is problem.objective
    assert members.stationary_point is None and members.weights is None
    assert members.piece is None  # that of lasso problems alone
