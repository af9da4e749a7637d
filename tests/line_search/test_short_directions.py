"""Directions far shorter than the gradient, which conjugate gradients make in a plane."""

import copy

import numpy as np
import pytest
from pymanopt.manifolds import Oblique
from pymanopt.optimizers import ConjugateGradient
from search_cases import LINE, every_searcher

import manifold_dl as mdl
from manifold_dl.line_search import WolfeSearch, trace


def parabola(x):
    return (x[0] - 1) ** 2


def search_parabola(searcher, x, d):
    """One search from x along d; returns its end and the number of probes."""
    with trace() as searches:
        slope = 2 * (x - 1) * d
        _, end = searcher.search(parabola, LINE, np.array([x]), np.array([d]), parabola([x]), slope)
    return end[0], len(searches[0].probes)


@every_searcher
@pytest.mark.parametrize("shortness", [1e-9, 1e-17, 1e-100])
def test_minimum_is_found_along_a_direction_far_shorter_than_the_last(searcher, shortness):
    searcher = copy.deepcopy(searcher)
    _, usual = search_parabola(searcher, 0.0, 2.0)
    end, probes = search_parabola(searcher, 0.9, shortness)
    # At first the searches are exact to 1e-3 (golden section) and a twentieth of the slope (Wolfe).
    assert abs(end - 1) <= 0.05 * 0.1
    assert probes <= usual + 2
    # The next direction, of the usual length, begins at the usual t.
    end, probes = search_parabola(searcher, 0.9, 0.2)
    assert abs(end - 1) <= 0.05 * 0.1
    assert probes <= usual + 2


@pytest.mark.parametrize("manifold", [mdl.manifolds.Spheres, Oblique])
def test_conjugate_gradients_find_the_direction_of_a_single_signal(manifold):
    # The minimum is zero. After a step that is too long the conjugate direction is zero but for rounding:
    # without a longer first probe the run ended there for one start in thirty, up to 6e-4 above the minimum.
    optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=300, verbosity=0)
    update = mdl.SimCO(optimizer=optimizer, manifold=manifold, mu=0.0, threads=1)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        y, d = rng.standard_normal((6, 1)), rng.standard_normal((6, 1))
        d /= np.linalg.norm(d)
        D, X = update(y, d, d.T @ y)
        # Steps end at a gradient of 1e-6 or when rounding leaves no direction: the most seen is 2e-9.
        assert np.sum((y - D @ X.toarray()) ** 2) <= 1e-8 * np.sum(y**2), seed
