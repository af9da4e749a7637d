"""Pymanopt's own optimizers and line searchers, as they come, against K-SVD and golden section."""

import numpy as np
import pytest
from pymanopt.optimizers import ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions
from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher

from manifold_dl import KSVD, OMP, GoldenSection, SimCO, datasets, learn_dictionary
from manifold_dl.manifolds import Spheres
from manifold_dl.schedules import AllAtoms, Blocks, OneAtATime

STOCK = {
    "SteepestDescent": SteepestDescent,
    "SteepestDescent, adaptive": lambda: SteepestDescent(line_searcher=AdaptiveLineSearcher()),
    "ConjugateGradient": ConjugateGradient,
    "ConjugateGradient, back-tracking": lambda: ConjugateGradient(line_searcher=BackTrackingLineSearcher()),
    "TrustRegions": TrustRegions,
}
each = pytest.mark.parametrize("optimizer", STOCK.values(), ids=STOCK.keys())


def draw(seed):
    """Signals of the paper's size with noise of 20 dB, a random dictionary and the true codes."""
    _, codes, signals = datasets.synthetic(16, 32, 300, sparsity=4, snr_db=20, rng=seed)
    return signals, Spheres(16, 32).random_point(rng=seed + 1), codes


def error(signals, dictionary, codes):
    return float(np.sum((signals - dictionary @ codes) ** 2))


@each
@pytest.mark.parametrize("seed", [0, 1])
def test_one_atom_at_a_time_ends_at_the_residual_of_ksvd(optimizer, seed):
    Y, D, X = draw(seed)
    ended, codes = SimCO(optimizer(), schedule=OneAtATime(), mu=0.0)(Y, D, X)
    # The optimizers stop at a gradient of 1e-6, and the residual is within about its square of the minimum.
    assert error(Y, ended, codes) == pytest.approx(error(Y, *KSVD()(Y, D, X)), rel=1e-5)
    assert (ended != D).any(axis=0).all()


@each
@pytest.mark.parametrize("schedule", [AllAtoms(), Blocks(8)], ids=repr)
def test_update_of_a_set_of_atoms_is_independent_of_earlier_sets(optimizer, schedule):
    # An update of one set after the other is what it is with a new optimizer for every set.
    Y, D, X = draw(0)
    subsets = list(schedule.subsets(32, rng=0))
    together, _ = SimCO(optimizer(), schedule=subsets, mu=0.1)(Y, D, X)
    alone, X_alone = D, X
    for I in subsets:
        alone, X_alone = SimCO(optimizer(), schedule=[I], mu=0.1)(Y, alone, X_alone)
    # The residual is formed anew for every call, so rounding decides where a gradient of 1e-6 is reached.
    np.testing.assert_allclose(together, alone, atol=1e-6)


def last_loss(optimizer, signals, n_atoms, sparsity, **settings):
    update, coder = SimCO(optimizer()), OMP(sparsity=sparsity)
    return learn_dictionary(signals, n_atoms, coder=coder, update=update, **settings).history.loss[-1]


def golden():
    return SteepestDescent(line_searcher=GoldenSection())


@each
def test_learning_ends_as_low_as_with_golden_section(optimizer):
    # Each minimises every stage to its end, so the losses agree unless the codes take another turn.
    signals = datasets.synthetic(8, 12, 100, sparsity=2, snr_db=20, rng=0).signals
    settings = {"n_atoms": 12, "sparsity": 2, "max_iter": 10, "rng": 0}
    expected = last_loss(golden, signals, **settings)
    assert last_loss(optimizer, signals, **settings) == pytest.approx(expected, rel=0.05)


@pytest.mark.slow
def test_learning_ends_as_low_as_with_golden_section_on_sixteen_draws():
    means = {
        name: np.mean([last_loss(make, draw(seed)[0], 32, 4, rng=seed) for seed in range(16)])
        for name, make in {"golden": golden, **STOCK}.items()
    }
    for name in STOCK:
        assert means[name] == pytest.approx(means["golden"], rel=0.05), name


@pytest.mark.parametrize("optimizer_type", [pytest.param(NelderMead, marks=pytest.mark.slow), ParticleSwarm])
def test_methods_without_gradients_approximate_the_minimum_for_one_atom(optimizer_type):
    _, X, Y = datasets.synthetic(6, 9, 60, sparsity=2, snr_db=20, rng=0)
    D = Spheres(6, 9).random_point(rng=1)
    ended = SimCO(optimizer_type(), schedule=[[3]], mu=0.0)(Y, D, X, rng=0)
    start, minimum = error(Y, D, X), error(Y, *KSVD(schedule=[[3]])(Y, D, X))
    # At most about 1 % above it, as SimCO's notes say.
    assert minimum <= error(Y, *ended) < 1.02 * minimum < start
