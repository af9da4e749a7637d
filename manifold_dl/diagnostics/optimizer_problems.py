"""Dictionary problems whose minimum is known by other means, for `check_optimizer`.

With one atom per signal and codes that follow, every atom has signals of its own, and its optimum is their
leading singular vector: K-SVD. With fixed codes, the best orthonormal atoms are a polar factor (the
Procrustes problem), and the best atoms of any norm are least squares.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from pymanopt.manifolds import Stiefel
from scipy.sparse import csc_array

from manifold_dl.manifolds import Euclidean, Lines, Spheres
from manifold_dl.problem import DictionaryProblem, update_problem

_M, _PER_ATOM = 6, 12


@dataclass(frozen=True)
class KnownProblem:
    """A problem, its start, and the value of its minimum. `make` returns a new problem at every call."""

    name: str
    make: Callable[[], DictionaryProblem]
    start: np.ndarray
    minimum: float


def known_problems(rng: np.random.Generator) -> Iterator[KnownProblem]:
    """Yield problems with one atom and several, on spheres, lines, orthonormal columns and in flat space."""
    for name, manifold, n_atoms in (
        ("one atom on a sphere", Spheres, 1),
        ("one atom on a line", Lines, 1),
        ("four atoms on spheres", Spheres, 4),
    ):
        yield _one_atom_per_signal(name, manifold, n_atoms, rng)
    X = csc_array(rng.standard_normal((3, 30)))
    Y = _unit_columns(rng.standard_normal((_M, 3))) @ X + 0.1 * rng.standard_normal((_M, 30))
    yield KnownProblem(
        "orthonormal atoms",
        lambda: update_problem(Y, X, manifold=Stiefel, codes="fixed", threads=1),
        np.linalg.qr(rng.standard_normal((_M, 3)))[0],
        float(np.sum(Y**2) + np.sum(X.data**2) - 2 * np.linalg.norm(Y @ X.T, "nuc")),
    )
    best = np.linalg.lstsq(X.T.toarray(), Y.T)[0].T
    yield KnownProblem(
        "atoms of any norm",
        lambda: update_problem(Y, X, manifold=Euclidean, codes="fixed", threads=1),
        rng.standard_normal((_M, 3)),
        float(np.sum((Y - best @ X) ** 2)),
    )


def solved_problem() -> KnownProblem:
    """Return a problem whose start is its minimum: residual and gradient are exactly zero there."""
    start = np.eye(_M)[:, :1]
    X = csc_array([[1.0, -2.0, 4.0]])
    Y = start @ X
    return KnownProblem("a start with zero gradient", lambda: update_problem(Y, X, threads=1), start, 0.0)


def _one_atom_per_signal(
    name: str, manifold: Callable, n_atoms: int, rng: np.random.Generator
) -> KnownProblem:
    groups = [_signals_along_one_direction(rng) for _ in range(n_atoms)]
    Y = np.hstack(groups)
    mask = np.kron(np.eye(n_atoms), np.ones(_PER_ATOM)) > 0
    minimum = float(np.sum(Y**2) - sum(np.linalg.norm(group, 2) ** 2 for group in groups))
    start = _unit_columns(rng.standard_normal((_M, n_atoms)))
    return KnownProblem(name, lambda: update_problem(Y, mask, manifold=manifold, threads=1), start, minimum)


def _signals_along_one_direction(rng: np.random.Generator) -> np.ndarray:
    """Return signals along one direction with noise in the others: one singular value is much larger."""
    direction = _unit_columns(rng.standard_normal((_M, 1)))
    return direction @ rng.standard_normal((1, _PER_ATOM)) + 0.2 * rng.standard_normal((_M, _PER_ATOM))


def _unit_columns(array: np.ndarray) -> np.ndarray:
    return array / np.linalg.norm(array, axis=0)
