"""How many atoms of a hidden dictionary are found again, and in what time.

The setting is the paper's Section VI-B with sparse coding in the loop: 16×32 dictionaries, S = 4, no noise,
random starts. Each entry is the mean over the draws with its standard error, ‖Y − DX‖²/n, and the processor
time of one run on one thread (compilation excluded). The table of the README is printed by

    python benchmarks/recovery.py --first-seed 5000 --seeds 32

Settings were chosen on the draws below 100. ``--lars`` adds scikit-learn's default solver, which takes most
of the time; SPAMS takes part where it is installed. With ``--optimizers`` it is SimCO that competes, with
several numbers of steps between two codings.
"""

import argparse
import time
import warnings
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from pymanopt.optimizers import SteepestDescent, TrustRegions
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits

import manifold_dl as mdl
from manifold_dl.datasets import synthetic

M, N_ATOMS, SPARSITY = 16, 32, 4


class Score(NamedTuple):
    """What one run found, how well it fits, and what it took."""

    found: float
    loss: float
    seconds: float


def paper_update():
    """One golden-section step, with a ridge of 0.1 for 30 iterations and none afterwards."""
    optimizer = SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=1)
    return mdl.SimCO(optimizer=optimizer, mu=[0.1] * 30 + [0.0])


def optimizers():
    """Conjugate gradients and trust regions, as SimCO has them, with more and fewer steps."""
    for steps in (3, 4, 5, 6, 8):
        yield f"conjugate gradients, {steps}", mdl.updates.default_optimizer(steps)
    for steps in (1, 2, 3):
        yield f"trust region, {steps}", TrustRegions(kappa=0.3, max_iterations=steps, verbosity=0)


def ours(settings, Y, seed):
    return mdl.learn_dictionary(Y, N_ATOMS, rng=1000 + seed, threads=1, **settings).dictionary


def with_omp(update, init):
    coder = mdl.OMP(sparsity=SPARSITY)
    return partial(ours, {"coder": coder, "update": update, "max_iter": 50, "tol": 0.0, "init": init})


def sklearn(fit_algorithm, alpha, Y, seed):
    """scikit-learn's ℓ₁ dictionary learning: 50 iterations, as many as those with OMP have."""
    from sklearn.decomposition import DictionaryLearning

    model = DictionaryLearning(
        N_ATOMS, alpha=alpha, max_iter=50, tol=0.0, fit_algorithm=fit_algorithm, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at tol = 0 it says that it has not converged
        return model.fit(Y.T).components_.T


def spams(penalties, Y, seed):
    """SPAMS' online ℓ₁ learning, 100 passes over the signals for each penalty, from one call to the next.

    Batches of 16 found most of 16, 32, 64 and 512, on twelve draws below 100.
    """
    import spams

    batch, passes = 16, 100
    D = np.asfortranarray(mdl.manifolds.Spheres(M, N_ATOMS).random_point(1000 + seed))
    settings = {"mode": 2, "batchsize": batch, "iter": passes * Y.shape[1] // batch, "numThreads": 1}
    for penalty in penalties:
        D = spams.trainDL(np.asfortranarray(Y), D=D, lambda1=penalty, verbose=False, **settings)
    return D


def all_methods(options):
    """By name, functions from signals and a seed to a dictionary."""
    if options.optimizers:
        return {name: with_omp(mdl.SimCO(optimizer), options.init) for name, optimizer in optimizers()}
    methods = {
        "MOD": with_omp(mdl.MOD(), options.init),
        "K-SVD": with_omp(mdl.KSVD(), options.init),
        "SimCO, as in the paper": with_omp(paper_update(), options.init),
        "SimCO, our default": with_omp(mdl.SimCO(), options.init),
        "presets.recover": partial(ours, mdl.presets.recover(sparsity=SPARSITY)),
        f"scikit-learn, cd, alpha {options.alpha}": partial(sklearn, "cd", options.alpha),
    }
    if options.lars:
        methods[f"scikit-learn, lars, alpha {options.alpha}"] = partial(sklearn, "lars", options.alpha)
    if find_spec("spams"):
        methods["SPAMS, ℓ₁ penalty 0.2"] = partial(spams, [0.2])
        methods["SPAMS, ℓ₁ penalty 0.3 to 0.02"] = partial(spams, np.geomspace(0.3, 0.02, 5))
    return methods


def score(method, n, seed):
    """One run: the fraction of atoms found, the loss with codes by OMP, and processor seconds."""
    D_true, _, Y = synthetic(M, N_ATOMS, n, SPARSITY, rng=seed)
    begin = time.process_time()
    D = method(Y, seed)
    seconds = time.process_time() - begin
    D = D / np.maximum(np.linalg.norm(D, axis=0), 1e-300)  # atoms of SPAMS may be shorter than 1, even zero
    X = mdl.OMP(sparsity=SPARSITY).encode(Y, D)
    return Score(mdl.metrics.recovery(D, D_true), np.linalg.norm(Y - D @ X) ** 2 / n, seconds)


def cell(scores):
    """Mean and standard error of the atoms found, then the means of loss and seconds."""
    found, losses, seconds = np.transpose(scores)
    error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
    return f"{100 * found.mean():.0f} ± {100 * error:.1f} %  {losses.mean():.3f}  {seconds.mean():.2f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=32, help="how many draws")
    parser.add_argument("--first-seed", type=int, default=0, help="100 or more: no setting was chosen there")
    parser.add_argument("--alpha", type=float, default=0.2, help="scikit-learn's penalty")
    parser.add_argument("--only", default="", help="a part of the names of the methods to run")
    parser.add_argument("--signals", type=int, nargs="+", default=[200, 300, 500, 1500])
    parser.add_argument("--init", default="random", help="'random' or 'data', for the OMP-based methods")
    parser.add_argument("--lars", action="store_true", help="scikit-learn's default solver as well")
    parser.add_argument("--optimizers", action="store_true", help="compare those of SimCO")
    options = parser.parse_args()
    methods = {name: method for name, method in all_methods(options).items() if options.only in name}
    seeds = range(options.first_seed, options.first_seed + options.seeds)

    title = "Atoms found (|cos| > 0.99) ± standard error, ‖Y − DX‖²/n, seconds of the processor"
    table = Table("method", title=f"{title}: draws {seeds.start} to {seeds.stop - 1}")
    for n in options.signals:
        table.add_column(f"n = {n}", justify="right")
    rows = {name: [name] for name in methods}
    console = Console()
    for method in methods.values():
        score(method, 100, 0)  # compile, before anything is timed
    jobs = [(n, name) for n in options.signals for name in methods]
    for n, name in track(jobs, description="Learning", console=console):
        rows[name].append(cell([score(methods[name], n, seed) for seed in seeds]))
    for row in rows.values():
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    with threadpool_limits(1):  # one thread means one, for BLAS too
        main()
