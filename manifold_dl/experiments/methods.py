"""The methods that the paper compares, and the iteration in which the true support is known.

Figures 1 and 2 and the recovery experiment leave sparse coding out: the support is the true one throughout,
and only the dictionary updates are compared.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from pymanopt.optimizers import SteepestDescent

from manifold_dl.datasets import synthetic
from manifold_dl.line_search import GoldenSection
from manifold_dl.manifolds import Spheres
from manifold_dl.problem.update_problem import update_problem
from manifold_dl.updates import KSVD, MOD, SimCO, begin

PAPER = ("MOD", "K-SVD", "primitive SimCO", "regularized SimCO")
TRUTH = "true dictionary"  # the name, in tables, of the dictionary that made the signals

Draw = tuple[np.ndarray, scipy.sparse.csc_array, np.ndarray, np.ndarray]


def paper_methods(mu: Any, threads: int | None = 1) -> dict[str, Any]:
    """Return the four update rules of the paper, by name.

    Parameters
    ----------
    mu : float, sequence or callable
        The ridge of regularized SimCO, as `SimCO` takes it.
    threads : int, optional
        Threads of K-SVD and SimCO; None for all processors.

    Returns
    -------
    dict of str → update rule
        In the order of `PAPER`.
    """
    simco = [SimCO(one_step(), mu=ridge, threads=threads) for ridge in (0.0, mu)]
    return dict(zip(PAPER, (MOD(), KSVD(threads=threads), *simco), strict=True))


def one_step() -> SteepestDescent:
    """Return the paper's inner iteration: one golden-section step along the geodesic of −grad f."""
    return SteepestDescent(line_searcher=GoldenSection(), max_iterations=1, verbosity=0)


def in_equal_fractions(ridges: Sequence[float], iterations: int) -> Callable[[int], float]:
    """Return the ridge as a function of the iteration: each of `ridges` for an equal fraction of them.

    Parameters
    ----------
    ridges : sequence of float
        Values of μ, in the order of use.
    iterations : int
        The number of iterations of the run.

    Returns
    -------
    callable
        Iteration t → μ.

    Examples
    --------
    >>> mu = in_equal_fractions([1e-1, 1e-2], iterations=100)
    >>> mu(0), mu(49), mu(50), mu(99)
    (0.1, 0.1, 0.01, 0.01)
    """
    return lambda t: ridges[min(t * len(ridges) // iterations, len(ridges) - 1)]


def draw_signals(m: int, d: int, n: int, sparsity: int, *seeds: int, snr_db: float | None = None) -> Draw:
    """Draw signals of Section VI-B and a random initial dictionary.

    Parameters
    ----------
    m, d, n : int
        Length of the signals, number of atoms, number of signals.
    sparsity : int
        Atoms per signal.
    *seeds : int
        Everything random follows from them.
    snr_db : float, optional
        Signal-to-noise ratio in decibel; no noise by default.

    Returns
    -------
    true_dictionary : array (m×d)
    codes : sparse array (d×n)
    signals : array (m×n)
    start : array (m×d)
        A random dictionary with unit atoms.
    """
    rng = np.random.default_rng(seeds)
    true, X, Y = synthetic(m, d, n, sparsity, snr_db=snr_db, rng=rng)
    return true, X, Y, Spheres(m, d).random_point(rng)


def update_with_true_support(
    update: Any,
    Y: np.ndarray,
    support: Any,
    D: np.ndarray,
    iterations: int,
    visit: Callable[[int, np.ndarray], None] | None = None,
) -> np.ndarray:
    """Iterate one update rule, each time from the codes that are optimal for the dictionary.

    Parameters
    ----------
    update : DictionaryUpdate
        The rule.
    Y : array (m×n)
        The signals.
    support : array or sparse array
        The true support Ω.
    D : array (m×d)
        The initial dictionary.
    iterations : int
        How often the rule is applied.
    visit : callable, optional
        Called with t and the dictionary before iteration t, and with the last dictionary.

    Returns
    -------
    array (m×d)
        The last dictionary.
    """
    coding, run = update_problem(Y, support, threads=1), begin(update, iterations)
    for t in range(iterations):
        if visit:
            visit(t, D)
        D, _ = run(Y, D, coding.codes(D), iteration=t)
    if visit:
        visit(iterations, D)
    return D


def error_per_signal(Y: np.ndarray, support: Any, D: np.ndarray) -> float:
    """Return ‖Y − DX‖²/n with the optimal codes on the support: the same measure for every method.

    Parameters
    ----------
    Y : array (m×n)
        The signals.
    support : array or sparse array
        The support Ω.
    D : array (m×d)
        The dictionary.

    Returns
    -------
    float
    """
    X = update_problem(Y, support, threads=1).codes(D)
    return float(np.sum((Y - D @ X) ** 2) / Y.shape[1])
