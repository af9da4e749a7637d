# ruff: noqa: E402 - the number of BLAS threads has to be set before NumPy is imported
"""How long does an iteration take with thousands of atoms, and what does it achieve?

    python benchmarks/embeddings.py [--signals 20000] [--atoms 4096] [--iterations 2]
    python benchmarks/embeddings.py --page      # only the table in docs/embeddings.md, from the results

768×4096 atoms, supports of 20, float32, one thread. The signals are made here, to look like embeddings of
texts: unit norm, most of their energy in a subspace of 64 dimensions that all share, and the rest a sparse
combination of 3,000 directions, some of them used a hundred times as often as others. All rules begin with
the same dictionary, of random signals, and `OMP` codes between their updates. CPU seconds; memory is the peak
of what Python allocates during the update, in units of the dictionary and the signals. Results are kept in
benchmarks/results/embeddings.json, one entry for every number of signals and atoms, and the table in
docs/embeddings.md is made from it.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is loaded

import argparse
import json
import time
import tracemalloc
from pathlib import Path

import numpy as np
import scipy.sparse
from comparison.page import between
from comparison.results import machine
from comparison.tables import Table
from rich.console import Console
from rich.progress import track

from manifold_dl import KSVD, MOD, SimCO, presets
from manifold_dl.engines import Threads
from manifold_dl.schedules import Blocks

RANK, DIRECTIONS, IN_A_SIGNAL = 64, 3000, 15
RESULTS = Path(__file__).parent / "results" / "embeddings.json"
PAGE = Path(__file__).parents[1] / "docs" / "embeddings.md"
HEAD = ["update", "iteration", "OMP, s", "update, s", "update / OMP", "relative error", "memory"]


def embeddings(n, m=768, seed=0):
    """m×n float32 signals of norm 1: low rank plus sparse, plus a little noise, without their mean."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, RANK)) @ rng.standard_normal((RANK, m)) / RANK**0.5
    frequency = np.arange(1, DIRECTIONS + 1.0) ** -0.6
    chosen = rng.choice(DIRECTIONS, (n, IN_A_SIGNAL), p=frequency / frequency.sum())
    values = rng.exponential(size=(n, IN_A_SIGNAL))
    indptr = IN_A_SIGNAL * np.arange(n + 1)
    codes = scipy.sparse.csr_array((values.ravel(), chosen.ravel(), indptr), shape=(n, DIRECTIONS))
    sparse = codes @ rng.standard_normal((DIRECTIONS, m)) / IN_A_SIGNAL**0.5
    rows = shared + sparse + 0.1 * rng.standard_normal((n, m))
    rows -= rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows, np.float32).T


def seconds(function, *arguments, **options):
    begin = time.process_time()
    result = function(*arguments, **options)
    return time.process_time() - begin, result


def relative_error(Y, D, X):
    residual = Y.T - X.T @ np.ascontiguousarray(D.T)
    return float(np.linalg.norm(residual) / np.linalg.norm(Y))


def peak_bytes(rule, Y, D, X):
    """The most memory that an update takes, besides what it was given."""
    tracemalloc.start()
    rule(Y, D, X, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measure(options):
    """The seconds of coding and update, the error, and the memory of the first iteration of every rule."""
    Y = embeddings(options.signals)
    coder = presets.embeddings(options.sparsity)["coder"]
    rng = np.random.default_rng(1)
    start = np.asfortranarray(Y[:, rng.choice(Y.shape[1], options.atoms, replace=options.atoms > Y.shape[1])])
    rules = {
        "SimCO()": SimCO(threads=1),
        "SimCO(schedule=Blocks(512))": SimCO(threads=1, schedule=Blocks(512)),
        "KSVD()": KSVD(threads=1),
        "MOD()": MOD(engine=Threads(1)),
    }
    for rule in rules.values():  # compile
        X = coder.encode(Y[:, :100], start, threads=1)
        rule(Y[:, :100], start, X)
    rows = []
    for name, rule in track(rules.items(), "Updating ..."):
        D = start
        for iteration in range(options.iterations):
            coding, X = seconds(coder.encode, Y, D, threads=1)
            updating, (new, codes) = seconds(rule, Y, D, X, rng=iteration)
            row = {"update": name, "iteration": iteration + 1, "coding": coding, "updating": updating}
            row["error"] = relative_error(Y, new, codes)
            if iteration == 0:
                row["memory"] = peak_bytes(rule, Y, D, X) / (start.nbytes + Y.nbytes)
            rows.append(row)
            D = new
    return rows


def table(title, rows):
    lines = [
        [
            f"`{row['update']}`",
            str(row["iteration"]),
            f"{row['coding']:.2f}",
            f"{row['updating']:.2f}",
            f"{row['updating'] / row['coding']:.2f}",
            f"{row['error']:.3f}",
            f"{row['memory']:.1f}" if "memory" in row else "",
        ]
        for row in rows
    ]
    return Table(title, HEAD, lines)


def write_page(results):
    """Put the tables of all results between the marks of the page."""
    tables = "\n\n".join(table(title, found["rows"]).markdown() for title, found in results.items())
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between(text, "embeddings", tables), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=20_000)
    parser.add_argument("--atoms", type=int, default=4096)
    parser.add_argument("--sparsity", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the page is written if it is the default")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    options = parser.parse_args()
    results = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    if not options.page:
        title = f"768×{options.atoms:,} atoms, {options.signals:,} signals, S = {options.sparsity}, float32"
        rows = measure(options)
        Console().print(table(title, rows).rich())
        results[title] = {"machine": machine(), "rows": rows}
        options.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.out == RESULTS:
        write_page(results)


if __name__ == "__main__":
    main()
