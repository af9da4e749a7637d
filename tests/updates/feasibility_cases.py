"""Manifolds, each with its definition; signals for them; and optimizers that return something else."""

from types import SimpleNamespace

import numpy as np
import pymanopt.manifolds as pymanopt_manifolds
import pytest
from pymanopt.manifolds import Oblique, Sphere, Stiefel
from pymanopt.optimizers import ConjugateGradient

import manifold_dl as mdl
from manifold_dl import OMP
from manifold_dl.manifolds import (
    Columns,
    Euclidean,
    Lines,
    NonNegative,
    Orthonormal,
    Spheres,
    Subspace,
    ZeroMean,
)

M, D_ = 6, 4


BASIS = np.linalg.qr(np.random.default_rng(0).standard_normal((M, 4)))[0]


def is_unit(D):
    return np.abs(np.linalg.norm(D, axis=0) - 1).max() < 1e-12


def is_orthonormal(D):
    return np.abs(D.T @ D - np.eye(D.shape[1])).max() < 1e-12


# Each with a test of membership of its own, written down from the definition.
MEMBERS = {
    "Spheres": (Spheres, is_unit),
    "Lines": (Lines, is_unit),
    "Oblique": (Oblique, is_unit),
    "Columns(Sphere)": (Columns(Sphere), is_unit),
    "ZeroMean": (ZeroMean, lambda D: is_unit(D) and np.abs(D.mean(axis=0)).max() < 1e-12),
    "Subspace": (Subspace(BASIS), lambda D: is_unit(D) and np.abs(BASIS @ (BASIS.T @ D) - D).max() < 1e-12),
    "NonNegative": (NonNegative, lambda D: is_unit(D) and D.min() >= 0),
    "Orthonormal": (Orthonormal, is_orthonormal),
    "Stiefel": (Stiefel, is_orthonormal),
    "Sphere": (Sphere, lambda D: abs(np.linalg.norm(D) - 1) < 1e-12),
    "Euclidean": (Euclidean, lambda D: True),
    "pymanopt Euclidean": (pymanopt_manifolds.Euclidean, lambda D: True),
}


each_manifold = pytest.mark.parametrize("name", MEMBERS)


def scene(seed=0, m=M, d=D_, n=40, sparsity=2):
    """Signals, a dictionary on no manifold at all, and codes for it."""
    rng = np.random.default_rng(seed)
    Y, D = rng.standard_normal((m, n)), 3 * rng.standard_normal((m, d))
    return Y, D, OMP(sparsity=sparsity).encode(Y, D)


class Returns:
    """An optimizer that returns what a function makes of a good point."""

    def __init__(self, change):
        self.change = change

    def run(self, problem, *, initial_point=None):
        searcher = mdl.WolfeSearch()
        optimizer = ConjugateGradient(line_searcher=searcher, max_iterations=3, verbosity=0)
        return self.change(optimizer.run(problem, initial_point=initial_point))


def with_point(change):
    return lambda result: SimpleNamespace(point=change(result.point))
