"""Problems in sets of atoms with and without penalties, for the tests of their derivatives and runs."""

import numpy as np
import pytest
from pymanopt.manifolds import Euclidean, Oblique, Stiefel
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

from manifold_dl import update_problem
from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.manifolds import Lines, Spheres
from manifold_dl.regularizers import Coherence

M, D_, N = 8, 12, 120


class Quartic:
    """Σ D⁴, written without derivatives, so that autograd has something to do; its own hessian is 12 D²E."""

    def value(self, dictionary):
        return (dictionary**4).sum()


def draw(rng, m=M, d=D_, n=N):
    """Signals, codes on supports of one to three atoms (and two signals without any), a dictionary."""
    codes = np.zeros((d, n))
    for j, size in enumerate(rng.integers(1, 4, n)):
        codes[rng.choice(d, size, replace=False), j] = rng.standard_normal(size)
    codes[:, :2] = 0
    dictionary = rng.standard_normal((m, d))
    return rng.standard_normal((m, n)), codes, dictionary / np.linalg.norm(dictionary, axis=0)


SETS = {"one": [3], "three": [7, 0, 4], "all": list(range(D_))}
PENALTIES = {"plain": [], "coherence": [Coherence(3.0)], "two": [Coherence(3.0), Quartic()]}


both_ridges = pytest.mark.parametrize("mu", [0.0, 0.1], ids=["mu=0", "mu=0.1"])


every_set = pytest.mark.parametrize("atoms", SETS.values(), ids=SETS)


every_penalty = pytest.mark.parametrize("penalties", PENALTIES.values(), ids=PENALTIES)


both_manifolds = pytest.mark.parametrize("manifold", [Spheres, Lines])


def make(rng, atoms, **options):
    """A problem in the given atoms, a point and a unit tangent vector there."""
    Y, X, D = draw(rng)
    problem = update_problem(Y, X, atoms=atoms, dictionary=D, **options)
    point = problem.manifold.random_point(rng)
    return problem, point, problem.manifold.random_tangent_vector(point, rng)


def steps(kind, n=8, **options):
    return kind(max_iterations=n, verbosity=0, **options)


OPTIMIZERS = {
    "steepest descent": steps(SteepestDescent),
    "conjugate gradient": steps(ConjugateGradient),
    "trust regions": steps(TrustRegions),
    "descent, golden section": steps(SteepestDescent, line_searcher=GoldenSection()),
    "descent, Wolfe search": steps(SteepestDescent, line_searcher=WolfeSearch()),
    "conjugate, golden section": steps(ConjugateGradient, line_searcher=GoldenSection()),
    "conjugate, Wolfe search": steps(ConjugateGradient, line_searcher=WolfeSearch()),
}


MANIFOLDS = {
    "spheres": Spheres,
    "lines": Lines,
    "oblique": Oblique,
    "stiefel": Stiefel,
    "euclidean": Euclidean,
}
