"""Coherence penalties on image patches: the effect of the weight, and of a bound."""

import numpy as np
import pytest
from pymanopt.optimizers import ConjugateGradient
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

from manifold_dl import (
    OMP,
    ReplaceAtoms,
    SimCO,
    WolfeSearch,
    learn_dictionary,
    metrics,
)
from manifold_dl.regularizers import (
    Coherence,
    LogBarrierCoherence,
)


def patches_of(name, n):
    """Mean-free patches of 8×8 pixels of a photograph."""
    picture = load_sample_image(name).mean(axis=2)
    rows = extract_patches_2d(picture, (8, 8), max_patches=n, random_state=0).reshape(n, 64)
    return (rows - rows.mean(axis=1, keepdims=True)).T


@pytest.fixture(scope="module")
def patches():
    return patches_of("china.jpg", 1500)


def learn(Y, penalties, n_starts=1, **options):
    """Mutual coherence and the part of ‖Y‖² that is left with four of 96 atoms a patch: means over starts."""
    optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=21, verbosity=0)
    update = SimCO(optimizer=optimizer, mu=0.0, regularizers=penalties)
    results = [
        learn_dictionary(
            Y, 96, coder=OMP(sparsity=4), update=update, max_iter=8, init="random", rng=rng, **options
        )
        for rng in range(n_starts)
    ]
    errors = [np.sum((Y - result.dictionary @ result.codes) ** 2) / np.sum(Y**2) for result in results]
    return np.mean([metrics.coherence(result.dictionary) for result in results]), np.mean(errors)


@pytest.mark.parametrize(("picture", "seed"), [("china.jpg", 11), ("flower.jpg", 12)])
def test_mutual_coherence_falls_and_the_error_rises_with_the_weight(picture, seed):
    """One update stage: supports stay, each weight goes on from the last one, so only the weight changes."""
    Y, d = patches_of(picture, 800), 80
    plain = learn_dictionary(
        Y, d, coder=OMP(sparsity=4), update=SimCO(mu=0.0), max_iter=8, init="random", rng=seed
    )
    D, X = plain.dictionary, plain.codes
    optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=61, verbosity=0)
    weights = np.array([0.0, *np.logspace(-6, 0, 13)])  # half decades, of ‖Y‖²
    coherences, sums, errors = [], [], []
    for weight in weights:
        update = SimCO(optimizer=optimizer, mu=0.0, regularizers=[Coherence(weight * np.sum(Y**2))])
        # The first weight changes coherence in its fourth digit: the start has to be at a minimum.
        for _ in range(1 if weight else 4):
            D, X = update(Y, D, X)
        coherences.append(metrics.coherence(D))
        sums.append(Coherence(1.0).value(D))
        errors.append(np.sum((Y - D @ X) ** 2) / np.sum(Y**2))
    assert (np.diff(coherences) < 0).all()
    assert coherences[9] < 0.85 * coherences[0] and coherences[-1] < 0.6 * coherences[0]
    # The fit pays, at most weight times what the sum has lost: else the start had been the better minimum.
    costs = np.array(errors) - errors[0]
    assert (costs <= weights * (sums[0] - np.array(sums)) + 1e-9).all()
    assert costs[9] > 0 and costs[-1] > costs[9]


def test_learned_dictionaries_are_less_coherent_at_a_small_cost(patches):
    # Decades apart: between two starts mutual coherence differs by 0.03, whatever the weight.
    weights = [0.0, 1e-2, 1.0]  # of ‖Y‖²
    scale = np.sum(patches**2)
    results = [learn(patches, [Coherence(weight * scale)], n_starts=2) for weight in weights]
    coherences, errors = np.transpose(results)
    assert coherences[1] < 0.75 * coherences[0] and coherences[2] < 0.65 * coherences[1]
    # The cost: one per cent at 1e-2, where two starts differ by as much, and a twelfth at 1.
    assert errors[1] < 1.03 * errors[0] and errors[1] < errors[2] < 1.15 * errors[0]


def test_barrier_bounds_the_coherence_throughout_learning(patches):
    free, error = learn(patches, [])
    barrier = LogBarrierCoherence(1e-7 * np.sum(patches**2), bound=0.7)
    bounded, bounded_error = learn(patches, [barrier], replace=ReplaceAtoms(coherence=0.69))
    assert bounded < 0.7 < free
    assert bounded_error < 1.1 * error
