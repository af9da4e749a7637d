# ruff: noqa: E402 - the number of BLAS threads has to be set before NumPy is imported
"""What regularizers cost, and what they do.

    python benchmarks/regularizers.py [--quick]

First the processor time that penalties left to autograd add to a trust-region step, on one thread, with and
without the penalty in turns. Then picture patches: mutual coherence against fit, as the weight of `Coherence`
rises, and with `LogBarrierCoherence` at several bounds. Weights are in units of ‖Y‖².
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is loaded

import sys
import time
from statistics import median

import autograd.numpy as anp
import numpy as np
from pymanopt.optimizers import ConjugateGradient, TrustRegions
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

import manifold_dl as mdl
from manifold_dl.datasets import synthetic
from manifold_dl.manifolds import Spheres
from manifold_dl.regularizers import Coherence, LogBarrierCoherence, regularizer

SIZE = (64, 256, 65_000, 5)
INNER = 5  # Hessian products a step: fixed, so that a penalty changes the time of a step and nothing else


@regularizer
def overlaps(D):
    """The sum of `Coherence`, left to autograd: products of matrices only."""
    gram = D.T @ D
    return anp.sum(gram**2) - anp.sum(anp.diag(gram) ** 2)


@regularizer
def cosines(D):
    """log cosh of all inner products: an expensive function of every pair."""
    return anp.sum(anp.log(anp.cosh(3.0 * (D.T @ D))))


@regularizer
def roughness(D):
    """Differences of neighbouring pixels of 8×8 pictures."""
    pictures = anp.reshape(D, (8, 8, -1))
    return anp.sum(anp.diff(pictures, axis=0) ** 2) + anp.sum(anp.diff(pictures, axis=1) ** 2)


@regularizer
def peaks(D):
    """Fourth powers, entry by entry."""
    return anp.sum(D**4)


PENALTIES = {
    "overlaps": overlaps,
    "cosines": cosines,
    "roughness": roughness,
    "peaks": peaks,
    "all four": overlaps + cosines + roughness + peaks,
    "Coherence, by hand": Coherence(1.0),
}


def time_of_a_step(repeats, n_steps=2):
    """For each penalty the seconds of a step without and with it, in turns: the shortest of `repeats`."""
    m, d, n, sparsity = SIZE
    data = synthetic(m, d, n, sparsity, snr_db=20, rng=0)
    # Near the minimum, where no step ends early at negative curvature or at the edge of the region.
    spheres = Spheres(m, d)
    start = spheres.exp(data.dictionary, 0.1 * spheres.random_tangent_vector(data.dictionary, 1))
    weight = 1e-7 * float(np.sum(data.signals**2))

    def step(*penalties):
        problem = mdl.update_problem(data.signals, data.codes, mu=0.1, regularizers=penalties, threads=1)
        optimizer = TrustRegions(max_iterations=n_steps, verbosity=0, kappa=0)
        begin = time.process_time()
        optimizer.run(problem, initial_point=start, mininner=INNER, maxinner=INNER)
        seconds = (time.process_time() - begin) / n_steps
        products = problem.counts.hessian / n_steps
        assert products == INNER, f"{products} Hessian products a step"
        return seconds

    step()  # to warm up
    for name, penalty in PENALTIES.items():
        turns = [(step(), step(weight * penalty)) for _ in range(repeats)]
        yield name, *(min(times) for times in zip(*turns, strict=True))


def patches(n, size=8, seed=0):
    """Mean-free patches of a photograph, one in every column."""
    picture = load_sample_image("china.jpg").mean(axis=2)
    rows = extract_patches_2d(picture, (size, size), max_patches=n, random_state=seed).reshape(n, -1)
    return (rows - rows.mean(axis=1, keepdims=True)).T


def learned(Y, penalties, seed, n_atoms=128, **options):
    """Mutual coherence, root mean square of ⟨d_i, d_j⟩, and ‖Y − DX‖²/‖Y‖² with four atoms a patch."""
    optimizer = ConjugateGradient(line_searcher=mdl.GeodesicSearch(), max_iterations=21, verbosity=0)
    update = mdl.SimCO(optimizer=optimizer, mu=0.0, regularizers=penalties, threads=1)
    coder = mdl.OMP(sparsity=4)
    result = mdl.learn_dictionary(
        Y, n_atoms, coder=coder, update=update, max_iter=15, init="random", rng=seed, **options
    )
    D = result.dictionary
    rest = Y - D @ result.codes
    gram = D.T @ D
    spread = np.sqrt(np.mean(gram[~np.eye(len(gram), dtype=bool)] ** 2))
    return mdl.metrics.coherence(D), spread, np.sum(rest**2) / np.sum(Y**2)


def coherence_and_fit(n_seeds):
    """The median of a few starts, for every penalty."""
    Y = patches(4000)
    scale = float(np.sum(Y**2))
    rows = {"none": ([], {})}  # name → regularizers, options
    for weight in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
        rows[f"Coherence, weight {weight:g}"] = [Coherence(weight * scale)], {}
    for bound in (0.9, 0.8, 0.7, 0.6):
        barrier = LogBarrierCoherence(1e-7 * scale, bound)
        replacement = mdl.ReplaceAtoms(coherence=0.99 * bound)  # what replaces an atom is inside as well
        rows[f"LogBarrier, bound {bound:g}"] = [barrier], {"replace": replacement}
    for name, (penalties, options) in rows.items():
        results = [learned(Y, penalties, seed, **options) for seed in range(n_seeds)]
        yield name, [median(column) for column in zip(*results, strict=True)]


def main():
    quick = "--quick" in sys.argv[1:]
    console = Console()

    title = f"A trust-region step with {INNER} Hessian products, (m, d, n, S) = {SIZE}"
    table = Table("penalty", "without", "with", "more", "target", "holds", title=title)
    for name, without, with_it in time_of_a_step(2 if quick else 7):
        more = with_it / without - 1
        cells = f"{1e3 * without:.0f} ms", f"{1e3 * with_it:.0f} ms", f"{100 * more:+.1f} %", "≤ 20 %"
        # The target is for one regularizer; four of them are here to see how they add up.
        verdict = "–" if name == "all four" else "[green]yes" if more <= 0.2 else "[red]no"
        table.add_row(name, *cells, verdict)
    console.print(table)

    title = "4000 patches of 8×8, 128 atoms; weights in units of ‖Y‖², of the barriers 1e-7"
    table = Table("penalty", "coherence", "rms ⟨dᵢ, dⱼ⟩", "‖Y−DX‖²/‖Y‖²", "cost in fit", title=title)
    best = None
    for name, (coherence, spread, error) in coherence_and_fit(1 if quick else 3):
        best = best or error  # that without a penalty comes first
        cells = (f"{coherence:.3f}", f"{spread:.3f}", f"{error:.4f}", f"{100 * (error / best - 1):+.1f} %")
        table.add_row(name, *cells)
    console.print(table)


if __name__ == "__main__":
    main()
