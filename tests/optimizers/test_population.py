"""`NelderMead` and `ParticleSwarm`: points that are not finite are worse than any other."""

import numpy as np
import pytest
from pymanopt.manifolds import Oblique
from pymanopt.optimizers import NelderMead, ParticleSwarm

import manifold_dl as mdl
from manifold_dl.manifolds import Spheres
from manifold_dl.optimizers import OptimizerRun
from manifold_dl.optimizers.population import PopulationProblem

# Two of the four atoms are used by no signal: the cost does not depend on them.
Y = mdl.datasets.synthetic(7, 4, 28, sparsity=1, rng=0).signals
D = Spheres(7, 4).random_point(rng=101)
X = mdl.OMP(sparsity=1).encode(Y, D)


def problem_on(manifold):
    return mdl.update_problem(Y, X, manifold=manifold, mu=0.01)


@pytest.mark.parametrize("manifold", [Oblique, Spheres])
@pytest.mark.parametrize("optimizer", [ParticleSwarm, NelderMead])
def test_ends_at_a_finite_point_with_a_lower_cost(optimizer, manifold):
    problem = problem_on(manifold)
    run = OptimizerRun(optimizer(max_iterations=3, verbosity=0))
    ends = [run.minimize(problem, D, np.random.default_rng(seed)) for seed in range(40)]
    assert all(np.isfinite(end).all() for end in ends)
    assert all(problem.cost(end) <= problem.cost(D) for end in ends)


def test_swarm_moves_the_atoms_on_oblique_as_on_spheres():
    moved = {}
    for manifold in (Oblique, Spheres):
        rule = mdl.SimCO(ParticleSwarm(max_iterations=3, verbosity=0), manifold=manifold, mu=0.01)
        moved[manifold] = sum((rule(Y, D, X, rng=seed)[0] != D).any() for seed in range(40))
    assert moved[Oblique] >= moved[Spheres] == 40


@pytest.mark.filterwarnings("ignore:. of 4 atoms are used by none of the 28 signals:UserWarning")
@pytest.mark.parametrize("seed", range(8))
def test_swarm_on_oblique_learns_with_codes_by_the_lasso(seed):
    rule = mdl.SimCO(
        ParticleSwarm(max_iterations=5, verbosity=0),
        manifold=Oblique,
        codes=mdl.Lasso(alpha=0.3, relative=False),
        schedule=mdl.schedules.RandomSubsets(2, 3),
    )
    result = mdl.learn_dictionary(Y, 4, coder=mdl.OMP(sparsity=1), update=rule, max_iter=3, init=D, rng=seed)
    assert np.isfinite(result.dictionary).all()


def test_costs_of_points_that_are_not_finite_are_infinite():
    problem = problem_on(Oblique)
    seen, unused = PopulationProblem(problem), np.flatnonzero(np.diff(X.tocsr().indptr) == 0)
    assert seen.cost(D) == problem.cost(D) and len(unused) > 0
    for value in (np.nan, np.inf):
        wrong = D.copy()
        wrong[0, unused[0]] = value
        assert seen.cost(wrong) == np.inf


def test_logarithm_of_equal_atoms_is_zero():
    manifold = PopulationProblem(problem_on(Oblique)).manifold
    with np.errstate(invalid="ignore"):
        assert isinstance(manifold, Oblique) and np.isnan(Oblique(7, 4).log(D, D)).any()
    np.testing.assert_allclose(manifold.log(D, D), 0, atol=1e-15)
    end = Spheres(7, 4).random_point(rng=1)
    np.testing.assert_allclose(manifold.log(D, end), Spheres(7, 4).log(D, end), rtol=1e-12)
