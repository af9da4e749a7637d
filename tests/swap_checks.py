"""The checks of a combination of parts (`swaps.Swap`), each with an answer that something else computed.

`CHECKS` names them: one stage of an update, a minimum, a single atom and the learning loop. The answers come
from NumPy's least squares, the singular value decomposition, Pymanopt's trust region and the definition of
the manifold.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from pymanopt.optimizers import TrustRegions
from swaps import (
    BASIS,
    CODERS,
    COUPLED,
    MANIFOLDS,
    OPTIMIZERS,
    REGULARIZERS,
    SCHEDULES,
    SEARCHERS,
    SPARSITY,
    WITHOUT_DERIVATIVES,
    M,
    N,
    subsets,
)

import manifold_dl as mdl


@dataclass(frozen=True)
class Data:
    """Noisy signals of a dictionary on the manifold, another such dictionary and codes for it."""

    signals: np.ndarray
    start: np.ndarray
    codes: scipy.sparse.csc_array
    coder: Any


def data(swap):
    """Signals, start and codes of a combination."""
    rng = np.random.default_rng([7, swap.seed])
    d = MANIFOLDS[swap.manifold][1]
    mask = np.argsort(rng.random((d, N)), axis=0) < SPARSITY
    truth, start = (feasible(swap, rng.standard_normal((M, d))) for _ in range(2))
    clean = truth @ (mask * rng.standard_normal((d, N)))
    Y = clean + 0.1 * rng.standard_normal((M, N)) * np.sqrt(np.mean(clean**2))
    coder = CODERS[swap.coder](mask)
    return Data(Y, start, coder.encode(Y, start), coder)


def feasible(swap, A):
    """A dictionary on the manifold, from its definition."""
    if swap.manifold == "ZeroMean":
        A = A - A.mean(axis=0)
    elif swap.manifold == "Subspace":
        A = BASIS @ np.linalg.lstsq(BASIS, A, rcond=None)[0]
    elif swap.manifold == "NonNegative":
        A = np.abs(A) + 1e-3
    elif swap.manifold in ("Orthonormal", "pymanopt Stiefel"):
        A = np.linalg.qr(A)[0]
    elif swap.manifold == "pymanopt Sphere" and swap.schedule == "all":
        return A / np.linalg.norm(A)
    return A / np.linalg.norm(A, axis=0)


def distance_to_manifold(swap, D, sets):
    """How far D is from the definition of its manifold, in the sets of atoms that moved."""
    norms = np.abs(np.linalg.norm(D, axis=0) - 1).max()
    last = sets[-1]
    if swap.manifold == "ZeroMean":
        return max(norms, np.abs(D.sum(axis=0)).max())
    if swap.manifold == "Subspace":
        return max(norms, np.abs(D - BASIS @ np.linalg.lstsq(BASIS, D, rcond=None)[0]).max())
    if swap.manifold == "NonNegative":
        return max(norms, -D.min())
    if swap.manifold in ("Orthonormal", "pymanopt Stiefel"):
        return np.abs(D[:, last].T @ D[:, last] - np.eye(len(last))).max()
    if swap.manifold == "pymanopt Sphere":
        return abs(np.linalg.norm(D[:, last]) - 1)
    return 0.0 if "Euclidean" in swap.manifold else norms


def total(swap, given, D, X):
    """‖Y − DX‖² + μ‖X‖² + R(D): what an update lowers. Fixed codes have no ridge."""
    X = X.toarray() if scipy.sparse.issparse(X) else X
    value = np.sum((given.signals - D @ X) ** 2)
    if swap.codes == "follow":
        value += swap.mu * np.sum(X**2)
    return value + sum(float(R.value(D)) for R in REGULARIZERS[swap.regularizer](given.start))


def best_codes(swap, Y, D, X):
    """The ridge solution on the support of X, signal by signal, by NumPy's least squares."""
    best = np.zeros(X.shape)
    for j in range(X.shape[1]):
        support = X.indices[X.indptr[j] : X.indptr[j + 1]]
        A = np.vstack([D[:, support], np.sqrt(swap.mu) * np.eye(len(support))])
        right = np.concatenate([Y[:, j], np.zeros(len(support))])
        best[support, j] = np.linalg.lstsq(A, right, rcond=None)[0]
    return best


