"""How well a dictionary is recovered: m = 16, d = 32, S = 4, noiseless, 50 iterations, one random start."""

import numpy as np
import pytest
from learning_runs import error
from pymanopt.optimizers import SteepestDescent

from manifold_dl import (
    KSVD,
    MOD,
    OMP,
    GoldenSection,
    SimCO,
    datasets,
    learn_dictionary,
    metrics,
)

# How well it learns: m = 16, d = 32, S = 4, noiseless, 50 outer iterations, one random start


def papers_update():
    """Section VI-B: one golden-section step an iteration, μ = 0.1 for 30 of them and then 0."""
    return SimCO(SteepestDescent(line_searcher=GoldenSection(), max_iterations=1), mu=[0.1] * 30 + [0.0])


def recover(n, seed, update):
    """The fraction of atoms recovered and the loss."""
    D, _, signals = datasets.synthetic(16, 32, n, sparsity=4, rng=seed)
    result = learn_dictionary(
        signals, 32, coder=OMP(sparsity=4), update=update, max_iter=50, init="random", tol=0, rng=1000 + seed
    )
    return metrics.recovery(result.dictionary, D), error(signals, result.dictionary, result.codes)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "fraction"), [(500, 0.75), (1500, 0.9)])
def test_default_update_recovers_the_dictionary(n, fraction):
    assert np.mean([recover(n, seed, SimCO())[0] for seed in range(10)]) >= fraction


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 500, 1500])
def test_papers_setting_beats_mod_and_ksvd(n):
    ours, mod, ksvd = (
        np.mean([recover(n, seed, update)[1] for seed in range(10)])
        for update in (papers_update(), MOD(), KSVD())
    )
    assert ours < mod and ours < ksvd


def test_default_update_recovers_the_dictionary_on_two_seeds():
    """Two of the ten seeds above, with the fractions that the ten have to reach on average."""
    assert np.mean([recover(500, seed, SimCO())[0] for seed in (0, 1)]) >= 0.75


def test_papers_setting_beats_mod_and_ksvd_on_two_seeds():
    ours, mod, ksvd = (
        np.mean([recover(200, seed, update)[1] for seed in range(2)])
        for update in (papers_update(), MOD(), KSVD())
    )
    assert ours < mod and ours < ksvd
