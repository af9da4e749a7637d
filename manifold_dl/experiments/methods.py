"""The methods that the paper compares, and the loop in which the true support is known.

Figures 1 and 2 and the flagship take the sparse coding for granted: the support is the true one throughout,
and only the dictionary update is left to compare.
"""

import numpy as np
from pymanopt.optimizers import SteepestDescent

from manifold_dl.datasets import synthetic
from manifold_dl.line_search import GoldenSection
from manifold_dl.manifolds import Spheres
from manifold_dl.problem.update_problem import update_problem
from manifold_dl.updates.simco import KSVD, MOD, SimCO, begin

PAPER = ("MOD", "K-SVD", "primitive SimCO", "regularized SimCO")


def paper_methods(mu, threads=1):
    """The four update rules of the paper, by name; `mu` is the ridge of the regularized one."""
    simco = [SimCO(one_step(), mu=ridge, threads=threads) for ridge in (0.0, mu)]
    return dict(zip(PAPER, (MOD(), KSVD(threads=threads), *simco), strict=True))


def one_step():
    """One golden-section step along the geodesic of the negative gradient, the paper's inner iteration."""
    return SteepestDescent(line_searcher=GoldenSection(), max_iterations=1, verbosity=0)


def in_equal_shares(ridges, iterations):
    """The ridge of iteration t, where each of `ridges` holds for an equal share of the iterations.

    Examples
    --------
    >>> mu = in_equal_shares([1e-1, 1e-2], iterations=100)
    >>> mu(0), mu(49), mu(50), mu(99)
    (0.1, 0.1, 0.01, 0.01)
    """
    return lambda t: ridges[min(t * len(ridges) // iterations, len(ridges) - 1)]


def draw_signals(m, d, n, sparsity, *seeds, snr_db=None):
    """Signals of Section VI-B and a random start, drawn from the seeds: (true D, X, Y, D₀)."""
    rng = np.random.default_rng(seeds)
    true, X, Y = synthetic(m, d, n, sparsity, snr_db=snr_db, rng=rng)
    return true, X, Y, Spheres(m, d).random_point(rng)


def update_with_true_support(update, Y, support, D, iterations, visit=None):
    """Iterate one update rule, each time from the codes that are best for the dictionary; returns it.

    `visit(t, D)` sees the dictionary before iteration t, and the last one.
    """
    coding, run = update_problem(Y, support, threads=1), begin(update, iterations)
    for t in range(iterations):
        if visit:
            visit(t, D)
        D, _ = run(Y, D, coding.codes(D), iteration=t)
    if visit:
        visit(iterations, D)
    return D


def error_per_signal(Y, support, D):
    """‖Y − DX‖²/n with the best codes on the support, the same measure for every method."""
    X = update_problem(Y, support, threads=1).codes(D)
    return float(np.sum((Y - D @ X) ** 2) / Y.shape[1])
