"""Random combinations of parts, and what has to be true of each: "swap any part", drawn instead of listed.

A `Swap` names an optimizer, a line searcher, a manifold, a schedule, a regularizer, how the codes behave, a
ridge and a coder. `draw(seed)` makes one; `refusal(swap)` says with which sentences it may be refused, if it
must be; the functions in `QUESTIONS` run it and compare the outcome with an answer that is not ours: NumPy's
least squares, the singular value decomposition, Pymanopt's trust region, the definition of the manifold.
"""

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import autograd.numpy as anp
import numpy as np
import pymanopt.manifolds
import scipy.sparse
from pymanopt.optimizers import ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions
from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher

import manifold_dl as mdl
from manifold_dl import manifolds, regularizers, schedules

M, N, SPARSITY = 6, 60, 2
BASIS = np.random.default_rng(11).standard_normal((M, M - 1))  # of the subspace that `Subspace` gets

SEARCHERS = {
    "its own": lambda: None,
    "backtracking": BackTrackingLineSearcher,
    "adaptive": AdaptiveLineSearcher,
    "golden section": mdl.GoldenSection,
    "cubic": mdl.WolfeSearch,
}
# (searcher, steps) → optimizer; those in `ALONG_LINES` take a line searcher.
OPTIMIZERS: dict[str, Callable] = {
    "default": lambda searcher, steps: None,
    "SteepestDescent": lambda searcher, steps: SteepestDescent(
        line_searcher=searcher, max_iterations=steps, verbosity=0
    ),
    "ConjugateGradient": lambda searcher, steps: ConjugateGradient(
        line_searcher=searcher, max_iterations=steps, verbosity=0
    ),
    "LBFGS": lambda searcher, steps: mdl.LBFGS(line_searcher=searcher, max_iterations=steps, verbosity=0),
    "TrustRegions": lambda searcher, steps: TrustRegions(max_iterations=min(steps, 60), verbosity=0),
    "LeadingSingularVector": lambda searcher, steps: mdl.LeadingSingularVector(),
    "NelderMead": lambda searcher, steps: NelderMead(max_iterations=min(steps, 60), verbosity=0),
    "ParticleSwarm": lambda searcher, steps: ParticleSwarm(
        max_iterations=min(steps, 60), population_size=16, verbosity=0
    ),
}
ALONG_LINES = ("SteepestDescent", "ConjugateGradient", "LBFGS")
WITHOUT_DERIVATIVES = ("NelderMead", "ParticleSwarm")

# name → (factory, number of atoms): an orthonormal dictionary is not overcomplete.
MANIFOLDS = {
    "Spheres": (manifolds.Spheres, 9),
    "Lines": (manifolds.Lines, 9),
    "ZeroMean": (manifolds.ZeroMean, 9),
    "Subspace": (manifolds.Subspace(BASIS), 9),
    "NonNegative": (manifolds.NonNegative, 9),
    "Orthonormal": (manifolds.Orthonormal, 5),
    "Euclidean": (manifolds.Euclidean, 9),
    "Columns": (manifolds.Columns(pymanopt.manifolds.Sphere), 9),
    "pymanopt Oblique": (pymanopt.manifolds.Oblique, 9),
    "pymanopt Stiefel": (pymanopt.manifolds.Stiefel, 5),
    "pymanopt Euclidean": (pymanopt.manifolds.Euclidean, 9),
    "pymanopt Sphere": (pymanopt.manifolds.Sphere, 9),
    "pymanopt Grassmann": (pymanopt.manifolds.Grassmann, 5),
    "pymanopt Positive": (pymanopt.manifolds.Positive, 9),
}
UNIT_SPHERES = ("Spheres", "Lines", "Columns", "pymanopt Oblique", "pymanopt Stiefel", "pymanopt Sphere")
CLOSED_FORM = (
    *("Spheres", "Lines", "ZeroMean", "Subspace", "Orthonormal"),
    *("pymanopt Oblique", "pymanopt Stiefel", "pymanopt Grassmann"),
)
WITHOUT_DISTANCE = ("Orthonormal", "pymanopt Stiefel", "pymanopt Grassmann", "pymanopt Positive")
# From which manifolds a question is drawn; the trust region itself would start off `Positive`.
POSSIBLE = {
    "single atom": UNIT_SPHERES,
    "minimum": tuple(name for name in MANIFOLDS if "Positive" not in name),
}
FREE_NORMS = ("Euclidean", "pymanopt Euclidean", "pymanopt Sphere")
COUPLED = ("Orthonormal", "pymanopt Stiefel", "pymanopt Sphere", "pymanopt Grassmann")

SCHEDULES = {
    "all": schedules.AllAtoms(),
    "one": schedules.OneAtATime(),
    "blocks": schedules.Blocks(3),
    "random": schedules.RandomSubsets(size=2, count=4),
    "overlapping": schedules.Overlapping(size=3, step=2),
    "two sets": [[1, 3], [0]],
    "one set": [[2, 0, 4]],
}

# Weights are absolute: the signals have norms of about one, and there are N of them.
REGULARIZERS: dict[str, Callable] = {
    "none": lambda D: [],
    "Coherence": lambda D: [regularizers.Coherence(1.0)],
    "Smoothness": lambda D: [regularizers.Smoothness(0.5, shape=(M,))],
    "Tether": lambda D: [regularizers.Tether(2.0, reference=D.copy())],
    "Sparse": lambda D: [regularizers.Sparse(0.3)],
    "function": lambda D: [regularizers.regularizer(lambda A: anp.sum(A**4))],
    "a sum": lambda D: [0.5 * regularizers.Coherence(1.0, power=2) + regularizers.Sparse(0.1)],
}