def update(swap, given, steps):
    """The update rule of a combination."""
    return mdl.SimCO(
        optimizer=OPTIMIZERS[swap.optimizer](SEARCHERS.get(swap.searcher, lambda: None)(), steps),
        manifold=MANIFOLDS[swap.manifold][0],
        mu=swap.mu,
        schedule=SCHEDULES[swap.schedule],
        regularizers=REGULARIZERS[swap.regularizer](given.start),
        codes=swap.codes,
        threads=1,
    )


def stage(swap):
    """One stage: lower than the start, on the manifold, nothing moved but the sets I and their codes."""
    given = data(swap)
    Y, D0, X0 = given.signals, given.start, given.codes
    D, X = update(swap, given, steps=4)(Y, D0, X0, rng=0)
    sets = subsets(swap, 0)
    before, after = total(swap, given, D0, X0), total(swap, given, D, X)
    # Atoms that are tied together leave the manifold when another set takes some of them along.
    starts_on_manifold = swap.manifold not in COUPLED or swap.schedule == "all"
    if starts_on_manifold:
        assert after <= before + 1e-10 * (before + np.sum(Y**2)), (before, after)
    # 1e-7: Pymanopt's own manifolds never renormalise, and a start that is right to half the digits stays.
    assert distance_to_manifold(swap, D, sets) < 1e-7
    still = np.setdiff1d(np.arange(D.shape[1]), np.concatenate(sets))
    np.testing.assert_array_equal(D[:, still], D0[:, still])
    np.testing.assert_array_equal(X[still].toarray(), X0[still].toarray())
    np.testing.assert_array_equal(X.indices, X0.indices)
    if swap.codes == "fixed":
        if starts_on_manifold:
            np.testing.assert_array_equal(X.data, X0.data)
    elif swap.schedule == "all":
        # 1e-8: normal equations of two atoms lose at most the square of their condition number.
        np.testing.assert_allclose(X.toarray(), best_codes(swap, Y, D, X), atol=1e-8 * np.abs(X.data).max())


def minimum(swap):
    """From near a minimum every optimizer that has derivatives ends where the trust region does."""
    given = data(swap)
    # Without derivatives no minimum is required below, and a step takes a hundred times as long.
    rule = update(swap, given, steps=60 if swap.optimizer in WITHOUT_DERIVATIVES else 500)
    problem = mdl.update_problem(
        given.signals,
        given.codes,
        manifold=rule.manifold,
        mu=rule.mu,
        dictionary=given.start,
        regularizers=rule.regularizers,
        codes=rule.codes,
        threads=1,
    )
    solver = TrustRegions(max_iterations=100, min_gradient_norm=1e-9, verbosity=0)
    lowest = solver.run(problem, initial_point=given.start).point
    aside = problem.manifold.projection(
        lowest, np.random.default_rng(swap.seed).standard_normal(lowest.shape)
    )
    start = problem.manifold.retraction(lowest, 0.05 / np.linalg.norm(aside) * aside)
    # From there another minimum may be the nearest, at the boundary of NonNegative for one.
    lowest = solver.run(problem, initial_point=start).point
    X = given.codes
    if swap.codes == "follow":
        X = scipy.sparse.csc_array((problem.codes(start).data, X.indices, X.indptr), shape=X.shape)
    D, X_new = rule(given.signals, start, X, rng=0)
    f_start, f_end, f_least = (
        total(swap, given, A, C) for A, C in ((start, X), (D, X_new), (lowest, problem.codes(lowest)))
    )
    assert f_end <= f_start + 1e-10 * f_start
    assert distance_to_manifold(swap, D, subsets(swap, 0)) < 1e-7
    if swap.optimizer in (*WITHOUT_DERIVATIVES, "default"):
        return  # five steps, or a search that only comes near
    # One percent of the way back may be left: flat directions of f make first-order methods slow.
    assert f_end - f_least <= 0.01 * (f_start - f_least) + 1e-9 * f_start, (f_start, f_end, f_least)


