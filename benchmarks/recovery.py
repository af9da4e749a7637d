"""Which optimizer of SimCO finds most atoms of a hidden dictionary, with how many steps between two codings?

16×32 dictionaries, S = 4, no noise, OMP in the loop, random starts: the fraction of the atoms found with its
standard error, ‖Y − DX‖²/n, and the processor time of a run on one thread (compilation excluded). Other
libraries are compared by `peers.py --task recovery`.

    python benchmarks/recovery.py --seeds 40
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
from pymanopt.optimizers import TrustRegions
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


def optimizers():
    """Conjugate gradients and trust regions, as SimCO has them, with more and fewer steps."""
    for steps in (3, 4, 5, 6, 8):
        yield f"conjugate gradients, {steps}", mdl.updates.default_optimizer(steps)
    for steps in (1, 2, 3):
        yield f"trust region, {steps}", TrustRegions(kappa=0.3, max_iterations=steps, verbosity=0)


def score(optimizer, init, n, seed):
    """One run: the fraction of atoms found, the loss with codes by OMP, and processor seconds."""
    D_true, _, Y = synthetic(M, N_ATOMS, n, SPARSITY, rng=seed)
    settings = {"coder": mdl.OMP(sparsity=SPARSITY), "max_iter": 50, "tol": 0.0, "init": init}
    begin = time.process_time()
    D = mdl.learn_dictionary(
        Y, N_ATOMS, update=mdl.SimCO(optimizer), rng=1000 + seed, threads=1, **settings
    ).dictionary
    seconds = time.process_time() - begin
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
    parser.add_argument("--signals", type=int, nargs="+", default=[300, 500])
    parser.add_argument("--init", default="random", help="'random' or 'data'")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)

    title = "Atoms found (|cos| > 0.99) ± standard error, ‖Y − DX‖²/n, seconds of the processor"
    table = Table("optimizer, steps", title=f"{title}: draws {seeds.start} to {seeds.stop - 1}")
    for n in options.signals:
        table.add_column(f"n = {n}", justify="right")
    methods, console = dict(optimizers()), Console()
    rows = {name: [name] for name in methods}
    for optimizer in methods.values():
        score(optimizer, options.init, 100, 0)  # compile, before anything is timed
    jobs = [(n, name) for n in options.signals for name in methods]
    for n, name in track(jobs, description="Learning", console=console):
        rows[name].append(cell([score(methods[name], options.init, n, seed) for seed in seeds]))
    for row in rows.values():
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    with threadpool_limits(1):  # one thread means one, for BLAS too
        main()
