"""One dictionary-update stage: SimCO against K-SVD, and the optimizers of SimCO against each other.

    python benchmarks/updates.py                       # one thread
    python benchmarks/updates.py --quick               # a tenth of the signals
    python benchmarks/updates.py --only race           # or stages
    python benchmarks/updates.py --first-draw 100      # on problems that no setting was chosen on

The first table times one stage at 64×256 atoms, S = 5, n = 65,000; the second one at 16×32, the size of the
paper, where it is the calls and not the arithmetic that take the time. The others give every optimizer the
same start and support, and measure how long it takes until a given fraction of the descent is left, down to
the minimum that a long trust-region run finds: geometric means over draws, of the shortest of several runs
each. The last table sums up; its winner has the smallest geometric mean over the problems, and is the
default of `SimCO`. Optimizers take turns, and time is that of the processor, so that a busy machine does
not decide.
"""

import argparse
import time
from contextlib import suppress
from functools import partial

import numpy as np
import scipy.sparse
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_sample_image
from sklearn.linear_model import orthogonal_mp_gram
from threadpoolctl import threadpool_limits

from manifold_dl import KSVD, LBFGS, MOD, GoldenSection, SimCO, WolfeSearch, update_problem
from manifold_dl.datasets import synthetic
from manifold_dl.manifolds import Spheres

console = Console(width=118)


def numpy_ksvd(Y, D, X):
    """An exact K-SVD sweep as it is usually written, with one economical SVD for every atom."""
    D, by_atom = D.copy(), X.tocsr()
    residual = Y - D @ X
    for i in range(D.shape[1]):
        begin, end = by_atom.indptr[i], by_atom.indptr[i + 1]
        users = by_atom.indices[begin:end]
        E = residual[:, users] + np.outer(D[:, i], by_atom.data[begin:end])
        U, s, Vt = np.linalg.svd(E, full_matrices=False)
        D[:, i], by_atom.data[begin:end] = U[:, 0], s[0] * Vt[0]
        residual[:, users] = E - np.outer(D[:, i], by_atom.data[begin:end])
    return D, by_atom


def one_step(searcher):
    return SteepestDescent(line_searcher=searcher, max_iterations=1, verbosity=0)


def stages(n, repeats):
    """Time one stage of every rule, in turn, and keep the smallest of several times."""
    _, X, Y = synthetic(64, 256, n, sparsity=5, snr_db=20, rng=0)
    # Every signal in one piece, as the learning loop lays them out: so the K-SVD of NumPy is faster, too.
    Y, D = np.asfortranarray(Y), Spheres(64, 256).random_point(1)
    X = update_problem(Y, X.astype(bool), mu=0.1, threads=1).codes(D)
    rules = {
        "K-SVD with numpy.linalg.svd": numpy_ksvd,
        "KSVD()": KSVD(threads=1),
        "KSVD(method='power')": KSVD(method="power", threads=1),
        "MOD()": MOD(),
        "SimCO, one step, GoldenSection": SimCO(one_step(GoldenSection()), mu=0.1, threads=1).begin(),
        "SimCO, one step, WolfeSearch": SimCO(one_step(WolfeSearch()), mu=0.1, threads=1).begin(),
        "SimCO(), the default": SimCO(mu=0.1, threads=1).begin(),
    }
    seconds = {name: [] for name in rules}
    for repeat in track(range(repeats + 1), description="one stage", console=console, transient=True):
        for name, rule in rules.items():
            start = time.process_time()
            # The first repeat compiles; then searchers begin at the steps of the stage before, as in a loop.
            rule(Y, D, X) if rule is numpy_ksvd else rule(Y, D, X, iteration=repeat)
            seconds[name].append(time.process_time() - start)
    best = {name: min(times[1:]) for name, times in seconds.items()}

    table = Table(title=f"One stage at 64×256, S = 5, n = {n:,}, one thread", title_justify="left")
    for column in ("rule", "milliseconds", "× numpy K-SVD", "× our K-SVD", "/ MOD()"):
        table.add_column(column, justify="left" if column == "rule" else "right")
    for name, time_taken in best.items():
        ratios = (best["K-SVD with numpy.linalg.svd"] / time_taken, best["KSVD()"] / time_taken)
        times_mod = time_taken / best["MOD()"]
        table.add_row(
            name, f"{1e3 * time_taken:,.0f}", *(f"{ratio:.1f}" for ratio in ratios), f"{times_mod:.2f}"
        )
    console.print(table)


