# ruff: noqa: E402 - the number of BLAS threads has to be set before NumPy is imported
"""How long does an iteration take with thousands of atoms, and what does it achieve?

    python benchmarks/embeddings.py [--signals 20000] [--atoms 4096] [--iterations 2]

768×4096 atoms, supports of 20, float32, one thread. The signals are made here, to look like embeddings of
texts: unit norm, most of their energy in a subspace of 64 dimensions that all share, and the rest a sparse
combination of 3,000 directions, some of them used a hundred times as often as others. All rules begin with
the same dictionary, of random signals, and `OMP` codes between their updates. CPU seconds; memory is the peak
of what Python allocates during the update, in units of the dictionary and the signals.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is loaded

import argparse
import time
import tracemalloc

import numpy as np
import scipy.sparse
from rich.console import Console
from rich.table import Table

from manifold_dl import KSVD, MOD, SimCO, presets

RANK, DIRECTIONS, IN_A_SIGNAL = 64, 3000, 15


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
    rule(Y, D, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=20_000)
    parser.add_argument("--atoms", type=int, default=4096)
    parser.add_argument("--sparsity", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=2)
    options = parser.parse_args()
    Y = embeddings(options.signals)
    coder = presets.embeddings(options.sparsity)["coder"]
    rng = np.random.default_rng(1)
    start = np.asfortranarray(Y[:, rng.choice(Y.shape[1], options.atoms, replace=options.atoms > Y.shape[1])])
    rules = {"SimCO()": SimCO(threads=1), "KSVD()": KSVD(threads=1), "MOD()": MOD()}
    given = start.nbytes + Y.nbytes
    table = Table(
        title=f"{len(Y)}×{options.atoms} atoms, {Y.shape[1]} signals, S = {options.sparsity}, float32"
    )
    for column in ("update", "iteration", "OMP, s", "update, s", "update / OMP", "error", "memory"):
        table.add_column(column, justify="right")
    for rule in rules.values():  # compile
        X = coder.encode(Y[:, :100], start, threads=1)
        rule(Y[:, :100], start, X)
    for name, rule in rules.items():
        D = start
        for iteration in range(options.iterations):
            coding, X = seconds(coder.encode, Y, D, threads=1)
            updating, (new, codes) = seconds(rule, Y, D, X)
            memory = f"{peak_bytes(rule, Y, D, X) / given:.2f}" if iteration == 0 else ""
            error = f"{relative_error(Y, new, codes):.4f}"
            times = f"{coding:.2f}", f"{updating:.2f}", f"{updating / coding:.2f}"
            table.add_row(name, str(iteration + 1), *times, error, memory)
            D = new
    Console().print(table)


if __name__ == "__main__":
    main()
