"""What `compare_commits.py` measures, run by one child process for each of the two trees.

    python benchmarks/measured_calls.py serve     # reads names of calls, one per line, and prints CPU seconds
    python benchmarks/measured_calls.py memory    # prints the peak memory of one SimCO step

It uses public names of `manifold_dl` alone, because it runs with two versions of it; `WolfeSearch` was called
GeodesicSearch once. The package is the one on PYTHONPATH.
"""

import json
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse
from pymanopt.optimizers import ConjugateGradient, SteepestDescent

import manifold_dl as mdl

WolfeSearch = getattr(mdl, "WolfeSearch", None) or mdl.GeodesicSearch
MU = 0.1


class Size(NamedTuple):
    m: int
    d: int
    sparsity: int
    n: int


LARGE, SMALL = Size(64, 256, 5, 65_000), Size(16, 32, 4, 300)


class Data:
    """Noisy signals of a random dictionary, their codes, and another dictionary to start from."""

    def __init__(self, size: Size, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        m, d, sparsity, n = self.size = size
        manifold = mdl.manifolds.Spheres(m, d)
        self.true, self.start = manifold.random_point(rng), manifold.random_point(rng)
        self.direction = manifold.random_tangent_vector(self.start, rng)
        indices, values = np.empty((n, sparsity), np.int32), rng.standard_normal((n, sparsity))
        self.signals = np.empty((m, n), order="F")
        for block in (slice(j, j + 1000) for j in range(0, n, 1000)):  # small arrays: memory is measured, too
            order = rng.permuted(np.tile(np.arange(d, dtype=np.int32), (len(values[block]), 1)), axis=1)
            indices[block] = np.sort(order[:, :sparsity])
            self.signals[:, block] = np.einsum("mns,ns->mn", self.true[:, indices[block]], values[block])
            self.signals[:, block] += 0.05 * rng.standard_normal((m, len(values[block])))
        indptr = sparsity * np.arange(n + 1, dtype=np.int32)
        self.codes = scipy.sparse.csc_array((values.ravel(), indices.ravel(), indptr), shape=(d, n))


def simco(searcher: object) -> "mdl.SimCO":
    optimizer = SteepestDescent(line_searcher=searcher, max_iterations=1, verbosity=0)
    return mdl.SimCO(optimizer=optimizer, mu=MU, threads=1)


class Calls:
    """The measured calls: each method makes one, and its name is that of the measurement."""

    @cached_property
    def large(self) -> Data:
        return Data(LARGE)

    @cached_property
    def small(self) -> Data:
        return Data(SMALL)

    @cached_property
    def wolfe_run(self) -> Callable:
        return simco(WolfeSearch()).begin(1000)

    @cached_property
    def golden_run(self) -> Callable:
        return simco(mdl.GoldenSection()).begin(1000)

    @cached_property
    def problem(self) -> "mdl.problem.DictionaryProblem":
        return mdl.update_problem(self.large.signals, self.large.codes, mu=MU, threads=1)

    def step_wolfe(self) -> None:
        simco(WolfeSearch())(self.large.signals, self.large.start, self.large.codes)

    def step_golden(self) -> None:
        simco(mdl.GoldenSection())(self.large.signals, self.large.start, self.large.codes)

    def step_wolfe_in_run(self) -> None:
        self.wolfe_run(self.large.signals, self.large.start, self.large.codes, iteration=1)

    def step_golden_in_run(self) -> None:
        self.golden_run(self.large.signals, self.large.start, self.large.codes, iteration=1)

    def hessian_product(self) -> None:
        self.problem.euclidean_hessian(self.large.start, self.large.direction)

    def omp(self) -> None:
        mdl.OMP(sparsity=LARGE.sparsity).encode(self.large.signals, self.large.start, threads=1)

    def lasso(self) -> None:
        signals = self.large.signals[:, :8_000]
        mdl.Lasso(alpha=0.1, relative=True).encode(signals, self.large.start, threads=1)

    def ksvd_sweep(self) -> None:
        mdl.KSVD(threads=1)(self.large.signals, self.large.start, self.large.codes)

    def recover(self) -> None:
        Y, preset = self.small.signals, mdl.presets.recover(SMALL.sparsity)
        mdl.learn_dictionary(Y, SMALL.d, **preset, rng=0, threads=1)

    def conjugate_gradient(self, n_steps: int) -> None:
        problem = mdl.update_problem(self.small.signals, self.small.codes, mu=MU, threads=1)
        optimizer = ConjugateGradient(
            line_searcher=WolfeSearch(), max_iterations=n_steps + 1, min_gradient_norm=0, verbosity=0
        )
        optimizer.run(problem, initial_point=self.small.start)


def shortest(call: Callable[[], None], repeats: int) -> float:
    """CPU seconds of a call, the shortest of several."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def seconds_of(calls: Calls, name: str) -> float:
    """CPU seconds of one call; one conjugate-gradient step is the difference of long and short runs."""
    if name == "cg_step":
        few, many = 4, 20
        short = shortest(lambda: calls.conjugate_gradient(few), repeats=40)
        return (shortest(lambda: calls.conjugate_gradient(many), repeats=40) - short) / (many - few)
    return shortest(getattr(calls, name), repeats=10 if name == "hessian_product" else 2)


def serve() -> None:
    """Answer every line of the input, the name of a call, with its CPU seconds."""
    calls = Calls()
    for line in sys.stdin:
        print(json.dumps(seconds_of(calls, line.strip())), flush=True)


def memory() -> None:
    """Print the peak memory of a SimCO step in bytes: of NumPy's arrays, and of the process as a whole."""
    rule = simco(WolfeSearch())
    small, large = Data(SMALL), Data(LARGE)
    rule(small.signals, small.start, small.codes)  # compiled and imported before anything is measured
    before = peak_resident()
    rule(large.signals, large.start, large.codes)
    resident = peak_resident() - before
    tracemalloc.start()
    rule(large.signals, large.start, large.codes)
    print(json.dumps({"arrays": tracemalloc.get_traced_memory()[1], "resident": resident}))


def peak_resident() -> int:
    """The largest resident memory of this process until now, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


if __name__ == "__main__":
    {"serve": serve, "memory": memory}[sys.argv[1]]()