def small_stages(repeats):
    """Milliseconds of one stage at 16×32, where K-SVD without its compiled sweep is 32 Pymanopt problems."""
    sizes = (50, 300, 1500)
    rules = {
        "K-SVD with numpy.linalg.svd": numpy_ksvd,
        "KSVD().as_simco(), atom by atom": KSVD(threads=1).as_simco(),
        "KSVD()": KSVD(threads=1),
        "KSVD(method='power')": KSVD(method="power", threads=1),
        "MOD()": MOD(),
        "SimCO, one step, GoldenSection": SimCO(one_step(GoldenSection()), mu=0.01, threads=1).begin(),
        "SimCO(), the default": SimCO(mu=0.01, threads=1).begin(),
    }
    table = Table(title="One stage at 16×32, S = 4, one thread, milliseconds", title_justify="left")
    for column in ("rule", *(f"n = {n:,}" for n in sizes)):
        table.add_column(column, justify="left" if column == "rule" else "right")
    for name, rule in rules.items():
        row = []
        for n in sizes:
            _, X, Y = synthetic(16, 32, n, sparsity=4, rng=0)
            Y, D, seconds = np.asfortranarray(Y), Spheres(16, 32).random_point(1), []
            for repeat in range(10 * repeats + 1):
                start = time.process_time()
                rule(Y, D, X) if rule is numpy_ksvd else rule(Y, D, X, iteration=repeat)
                seconds.append(time.process_time() - start)
            row.append(f"{1e3 * min(seconds[1:]):.2f}")
        table.add_row(name, *row)
    console.print(table)


def synthetic_problem(m, d, n, sparsity, mu, draw):
    """Noisy signals with the true support, from a random dictionary."""
    _, X, Y = synthetic(m, d, n, sparsity, snr_db=20, rng=draw)
    return np.asfortranarray(Y), Spheres(m, d).random_point(draw + 1), X, mu


