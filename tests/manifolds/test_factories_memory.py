"""What is found out about a manifold of thousands of atoms takes the memory of some."""

import tracemalloc

import numpy as np
import pytest

from manifold_dl.manifolds import Lines, Spheres, ZeroMean, feasible_set


@pytest.mark.parametrize("factory", [Spheres, Lines, ZeroMean])
def test_examining_our_spheres_takes_no_matrix_of_their_size(factory):
    m, k = 60, 4_321
    tracemalloc.start()
    feasible = feasible_set(factory, m, k)
    assert feasible.missing_methods() == frozenset()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * m * k  # bytes of one dictionary in double precision
    small = feasible_set(factory, m, 3)
    assert (feasible.relations, feasible.unit_atoms) == (small.relations, small.unit_atoms)
    assert feasible.separate_atoms
    assert feasible.example.shape == (m, k)
    assert feasible.contains(feasible.manifold.random_point(rng=0))
    assert not feasible.contains(np.full((m, k), 2.0))