CODERS: dict[str, Callable] = {
    "OMP": lambda mask: mdl.OMP(sparsity=SPARSITY),
    "ForwardSelection": lambda mask: mdl.ForwardSelection(sparsity=SPARSITY),
    "Lasso": lambda mask: mdl.Lasso(alpha=0.05, sparsity=SPARSITY),
    "SubspacePursuit": lambda mask: mdl.SubspacePursuit(sparsity=SPARSITY),
    "IHT": lambda mask: mdl.IHT(sparsity=SPARSITY),
    "MatchingPursuit": lambda mask: mdl.MatchingPursuit(sparsity=SPARSITY),
    "FOCUSS": lambda mask: mdl.FOCUSS(sparsity=SPARSITY),
    "FixedSupport": lambda mask: mdl.FixedSupport(mask),
}


@dataclass(frozen=True)
class Swap:
    """One combination, by names; `question` says what its outcome is compared with."""

    seed: int
    question: str
    optimizer: str
    searcher: str
    manifold: str
    schedule: str
    regularizer: str
    codes: str
    mu: float
    coder: str


@dataclass(frozen=True)
class Data:
    """Noisy signals of a dictionary on the manifold, another such dictionary and codes for it."""

    signals: np.ndarray
    start: np.ndarray
    codes: scipy.sparse.csc_array
    coder: Any


def draw(seed):
    """A combination drawn at random, the same for the same seed."""
    rng = np.random.default_rng([2024, seed])
    pick = lambda names: str(rng.choice(list(names)))
    question = str(rng.choice(["stage", "minimum", "single atom", "loop"], p=[0.5, 0.2, 0.15, 0.15]))
    # The two that compare values only take a hundred times as long as the others.
    optimizer = pick(OPTIMIZERS)
    if optimizer in WITHOUT_DERIVATIVES and rng.random() < 0.5:
        optimizer = "TrustRegions"
    manifold = pick(POSSIBLE.get(question, MANIFOLDS))
    follow = 1.0 if question == "single atom" else 0.75
    if question == "minimum" and manifold in FREE_NORMS:
        follow = 0.0  # codes that follow make up for any norm: there is no minimum to come back to
    return Swap(
        seed=seed,
        question=question,
        optimizer=optimizer,
        searcher=pick(SEARCHERS) if optimizer in ALONG_LINES else "none",
        manifold=manifold,
        schedule={"minimum": "all", "single atom": "one"}.get(question) or pick(SCHEDULES),
        regularizer="none" if question == "single atom" else pick(REGULARIZERS),
        codes=str(rng.choice(["follow", "fixed"], p=[follow, 1 - follow])),
        mu=float(rng.choice([0.0, 0.01, 0.1])),
        coder=pick(CODERS),
    )


def refusal(swap):
    """Words of the sentences with which this combination may be refused; none if it has to run."""
    sizes, words = [len(I) for I in subsets(swap, 0)], []
    if swap.manifold == "pymanopt Positive":  # the start has negative entries: which positive ones are meant?
        words.append("closest")
    if swap.manifold == "pymanopt Grassmann" and max(sizes) > 1:  # f is no function of the span
        words.append("Lines")
    if swap.manifold == "Orthonormal" and min(sizes) < MANIFOLDS["Orthonormal"][1]:
        words.append("ties all atoms to each other")
    if swap.optimizer == "LeadingSingularVector":
        if max(sizes) > 1:
            words.append("one atom at a time")
        if swap.codes == "fixed" or swap.regularizer != "none":
            words.append("no closed form for fixed codes or regularizers")
        if swap.manifold not in CLOSED_FORM:
            words.append("no closed form on")
    if swap.optimizer in WITHOUT_DERIVATIVES and swap.manifold in WITHOUT_DISTANCE:
        words.append("dist|log|pair_mean")
    return words


def subsets(swap, rng):
    """The sets I of one sweep."""
    return schedules.sweep(SCHEDULES[swap.schedule], MANIFOLDS[swap.manifold][1], rng)


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
    """From near the trust region's minimum every optimizer that has derivatives comes back to it."""
    given = data(swap)
    rule = update(swap, given, steps=500)
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


def single_atom(swap):
    """One atom at a time, every optimizer ends where the singular value decomposition does."""
    given = data(swap)
    D, X = update(swap, given, steps=300)(given.signals, given.start, given.codes, rng=0)
    D_svd, X_svd = given.start.copy(), given.codes.toarray()
    for i in range(D.shape[1]):
        users = given.codes[[i]].toarray().ravel() != 0
        if users.any():
            rest = given.signals[:, users] - D_svd @ X_svd[:, users] + np.outer(D_svd[:, i], X_svd[i, users])
            D_svd[:, i] = np.linalg.svd(rest)[0][:, 0]
            X_svd[i, users] = D_svd[:, i] @ rest / (1 + swap.mu)
    best, found = total(swap, given, D_svd, X_svd), total(swap, given, D, X)
    # Nelder-Mead ends up to 1 % above the minimum of an atom, and later atoms see that; the default makes
    # five steps. A whole sweep of a swarm was measured 20 % above, at 16x32.
    allowed = {"NelderMead": 0.05, "default": 0.05, "ParticleSwarm": 0.25}.get(swap.optimizer, 1e-5)
    assert abs(found - best) <= allowed * best, (found, best)


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


QUESTIONS = {"stage": stage, "minimum": minimum, "single atom": single_atom, "loop": loop}

PACKAGE = Path(inspect.getfile(mdl)).parent


def is_ours(error):
    """Whether an exception is a sentence of this package: raised by one of its lines, or naming a part."""
    if isinstance(error, mdl.ComponentError):
        return True
    if not isinstance(error, ValueError | TypeError):
        return False
    return PACKAGE in Path(traceback.extract_tb(error.__traceback__)[-1].filename).parents