def picture_problem(n, mu, draw):
    """Mean-free 8×8 patches of a photograph, coded by OMP in random patches of it."""
    rng = np.random.default_rng(draw)
    grey = load_sample_image("china.jpg").mean(axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(grey, (8, 8)).reshape(-1, 64)
    patches = windows[rng.choice(len(windows), n + 256, replace=False)].T
    patches = patches - patches.mean(axis=0)
    patches = patches[:, np.linalg.norm(patches, axis=0) > 1]
    D, Y = patches[:, :256] / np.linalg.norm(patches[:, :256], axis=0), patches[:, 256:]
    return Y, D, scipy.sparse.csc_array(orthogonal_mp_gram(D.T @ D, D.T @ Y, n_nonzero_coefs=5)), mu


def optimizers():
    # A run that needs more steps has converged to another minimum, or is too slow to compare.
    limits = {"max_iterations": 300, "max_time": np.inf, "min_gradient_norm": 1e-6, "verbosity": 0}
    # Each with what suits it best of the settings tried: all searches but that of L-BFGS gain from a longer
    # first step, conjugate gradients from the rule for β and a laxer search, the trust region from a laxer
    # inner iteration.
    geodesic = partial(WolfeSearch, first_step=None)
    return {
        "SteepestDescent + GoldenSection": SteepestDescent(line_searcher=GoldenSection(), **limits),
        "SteepestDescent + WolfeSearch": SteepestDescent(line_searcher=geodesic(), **limits),
        "ConjugateGradient + WolfeSearch": ConjugateGradient(
            beta_rule="PolakRibiere", line_searcher=geodesic(curvature=0.3), **limits
        ),
        "LBFGS": LBFGS(**limits),
        "TrustRegions": TrustRegions(**limits),
        "TrustRegions(kappa=0.3)": TrustRegions(kappa=0.3, **limits),
    }


class Finished(Exception):
    """The objective is as low as it needs to be."""


class Stopwatch(list):
    """The record of a problem by the clock of the processor: the objective at every accepted point."""

    def __init__(self, Y, D, X, mu, optimizer, finish=-np.inf):
        problem = update_problem(Y, X, mu=mu, threads=1)
        problem.record, self.finish = self, finish
        self.start = time.process_time()
        with suppress(Finished):
            optimizer.run(problem, initial_point=D)
        self.values = np.array([iterate.value for iterate in self])
        self.seconds = np.array([iterate.seconds for iterate in self])

    def append(self, iterate):
        super().append(iterate._replace(seconds=time.process_time() - self.start))
        if iterate.value <= self.finish:
            raise Finished

    def reaches(self, value):
        """When the objective first was at or below `value`; inf if never."""
        below = np.flatnonzero(self.values <= value)
        return self.seconds[below[0]] if len(below) else np.inf


FRACTIONS = (0.1, 0.01, 0.001)  # of the descent that is left


def times_of(data, repeats):
    """For every optimizer the seconds until 10, 1 and 0.1 % are left: the shortest of `repeats` turns."""
    values = Stopwatch(*data, optimizers()["TrustRegions"]).values
    targets = [values[-1] + fraction * (values[0] - values[-1]) for fraction in FRACTIONS]
    best = {name: np.full(len(FRACTIONS), np.inf) for name in optimizers()}
    for _ in range(repeats):
        for name, optimizer in optimizers().items():
            run = Stopwatch(*data, optimizer, finish=targets[-1])
            best[name] = np.minimum(best[name], [run.reaches(target) for target in targets])
    return best


def race(title, make_problem, draws, repeats):
    """The milliseconds of every optimizer, geometric means over draws: a table, and those to 1 %."""
    draws = track(draws, description=title, console=console, transient=True)
    results = [times_of(make_problem(draw), repeats) for draw in draws]
    means = {name: 1e3 * geometric_mean([result[name] for result in results]) for name in results[0]}
    table = Table(
        title=f"{title}: milliseconds until a fraction of the descent is left", title_justify="left"
    )
    table.add_column("optimizer")
    for fraction in FRACTIONS:
        table.add_column(f"{100 * fraction:g} %", justify="right")
    for name, mean in means.items():
        table.add_row(name, *(f"{milliseconds:.1f}" for milliseconds in mean))
    console.print(table)
    return {name: mean[1] for name, mean in means.items()}


def geometric_mean(rows):
    return np.exp(np.mean(np.log(rows), axis=0))


def races(few, draws, repeats):
    n = 10_000 // few, 5_000 // few
    problems = {
        "16×32, n = 300, synthetic": lambda draw: synthetic_problem(16, 32, 300, 4, 0.01, draw),
        f"64×256, n = {n[0]:,}, synthetic": lambda draw: synthetic_problem(64, 256, n[0], 5, 0.1, draw),
        f"64×256, n = {n[1]:,}, patches": lambda draw: picture_problem(n[1], 0.1, draw),
    }
    to_one_percent = [race(title, problem, draws, repeats) for title, problem in problems.items()]
    table = Table(title="All of them: milliseconds to 1 %", title_justify="left")
    for column in ("optimizer", *problems, "geometric mean"):
        table.add_column(column, justify="left" if column == "optimizer" else "right")
    means = {}
    for name in to_one_percent[0]:
        row = [result[name] for result in to_one_percent]
        means[name] = float(geometric_mean(row))
        table.add_row(name, *(f"{milliseconds:.1f}" for milliseconds in (*row, means[name])))
    console.print(table)
    console.print(f"The winner: {min(means, key=means.get)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the signals, one draw, one repeat")
    parser.add_argument("--first-draw", type=int, default=0, help="of the problems of the race")
    parser.add_argument("--only", choices=["stages", "race"], help="one of the two parts")
    options = parser.parse_args()
    few, draws, repeats = (10, 1, 1) if options.quick else (1, 8, 3)
    draws = range(options.first_draw, options.first_draw + draws)
    if options.only != "race":
        stages(65_000 // few, repeats)
        small_stages(repeats)
    if options.only != "stages":
        races(few, draws, repeats)


if __name__ == "__main__":
    with threadpool_limits(1):  # one thread means one, for BLAS too
        main()
