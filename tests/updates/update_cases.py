"""Data, schedules and checks that the tests of the update rules have in common."""

import numpy as np
import scipy.sparse

from manifold_dl.datasets import synthetic
from manifold_dl.line_search import trace
from manifold_dl.manifolds import Spheres
from manifold_dl.schedules import AllAtoms, Blocks, OneAtATime, Overlapping, RandomSubsets, sweep

M, D_, N, S = 8, 12, 90, 3


def unit(m, d, rng):
    return Spheres(m, d).random_point(rng)


def problem_data(seed=0, m=M, d=D_, n=N, sparsity=S, dtype=float):
    """Noisy signals, a dictionary that did not make them, and codes on the true support."""
    rng = np.random.default_rng(seed)
    _, X, Y = synthetic(m, d, n, sparsity, snr_db=10, rng=rng)
    X.data = rng.standard_normal(len(X.data))
    return Y.astype(dtype), unit(m, d, rng).astype(dtype), X.astype(dtype)


def objective(Y, D, X, mu=0.0, regularizers=()):
    return (
        np.linalg.norm(Y - D @ X) ** 2 + mu * scipy.sparse.linalg.norm(X) ** 2
        + sum(penalty.value(D) for penalty in regularizers)
    )  # fmt: skip


def assert_same_pattern(X, X_new):
    np.testing.assert_array_equal(X_new.indptr, X.indptr)
    np.testing.assert_array_equal(X_new.indices, X.indices)


def assert_unit(D):
    # A sum of m squares and a root, each rounded: a few times √m ε.
    eps = np.finfo(D.dtype).eps
    np.testing.assert_allclose(np.linalg.norm(D.astype(float), axis=0), 1, atol=8 * np.sqrt(len(D)) * eps)


def exact_ksvd(Y, D, X, mu=0.0):
    """K-SVD as in the literature: the rank-one approximation of what the other atoms leave, atom by atom."""
    D, X, used = D.copy(), X.toarray(), X.astype(bool).toarray()
    for i in range(D.shape[1]):
        users = used[i]
        E = Y[:, users] - D @ X[:, users] + np.outer(D[:, i], X[i, users])
        U, s, Vt = np.linalg.svd(E, full_matrices=False)
        D[:, i] = U[:, 0]
        X[i, users] = s[0] * Vt[0] / (1 + mu)
    return D, X


def projectors(D):
    return np.einsum("ik,jk->kij", D, D)


class OddAtoms:
    """A schedule as a user would write it."""

    def subsets(self, n_atoms, rng=None):
        yield np.arange(1, n_atoms, 2)


SCHEDULES = [
    AllAtoms(),
    OneAtATime(),
    OneAtATime(order="random"),
    OneAtATime(order="usage"),
    Blocks(5),
    Blocks(D_),
    RandomSubsets(size=4, count=2),
    Overlapping(size=5, step=3),
    [[3], [7, 2]],
    (np.arange(D_) < 4,),
    OddAtoms(),
]


def check_update(update, Y, D, X, *, mu=0.0, regularizers=(), rng=0):
    """What every rule promises for the sets I of its schedule."""
    D_new, X_new = update(Y, D, X, rng=rng)
    usage = np.diff(X.tocsr().indptr)
    moved = np.unique(np.concatenate(sweep(update.schedule, D.shape[1], rng, usage=usage)))
    outside = np.setdiff1d(np.arange(D.shape[1]), moved)
    np.testing.assert_array_equal(D_new[:, outside], D[:, outside])
    np.testing.assert_array_equal(X_new.tocsr()[outside].toarray(), X.tocsr()[outside].toarray())
    assert_same_pattern(X, X_new)
    assert_unit(D_new)
    # The residuals on both sides are rounded: some ε of a sum of m n squares, and some ε² where that is zero.
    before, after = (objective(Y, *pair, mu, regularizers) for pair in ((D, X), (D_new, X_new)))
    assert after <= before * (1 + 1e-13) + 1e-28 * np.linalg.norm(Y) ** 2
    return D_new, X_new


def ragged_data(seed, m=M, d=D_, n=N, dtype=float):
    """Supports of none to four atoms, two atoms that no signal uses, and signals that occur twice."""
    rng = np.random.default_rng(seed)
    X = np.zeros((d, n))
    for j, size in enumerate(rng.integers(0, 5, n)):
        X[rng.choice(np.setdiff1d(np.arange(d), [0, 5]), size, replace=False), j] = rng.standard_normal(size)
    Y = unit(m, d, rng) @ X + 0.1 * rng.standard_normal((m, n))
    copied = slice(0, n // 3)
    Y[:, -(n // 3) :], X[:, -(n // 3) :] = Y[:, copied], X[:, copied]
    return Y.astype(dtype), unit(m, d, rng).astype(dtype), scipy.sparse.csc_array(X).astype(dtype)


def searches_of(update, *args, **kwargs):
    with trace() as searches:
        result = update(*args, **kwargs)
    return result, searches
