"""Random combinations of parts, and what has to be true of each: "swap any part", drawn instead of listed.

A `Swap` names an optimizer, a line searcher, a manifold, a schedule, a regularizer, how the codes behave, a
ridge and a coder. `draw(seed)` makes one; `refusal(swap)` says with which sentences it may be refused, if it
must be. `swap_checks.py` runs it and compares the outcome with an answer that something else computed.
"""

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import autograd.numpy as anp
import numpy as np
import pymanopt.manifolds
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
    "NelderMead": lambda searcher, steps: NelderMead(max_iterations=min(steps, 150), verbosity=0),
    "ParticleSwarm": lambda searcher, steps: ParticleSwarm(
        max_iterations=min(steps, 60), population_size=40, verbosity=0
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
# From which manifolds a check is drawn; the trust region itself would start off `Positive`.
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
    """One combination, by names; `check` says what its outcome is compared with."""

    seed: int
    check: str
    optimizer: str
    searcher: str
    manifold: str
    schedule: str
    regularizer: str
    codes: str
    mu: float
    coder: str


def draw(seed):
    """A combination drawn at random, the same for the same seed."""
    rng = np.random.default_rng([2024, seed])
    pick = lambda names: str(rng.choice(list(names)))
    check = str(rng.choice(["stage", "minimum", "single atom", "loop"], p=[0.5, 0.2, 0.15, 0.15]))
    # The two that compare values only take a hundred times as long as the others.
    optimizer = pick(OPTIMIZERS)
    if optimizer in WITHOUT_DERIVATIVES and rng.random() < 0.5:
        optimizer = "TrustRegions"
    manifold = pick(POSSIBLE.get(check, MANIFOLDS))
    follow = 1.0 if check == "single atom" else 0.75
    if check == "minimum" and manifold in FREE_NORMS:
        follow = 0.0  # codes that follow make up for any norm: there is no minimum to come back to
    return Swap(
        seed=seed,
        check=check,
        optimizer=optimizer,
        searcher=pick(SEARCHERS) if optimizer in ALONG_LINES else "none",
        manifold=manifold,
        schedule={"minimum": "all", "single atom": "one"}.get(check) or pick(SCHEDULES),
        regularizer="none" if check == "single atom" else pick(REGULARIZERS),
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
    # Pymanopt's Grassmann lacks `pair_mean` alone, which the swarm does not call.
    swarm_on_grassmann = (swap.optimizer, swap.manifold) == ("ParticleSwarm", "pymanopt Grassmann")
    if swap.optimizer in WITHOUT_DERIVATIVES and swap.manifold in WITHOUT_DISTANCE and not swarm_on_grassmann:
        words.append("dist|log|pair_mean")
    return words


def subsets(swap, rng):
    """The sets I of one sweep."""
    return schedules.sweep(SCHEDULES[swap.schedule], MANIFOLDS[swap.manifold][1], rng)


PACKAGE = Path(inspect.getfile(mdl)).parent


def is_ours(error):
    """Whether an exception is a sentence of this package: raised by one of its lines, or naming a part."""
    if isinstance(error, mdl.ComponentError):
        return True
    if not isinstance(error, ValueError | TypeError):
        return False
    return PACKAGE in Path(traceback.extract_tb(error.__traceback__)[-1].filename).parents
