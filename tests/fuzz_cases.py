"""Random problems for Hypothesis: shapes from one on, types, supports, ridges, and all kinds of parts."""

import hypothesis.strategies as st
import numpy as np
import scipy.sparse
from pymanopt.manifolds import Oblique
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from pymanopt.optimizers.line_search import BackTrackingLineSearcher

import manifold_dl as mdl
from manifold_dl import manifolds, regularizers, schedules

MANIFOLDS = [
    *(manifolds.Spheres, manifolds.Lines, manifolds.ZeroMean, manifolds.NonNegative, Oblique),
    manifolds.Orthonormal,
]
RIDGES = [0.0, 1e-8, 1e-3, 0.1, 10.0]
SCALES = [1.0, 1.0, 2.0**-40, 2.0**90, 2.0**-300]


def searchers():
    return st.sampled_from([mdl.WolfeSearch, mdl.GoldenSection, BackTrackingLineSearcher]).map(lambda c: c())


@st.composite
def optimizers(draw):
    kind = draw(st.sampled_from([None, ConjugateGradient, SteepestDescent, mdl.LBFGS, TrustRegions]))
    if kind is None:
        return None
    if kind is TrustRegions:
        return TrustRegions(max_iterations=3, verbosity=0)
    return kind(line_searcher=draw(searchers()), max_iterations=draw(st.integers(1, 4)), verbosity=0)


@st.composite
def problems(draw):
    """(signals, dictionary, codes) of any shape and type: signals may be zero, atoms equal, supports none."""
    m, d = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    n = draw(st.one_of(st.integers(1, 12), st.just(2500)))  # the last makes several blocks
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    largest = draw(st.integers(0, min(d, max(1, m - 1), 3)))
    X = np.zeros((d, n))
    for j in range(n):
        atoms = rng.choice(d, rng.integers(0, largest + 1), replace=False)
        X[atoms, j] = rng.standard_normal(len(atoms))
    D = rng.standard_normal((m, d))
    if d > 1 and draw(st.booleans()):
        D[:, 1] = draw(st.sampled_from([1.0, -1.0])) * D[:, 0]  # equal or opposite atoms
    D /= np.linalg.norm(D, axis=0)
    Y = D @ X + draw(st.sampled_from([0.0, 0.1, 1.0])) * rng.standard_normal((m, n))
    if draw(st.booleans()):
        Y[:, rng.random(n) < 0.3] = 0
    # Single precision holds no more than 1e38.
    scale = draw(st.sampled_from(SCALES[:4] if dtype is np.float32 else SCALES))
    return (Y * scale).astype(dtype), D.astype(dtype), scipy.sparse.csc_array((X * scale).astype(dtype))


@st.composite
def weights(draw, signals):
    """None, one number per signal or one per entry; some are zero, and all of them may be."""
    kind = draw(st.sampled_from([None, None, "signals", "entries", "observed"]))
    if kind is None:
        return None
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = signals.shape[1] if kind == "signals" else signals.shape
    observed = rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 0.9]))
    return observed if kind == "observed" else observed * rng.choice([1e-3, 0.5, 1.0, 2.0, 30.0], shape)


def with_unknown_entries(signals, weights):
    """The same signals with NaN where a weight is zero."""
    return (
        signals if weights is None else np.where(np.asarray(weights) > 0, signals, signals.dtype.type("nan"))
    )


@st.composite
def schedules_of(draw, d):
    return draw(
        st.sampled_from(
            [
                *(schedules.AllAtoms(), schedules.OneAtATime("random"), schedules.Blocks(2)),
                *([[], list(range(d))], [[0], [d - 1]], schedules.RandomSubsets(1, 2)),
            ]
        )
    )


@st.composite
def rules(draw, d, threads):
    """An update rule for d atoms."""
    mu = draw(st.sampled_from(RIDGES))
    kind = draw(st.sampled_from(["simco", "simco", "simco", "ksvd", "mod"]))
    if kind == "mod":
        return mdl.MOD(ridge=mu)
    if kind == "ksvd":
        method = draw(st.sampled_from(["svd", "power"]))
        return mdl.KSVD(method, mu=mu, schedule=draw(schedules_of(d)), threads=threads)
    penalties = [[], [], [regularizers.Coherence(0.1)], [regularizers.Sparse(0.01)]]
    return mdl.SimCO(
        draw(optimizers()),
        manifold=draw(st.sampled_from(MANIFOLDS)),
        mu=mu,
        schedule=draw(schedules_of(d)),
        regularizers=draw(st.sampled_from(penalties)),
        codes=draw(st.sampled_from(["follow", "follow", "fixed", mdl.RmsLasso(alpha=0.1)])),
        precondition=draw(st.booleans()),
        threads=threads,
    )


def minibatches():
    """None, or passes over mini-batches, of which a problem of 2,500 signals has several."""
    some = [mdl.MiniBatches(size=1024), mdl.MiniBatches(size=2048, full=0.5, steps=1)]
    return st.sampled_from([None, *some, mdl.MiniBatches(full=0.0, memory=5.0), False])


@st.composite
def coders(draw, m, d):
    sparsity = draw(st.integers(1, min(m, d)))
    return draw(
        st.sampled_from(
            [
                *(kind(sparsity=sparsity) for kind in (mdl.OMP, mdl.ForwardSelection, mdl.MatchingPursuit)),
                *(kind(sparsity=sparsity) for kind in (mdl.GradientPursuit, mdl.SubspacePursuit, mdl.IHT)),
                *(mdl.Lasso(0.1, relative=True), mdl.FOCUSS(sparsity=sparsity), mdl.RmsLasso(alpha=0.1)),
            ]
        )
    )
