# ruff: noqa: E402 - the number of BLAS threads has to be set before NumPy is imported
"""Mutual coherence against fit on picture patches, as the weight of a penalty rises.

    python benchmarks/coherence.py                                          # some eight minutes
    python benchmarks/coherence.py --picture flower.jpg --first-seed 100    # what no setting was chosen on

2000 mean-free patches of 8×8, 96 atoms, four to a patch; weights in units of ‖Y‖². Two questions:

- One update stage. A dictionary is learned without a penalty, and the supports stay as they are then. The
  weight rises in half decades, and at each the dictionary update runs on from where it was. So nothing
  changes but the weight.
- Learning from random starts, with sparse coding in the loop. Means over starts, with their standard errors:
  two runs with the same weight differ too.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is loaded

import argparse

import numpy as np
from pymanopt.optimizers import ConjugateGradient
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

import manifold_dl as mdl
from manifold_dl.regularizers import Coherence, LogBarrierCoherence

console = Console(width=110)
CODER, N_ATOMS = mdl.OMP(sparsity=4), 96
RISING = [0.0, *np.logspace(-6, 0, 13)]  # weights in half decades
COARSER = [0.0, *np.logspace(-5, 0, 6)]  # in decades


def patches(picture, n, size=8, seed=0):
    """Mean-free patches of a photograph, one in every column."""
    grey = load_sample_image(picture).mean(axis=2)
    rows = extract_patches_2d(grey, (size, size), max_patches=n, random_state=seed).reshape(n, -1)
    return (rows - rows.mean(axis=1, keepdims=True)).T


def update(penalties, n_steps):
    optimizer = ConjugateGradient(line_searcher=mdl.WolfeSearch(), max_iterations=n_steps + 1, verbosity=0)
    return mdl.SimCO(optimizer=optimizer, mu=0.0, regularizers=penalties, threads=1)


def judged(Y, D, X):
    """Mutual coherence, root mean square of ⟨d_i, d_j⟩, and ‖Y − DX‖²/‖Y‖²."""
    gram = D.T @ D
    spread = np.sqrt(np.mean(gram[~np.eye(len(gram), dtype=bool)] ** 2))
    return mdl.metrics.coherence(D), spread, np.sum((Y - D @ X) ** 2) / np.sum(Y**2)


def learn(Y, seed, penalties=(), **options):
    settings = {"coder": CODER, "update": update(penalties, 20), "max_iter": 15, "init": "random"}
    result = mdl.learn_dictionary(Y, N_ATOMS, rng=seed, **settings, **options)
    return result.dictionary, result.codes


def along_the_weights(Y, D, X, power):
    """What `judged` says at every weight, each update going on where the last one ended."""
    for weight in RISING:
        rule = update([Coherence(weight * np.sum(Y**2), power)], 200)
        for _ in range(2):  # afresh after 200 steps, where that was not enough
            D, X = rule(Y, D, X)
        yield judged(Y, D, X)


def one_stage(Y, seeds, powers):
    learned = [learn(Y, seed) for seed in track(seeds, "learning", console=console, transient=True)]
    for power in powers:
        task = track(learned, f"power {power}", console=console, transient=True)
        paths = np.array([list(along_the_weights(Y, D, X, power)) for D, X in task])
        falls = (np.diff(paths[:, :, 0], axis=1) < 0).all(axis=1).sum()
        names = [f"{weight:.1e}" for weight in RISING]
        note = f"mutual coherence fell at every step in {falls} of {len(seeds)} starts"
        show(f"One update stage, Coherence(weight, power={power}): {note}", names, paths)


def learning(Y, seeds, powers):
    scale = float(np.sum(Y**2))
    for power in powers:
        settings = [[Coherence(weight * scale, power)] for weight in COARSER]
        task = track(settings, f"power {power}", console=console, transient=True)
        results = np.array([[judged(Y, *learn(Y, seed, penalties)) for seed in seeds] for penalties in task])
        names = [f"{weight:.1e}" for weight in COARSER]
        show(f"Learning, Coherence(weight, power={power})", names, results.swapaxes(0, 1))

    bounds, results = (0.9, 0.8, 0.7, 0.6), []
    for bound in track(bounds, "barriers", console=console, transient=True):
        barrier = LogBarrierCoherence(1e-7 * scale, bound)
        replacement = mdl.ReplaceAtoms(coherence=0.99 * bound)  # what replaces an atom is inside as well
        results.append([judged(Y, *learn(Y, seed, [barrier], replace=replacement)) for seed in seeds])
    plain = [judged(Y, *learn(Y, seed)) for seed in seeds]
    names = ["none", *(f"{bound:g}" for bound in bounds)]
    results = np.array([plain, *results]).swapaxes(0, 1)
    show("Learning, LogBarrierCoherence(1e-7 ‖Y‖², bound)", names, results, of="bound")


def show(title, names, results, of="weight / ‖Y‖²"):
    """A table of means; `results` is starts × settings × (coherence, rms, error)."""
    means = results.mean(axis=0)
    scatter = results.std(axis=0, ddof=1) / np.sqrt(len(results)) if len(results) > 1 else 0 * means
    table = Table(title=title, title_justify="left")
    for column in (of, "mutual coherence", "±", "rms ⟨dᵢ, dⱼ⟩", "‖Y−DX‖²/‖Y‖²", "cost in fit"):
        table.add_column(column, justify="right")
    for name, mean, error in zip(names, means, scatter, strict=True):
        coherence, spread, fit = mean
        cost = f"{100 * (fit / means[0, 2] - 1):+.1f} %"
        table.add_row(name, f"{coherence:.4f}", f"{error[0]:.3f}", f"{spread:.3f}", f"{fit:.4f}", cost)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--picture", default="china.jpg", help="china.jpg or flower.jpg, from scikit-learn")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--patches", type=int, default=2000)
    parser.add_argument("--powers", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--only", choices=["stage", "learning"], help="one of the two questions")
    options = parser.parse_args()
    Y = patches(options.picture, options.patches)
    seeds = range(options.first_seed, options.first_seed + options.starts)
    if options.only != "learning":
        one_stage(Y, seeds, options.powers)
    if options.only != "stage":
        learning(Y, seeds, options.powers)


if __name__ == "__main__":
    main()