# How far above the least squared error an optimizer may leave a single atom, as a fraction of the energy ‖R‖²
# of its residuals; not of the least error, which is zero for an atom that only one signal uses. Seen in 6×9:
# Nelder-Mead, 150 steps, 323 atoms: within 2e-7 in nine of ten, at most 6e-3;
# a swarm of 40, 60 steps, 370 atoms: within 1e-5 in nine of ten, at most 1.4e-2 (with 16 particles: 5e-2);
# the five steps of the default, 527 atoms: within 2e-7 in nine of ten, at most 1.5e-3;
# conjugate gradients, 611 atoms: 6e-8 for one (by backtracking; its direction was zero but for rounding).
# All others ended within 2e-11.
ABOVE_LEAST = {"NelderMead": 2e-2, "ParticleSwarm": 3e-2, "default": 5e-3, "ConjugateGradient": 1e-6}
TYPICALLY = 1e-4  # the median atom of a sweep, a hundred times what is seen


def single_atom(swap):
    """For every atom the optimizer ends at the minimum that the leading singular value of R gives.

    With codes that follow, the cost of an atom u is ‖R‖² − ‖Rᵀu‖²/(1 + μ), where R are the residuals without
    that atom. Each atom is compared from the state that the atoms before it left: nothing accumulates.
    """
    given = data(swap)
    rule, allowed = update(swap, given, steps=300), ABOVE_LEAST.get(swap.optimizer, 1e-8)
    D, X, above = given.start, given.codes, []
    for i in range(D.shape[1]):
        users = given.codes[[i]].toarray().ravel() != 0
        if not users.any():
            continue
        codes = X.toarray()[:, users]
        R = given.signals[:, users] - D @ codes + np.outer(D[:, i], codes[i])
        D, X = replace(rule, schedule=[[i]])(given.signals, D, X, rng=i)
        x = X.toarray()[i, users]
        energy = np.sum(R**2)
        least = energy - np.linalg.norm(R, 2) ** 2 / (1 + swap.mu)
        found = np.sum((R - np.outer(D[:, i], x)) ** 2) + swap.mu * np.sum(x**2)
        above.append((found - least) / energy)
        assert -1e-12 <= above[-1] <= allowed, f"atom {i}: {found} where the least is {least}, ‖R‖² {energy}"
    assert np.median(above) <= TYPICALLY
    if allowed <= 1e-4:  # a sweep makes the same moves, and later atoms see what earlier ones left
        sweep = total(swap, given, *rule(given.signals, given.start, given.codes, rng=0))
        assert abs(sweep - total(swap, given, D, X)) <= 1e-5 * sweep


def loop(swap):
    """The estimator gives the bits of the function, and the result is on the manifold."""
    given = data(swap)
    rule = update(swap, given, steps=3)
    settings = {"coder": given.coder, "update": rule, "max_iter": 3, "tol": 0}
    function = mdl.learn_dictionary(
        given.signals, given.start.shape[1], init=given.start, rng=0, threads=1, **settings
    )
    estimator = mdl.ManifoldDictionaryLearning(
        given.start.shape[1], init=given.start.T, random_state=0, **settings
    ).fit(given.signals.T)
    np.testing.assert_array_equal(estimator.components_, function.dictionary.T)
    np.testing.assert_array_equal(estimator.history_.loss, function.history.loss)
    assert np.isfinite(function.history.loss).all()
    if swap.schedule in ("all", "one") or swap.manifold not in COUPLED:
        sets = subsets(swap, 0)
        assert distance_to_manifold(swap, function.dictionary, sets) < 1e-7


CHECKS = {"stage": stage, "minimum": minimum, "single atom": single_atom, "loop": loop}
