"""Pursuits that revise their codes, FOCUSS, and codes on a given support."""

import numpy as np
import pytest
from coding_problems import problem

from manifold_dl.coders import (
    FOCUSS,
    IHT,
    OMP,
    BasisPursuit,
    ForwardSelection,
    MatchingPursuit,
    SubspacePursuit,
)
from manifold_dl.kernels import coding
from manifold_dl.kernels.coding import NO_TOLERANCE, FocussSettings, PursuitSettings, reference


@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        ("matching_pursuit", PursuitSettings(4, NO_TOLERANCE, 100)),
        ("matching_pursuit", PursuitSettings(4, 0.5, 100)),
        ("gradient_pursuit", PursuitSettings(4, max_iter=20)),
        ("subspace_pursuit", PursuitSettings(4, max_iter=20)),
        ("iht", PursuitSettings(4, max_iter=50)),
        ("focuss", FocussSettings(6, 0.5, 1e-6, 20, 1e-4)),
    ],
)
def test_compiled_iterative_pursuits_equal_the_reference(kernel, settings):
    D, _, Y = problem(12, 30, 60, 3, noise=0.05)
    atoms, rows = np.ascontiguousarray(D.T), np.ascontiguousarray(Y.T)
    counts, indices, values = getattr(coding, kernel)(coding.prepare(atoms), rows, settings)
    expected = getattr(reference, kernel)(reference.prepare(atoms), rows, settings)
    np.testing.assert_array_equal(counts, expected[0])
    for j, k in enumerate(counts):
        np.testing.assert_array_equal(indices[j, :k], expected[1][j, :k])
        # Both iterate the same map; rounding differs in every step and contracts with the iteration.
        np.testing.assert_allclose(values[j, :k], expected[2][j, :k], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "coder", [OMP(3), ForwardSelection(3), SubspacePursuit(3), IHT(3), FOCUSS(), BasisPursuit()]
)
def test_very_sparse_signals_are_coded_exactly(coder):
    D, X, Y = problem(40, 60, 100, 3)
    found = coder.encode(Y, D).toarray()
    exact = np.abs(found - X).max(axis=0) < 1e-8  # three well separated atoms: rounding only
    assert exact.mean() > 0.95  # three of 60 atoms in 40 dimensions: a few draws are too coherent


def test_matching_pursuit_approaches_the_least_squares_fit():
    D, _, Y = problem(12, 6, 50, 3, noise=0.1)
    X = MatchingPursuit(tol=0.0, max_iter=5000).encode(Y, D)
    np.testing.assert_allclose(X.toarray(), np.linalg.lstsq(D, Y)[0], atol=1e-8)  # geometric convergence
