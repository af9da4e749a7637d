"""What weights cost: a SimCO step, OMP and the lasso with weights, as multiples of the same without.

    python benchmarks/weights.py              # 64×256, S = 5, n = 65,000: about two minutes
    python benchmarks/weights.py --n 8000 --out /dev/null

CPU time of one thread. Calls with and without weights alternate, and the ratio is that of their medians. The
weights: ones, which are the same as none; one per signal; and one per entry, half of which are zero. The
ratios are written to docs/results/weights.csv, with the commit and the date, and the exit code is 1 if one of
them is above its bound. What learning without weights costs from commit to commit is measured by
compare_commits.py.
"""

import argparse
import csv
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pymanopt.optimizers import SteepestDescent
from rich.console import Console
from rich.table import Table

import manifold_dl as mdl
from manifold_dl.manifolds import Spheres

M, D, SPARSITY = 64, 256, 5
REPOSITORY = Path(__file__).parents[1]

# What the ratios may be at most.
PER_SIGNAL, HALF_MISSING = "one per signal", "half of the entries missing"
BOUNDS = {
    "SimCO step, Wolfe": {PER_SIGNAL: 1.1, HALF_MISSING: 3.0},
    "SimCO step, golden section": {PER_SIGNAL: 1.1, HALF_MISSING: 3.0},
    "OMP": {PER_SIGNAL: 1.1, HALF_MISSING: 6.0},
}


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


def commit() -> str:
    """The commit of this tree, with a plus if files were changed since."""
    git = ["git", "-C", str(REPOSITORY)]
    name = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "manifold_dl"]).returncode
    return name + "+" * bool(changed)


def tasks_and_weights(n: int) -> tuple[dict[str, Callable], dict[str, np.ndarray | None]]:
    """What is called, as functions of weights, and the weights."""
    rng = np.random.default_rng(0)
    truth, X, Y = mdl.datasets.synthetic(M, D, n, sparsity=SPARSITY, snr_db=20, rng=0)
    Y, start = np.asfortranarray(Y), Spheres(M, D).random_point(rng)
    near = truth + 0.3 * start
    near /= np.linalg.norm(near, axis=0)

    def step(searcher):
        optimizer = SteepestDescent(line_searcher=searcher, max_iterations=1, verbosity=0)
        update = mdl.SimCO(optimizer=optimizer, mu=0.05, threads=1)
        return lambda w: lambda: update(Y, near, X, weights=w)

    def code(coder):
        return lambda w: lambda: coder.encode(Y, near, threads=1, weights=w)

    tasks = {
        "SimCO step, Wolfe": step(mdl.WolfeSearch()),
        "SimCO step, golden section": step(mdl.GoldenSection()),
        "OMP": code(mdl.OMP(sparsity=SPARSITY)),
        "lasso": code(mdl.Lasso(alpha=0.1, relative=True)),
    }
    weights = {
        "none": None,
        "ones": np.ones((M, n)),
        PER_SIGNAL: rng.uniform(0.5, 2.0, n),
        HALF_MISSING: np.asfortranarray((rng.random((M, n)) < 0.5).astype(float)),
    }
    return tasks, weights


def main() -> int:
    """The exit code: 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=65_000, help="signals")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "results" / "weights.csv")
    options = parser.parse_args()
    tasks, weights = tasks_and_weights(options.n)
    kinds = list(weights)[1:]
    table = Table("", "none, s", *kinds, title=f"{M}×{D}, S = {SPARSITY}, n = {options.n:,}")
    made = {"commit": commit(), "date": f"{datetime.now(UTC):%Y-%m-%d}", "n": options.n}
    rows, exceeded = [], False
    for name, make in tasks.items():
        seconds = alternate({kind: make(w) for kind, w in weights.items()}, options.rounds)
        ratios = {kind: seconds[kind] / seconds["none"] for kind in kinds}
        bounds = BOUNDS.get(name, {})
        above = {kind for kind, bound in bounds.items() if ratios[kind] > bound}
        exceeded = exceeded or bool(above)
        cells = [
            f"{ratios[kind]:.2f}" + (f" (≤ {bounds[kind]:g})" if kind in bounds else "") for kind in kinds
        ]
        cells = [
            f"[bold]{cell}[/]" if kind in above else cell for kind, cell in zip(kinds, cells, strict=True)
        ]
        table.add_row(name, f"{seconds['none']:.3f}", *cells)
        numbers = {kind: f"{ratios[kind]:.3f}" for kind in kinds}
        rows.append({**made, "task": name, "none, s": f"{seconds['none']:.4f}", **numbers})
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    Console().print(table)
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
