"""How many atoms of a known dictionary are found again, and in what time.

The setting is the paper's Section VI-B with OMP in the loop: 16×32 dictionaries, S = 4, no noise, one
start each. Run as ``python benchmarks/recovery.py [--seeds N] [--signals 200 300 500 1500] [--init random]``;
with ``--optimizers`` it is SimCO that competes, with several numbers of steps between two codings.
"""

import argparse
import time
import warnings

import numpy as np
from pymanopt.optimizers import SteepestDescent, TrustRegions
from rich.console import Console
from rich.progress import track
from rich.table import Table

import manifold_dl as mdl
from manifold_dl.datasets import synthetic


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


def with_omp(update, init):
    return {"coder": mdl.OMP(sparsity=4), "update": update, "max_iter": 50, "tol": 0.0, "init": init}


def learn(settings, Y, seed):
    result = mdl.learn_dictionary(Y, 32, rng=1000 + seed, **settings)
    return result.dictionary, result.codes


def learn_with_sklearn(settings, Y, seed):
    from sklearn.decomposition import DictionaryLearning

    model = DictionaryLearning(32, max_iter=50, tol=0.0, random_state=seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        D = model.fit(Y.T).components_.T
    D = D / np.linalg.norm(D, axis=0)
    return D, mdl.OMP(sparsity=4).encode(Y, D)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--first-seed", type=int, default=0, help="100 for draws that no setting was chosen on"
    )
    parser.add_argument("--alpha", type=float, default=0.2, help="scikit-learn's penalty")
    parser.add_argument("--only", help="a part of the names of the methods to run")
    parser.add_argument("--signals", type=int, nargs="+", default=[200, 300, 500, 1500])
    parser.add_argument("--init", default="random", help="'random' or 'data', for the OMP-based methods")
    parser.add_argument("--without-sklearn", action="store_true", help="it takes most of the time")
    parser.add_argument("--optimizers", action="store_true", help="compare those of SimCO")
    options = parser.parse_args()
    methods = {
        "MOD": (learn, with_omp(mdl.MOD(), options.init)),
        "K-SVD": (learn, with_omp(mdl.KSVD(), options.init)),
        "SimCO as in the paper": (learn, with_omp(paper_update(), options.init)),
        "SimCO, default": (learn, with_omp(mdl.SimCO(), options.init)),
        "presets.recover": (learn, mdl.presets.recover(sparsity=4)),
    }
    if not options.without_sklearn:
        name = f"scikit-learn's ℓ₁ (alpha {options.alpha})"
        methods[name] = (learn_with_sklearn, {"alpha": options.alpha})
    if options.optimizers:
        methods = {
            name: (learn, with_omp(mdl.SimCO(optimizer), options.init)) for name, optimizer in optimizers()
        }
    methods = {name: method for name, method in methods.items() if (options.only or "") in name}

    table = Table(
        title=f"Atoms found (|cos| > 0.99), ‖Y − DX‖²/n and seconds: means of {options.seeds} seeds"
    )
    table.add_column("method")
    for n in options.signals:
        table.add_column(f"n = {n}", justify="right")
    rows = {name: [name] for name in methods}
    jobs = [(n, name) for n in options.signals for name in methods]
    console = Console()
    for n, name in track(jobs, description="Learning", console=console):
        function, settings = methods[name]
        found, losses, begin = [], [], time.perf_counter()
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            D_true, _, Y = synthetic(16, 32, n, 4, rng=seed)
            D, X = function(settings, Y, seed)
            found.append(mdl.metrics.recovery(D, D_true))
            losses.append(np.linalg.norm(Y - D @ X) ** 2 / n)
        seconds = (time.perf_counter() - begin) / options.seeds
        rows[name].append(f"{np.mean(found):.0%}  {np.mean(losses):.3f}  {seconds:.1f} s")
    for row in rows.values():
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
