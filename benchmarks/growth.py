"""How time and memory of `learn_dictionary` grow with the number of signals: 64×256, S = 5, one thread.

    python benchmarks/growth.py [--full] [--dtype float32] [--iterations 3]

A process of its own for every number of signals learns for some iterations, after a warm-up on few signals.
It prints CPU seconds per iteration and the peak of resident memory beyond the warm-up, relative to signals
and codes; in the end the slope of log(seconds) against log(n). `--full` makes all iterations full, without
mini-batches. The peak is read from /proc, so it needs Linux.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import manifold_dl as mdl

M, ATOMS, SPARSITY = 64, 256, 5
SIZES = (100_000, 1_000_000)
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def signals(n: int, dtype: str, seed: int) -> np.ndarray:
    """Noisy mixtures of random atoms, made in small pieces: memory is measured."""
    rng = np.random.default_rng(seed)
    atoms = mdl.manifolds.Spheres(M, ATOMS).random_point(rng).T
    rows = np.empty((n, M), dtype)
    for first in range(0, n, 2048):
        part = rows[first : first + 2048]
        chosen, values = (
            rng.integers(ATOMS, size=(len(part), SPARSITY)),
            rng.standard_normal((len(part), SPARSITY)),
        )
        part[:] = np.einsum("nsm,ns->nm", atoms[chosen], values) + 0.05 * rng.standard_normal(part.shape)
    return rows.T


def memory(key: str) -> int:
    """Bytes of resident memory: VmRSS is that of now, VmHWM the peak."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(key))
    return 1024 * int(line.split()[1])


def measure(n: int, options: argparse.Namespace) -> dict[str, float]:
    settings = {"coder": mdl.OMP(sparsity=SPARSITY), "tol": 0.0, "rng": options.seed, "threads": 1}
    settings |= {"max_iter": options.iterations, "minibatches": False if options.full else None}
    few = signals(6_000, options.dtype, options.seed)
    for minibatches in (False, mdl.MiniBatches()):
        mdl.learn_dictionary(few, ATOMS, **{**settings, "minibatches": minibatches, "max_iter": 2})
    before = memory("VmRSS")
    Y = signals(n, options.dtype, options.seed + 1)
    CLEAR.write_text("5")  # the peak begins anew
    begin = time.process_time()
    result = mdl.learn_dictionary(Y, ATOMS, **settings)
    seconds = time.process_time() - begin
    codes = result.codes
    data = Y.nbytes + codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes
    peak = memory("VmHWM") - before
    return {"n": n, "seconds": seconds / options.iterations, "peak": peak, "data": data, "ratio": peak / data}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n", type=int, help="measure this number of signals in this process")
    options = parser.parse_args()
    if options.n is not None:
        print(json.dumps(measure(options.n, options)))
        return
    rows = []
    for n in SIZES:
        command = [sys.executable, __file__, *sys.argv[1:], "--n", str(n)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        row = rows[-1]
        print(
            f"n = {n:,}: {row['seconds']:.2f} s per iteration, {1e6 * row['seconds'] / n:.2f} µs per signal; "
            f"peak {row['peak'] / 1e6:.0f} MB, {row['ratio']:.2f} times signals and codes",
            flush=True,
        )
    first, last = rows[0], rows[-1]
    slope = math.log(last["seconds"] / first["seconds"]) / math.log(last["n"] / first["n"])
    print(f"slope of log(seconds) against log(n): {slope:.2f}")


if __name__ == "__main__":
    main()
