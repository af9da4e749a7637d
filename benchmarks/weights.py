"""What weights cost: a SimCO step, OMP and the lasso with weights, as multiples of the same without.

    python benchmarks/weights.py              # 64×256, S = 5, n = 65,000: about two minutes
    python benchmarks/weights.py --n 8000

CPU time of one thread. Calls with and without weights alternate, and the ratio is that of their medians. The
weights: ones, which are the same as none; one per signal; and one per entry, half of which are zero.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from pymanopt.optimizers import SteepestDescent
from rich.console import Console
from rich.table import Table

import manifold_dl as mdl
from manifold_dl.manifolds import Spheres

M, D, SPARSITY = 64, 256, 5


def alternate(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median CPU seconds of each call; all of them once in every round, after one that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            if number > 0:
                seconds[name].append(time.process_time() - begin)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=65_000, help="signals")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rng, n = np.random.default_rng(0), options.n
    truth, X, Y = mdl.datasets.synthetic(M, D, n, sparsity=SPARSITY, snr_db=20, rng=0)
    Y, start = np.asfortranarray(Y), Spheres(M, D).random_point(rng)
    near = truth + 0.3 * start
    near /= np.linalg.norm(near, axis=0)
    weights = {
        "none": None,
        "ones": np.ones((M, n)),
        "per signal": rng.uniform(0.5, 2.0, n),
        "half missing": np.asfortranarray((rng.random((M, n)) < 0.5).astype(float)),
    }
    bounds = {
        "SimCO step, Wolfe": (1.02, 1.1, 3),
        "SimCO step, golden": (1.02, 1.1, 3),
        "OMP": (1.02, 1.1, 6),
    }

    def step(searcher, w):
        optimizer = SteepestDescent(line_searcher=searcher, max_iterations=1, verbosity=0)
        update = mdl.SimCO(optimizer=optimizer, mu=0.05, threads=1)
        return lambda: update(Y, near, X, weights=w)

    def code(coder, w):
        return lambda: coder.encode(Y, near, threads=1, weights=w)

    tasks = {
        "SimCO step, Wolfe": lambda w: step(mdl.WolfeSearch(), w),
        "SimCO step, golden": lambda w: step(mdl.GoldenSection(), w),
        "OMP": lambda w: code(mdl.OMP(sparsity=SPARSITY), w),
        "lasso": lambda w: code(mdl.Lasso(alpha=0.1, relative=True), w),
    }
    table = Table("", "none, s", *list(weights)[1:], "at most", title=f"{M}×{D}, S = {SPARSITY}, n = {n:,}")
    for name, make in tasks.items():
        seconds = alternate({kind: make(w) for kind, w in weights.items()}, options.rounds)
        ratios = [f"{seconds[kind] / seconds['none']:.2f}" for kind in list(weights)[1:]]
        table.add_row(name, f"{seconds['none']:.2f}", *ratios, ", ".join(map(str, bounds.get(name, ("–",)))))
    Console().print(table)


if __name__ == "__main__":
    main()
