# ruff: noqa: E402 - the number of BLAS threads has to be set before NumPy is imported
"""How fast is a dictionary update? Ratios within one run, on one thread, against the targets of the design.

    python benchmarks/update.py [--quick]

Whatever is compared runs in turns, and the shortest of the repetitions counts: on a machine with other work
to do, that is the one least disturbed. Time is that of the processor, except where two threads are compared
with one: that needs a machine without other work.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is loaded; the threads compared here are ours

import sys
import time
import tracemalloc
from dataclasses import dataclass
from functools import partial
from itertools import count, cycle, product

import numpy as np
import scipy.sparse
from pymanopt.optimizers import SteepestDescent
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from manifold_dl import MOD, GoldenSection, SimCO, WolfeSearch, update_problem
from manifold_dl.manifolds import Spheres

SIZES = [(16, 32, 4, 300), (64, 256, 5, 10_000), (64, 256, 5, 65_000)]
SMALLEST, LARGEST = SIZES[0], SIZES[-1]
MU = 0.1


class Data:
    """Noisy signals of a random dictionary, their codes, and another dictionary to start from."""

    def __init__(self, m, d, sparsity, n, seed=0):
        rng = np.random.default_rng(seed)
        self.size = (m, d, sparsity, n)
        self.true, self.start = Spheres(m, d).random_point(rng), Spheres(m, d).random_point(rng)
        indices = np.sort(rng.permuted(np.tile(np.arange(d, dtype=np.int32), (n, 1)), axis=1)[:, :sparsity])
        values = rng.standard_normal(n * sparsity)
        self.codes = scipy.sparse.csc_array(
            (values, indices.ravel(), sparsity * np.arange(n + 1, dtype=np.int32)), shape=(d, n)
        )
        noise = 0.05 * rng.standard_normal((n, m)).T
        self.signals = np.asfortranarray(self.codes.T @ self.true.T).T + noise
        self.signals = np.asfortranarray(self.signals)  # signals contiguous, as scikit-learn's rows are
        self.points = [Spheres(m, d).random_point(rng) for _ in range(3)]
        self.direction = Spheres(m, d).random_tangent_vector(self.start, rng)

    def problem(self, threads=1):
        return update_problem(self.signals, self.codes, mu=MU, threads=threads)


@dataclass
class Row:
    what: str
    size: tuple
    ratio: float
    target: float | None  # None where there is no target, here or at this size
    detail: str
    at_least: bool = False

    @property
    def holds(self):
        return self.ratio >= self.target if self.at_least else self.ratio <= self.target


def turns(repeats, clock=time.process_time, **tasks):
    """Seconds of each task in `repeats` turns, after one turn to warm up."""
    times = {name: [] for name in tasks}
    for turn in range(repeats + 1):
        for name, task in tasks.items():
            begin = clock()
            task()
            if turn:
                times[name].append(clock() - begin)
    return times


def shortest(repeats, **tasks):
    """Seconds of each task, the shortest of `repeats` turns."""
    return {name: min(values) for name, values in turns(repeats, **tasks).items()}


def one_step(data, searcher, threads=1):
    optimizer = SteepestDescent(line_searcher=searcher, max_iterations=1, verbosity=0)
    return optimizer.run(data.problem(threads), initial_point=data.start)


def dense_mod(Y, X):
    """MOD as it is usually written: dense codes, normal equations."""
    return np.linalg.solve(X @ X.T, X @ Y.T).T


def steps_against_mod(data, repeats):
    """A whole step, from the checks of the input to the end of the search, against MOD: with dense codes in
    NumPy, and our own, which uses that codes are sparse."""
    X = data.codes.toarray()
    seconds = shortest(
        repeats,
        dense=lambda: dense_mod(data.signals, X),
        sparse=lambda: MOD()(data.signals, data.start, data.codes),
        wolfe=lambda: one_step(data, WolfeSearch()),
        golden=lambda: one_step(data, GoldenSection()),
    )
    rivals = ("dense", "MOD, dense NumPy", 1.0), ("sparse", "MOD()", None)
    searchers = ("wolfe", "WolfeSearch"), ("golden", "GoldenSection")
    for (rival, rival_label, target), (name, label) in product(rivals, searchers):
        yield Row(
            f"step with {label} / {rival_label}",
            data.size,
            seconds[name] / seconds[rival],
            target if data.size == LARGEST else None,
            f"{milliseconds(seconds[name])} / {milliseconds(seconds[rival])}",
        )


def small_stage(repeats, size=(16, 32, 4, 78)):
    """A stage inside a run, at the smallest size of the paper's Table I."""
    data = Data(*size)
    X = data.codes.toarray()
    run = SimCO(optimizer="golden", mu=MU, threads=1).begin(max_iter=1000)
    seconds = shortest(
        100 * repeats,
        stage=lambda: run(data.signals, data.start, data.codes, iteration=1),
        dense=lambda: dense_mod(data.signals, X),
    )
    stage, dense = seconds["stage"], seconds["dense"]
    detail = f"{milliseconds(stage)} / {milliseconds(dense)}"
    yield Row("stage with GoldenSection / MOD, dense NumPy", size, stage / dense, None, detail)


def parts_of_a_step(data, repeats, few=10, many=30):
    problem = data.problem()
    turn, points = count(1), cycle(data.points)  # a new t, another point, each time
    phi = problem.cost.restrict(data.start, data.direction)
    # Hessian products at one point use one factorisation: that of another problem, evaluated there only.
    other = data.problem()
    other.euclidean_hessian(data.start, data.direction)
    search = golden_sections(data)

    def evaluate():
        point = next(points)
        problem.cost(point), problem.euclidean_gradient(point)

    seconds = shortest(
        3 * repeats,
        full=evaluate,
        few=lambda: search(few),
        many=lambda: search(many),
        slope=lambda: phi.derivative(1e-3 * next(turn)),
        hessian=lambda: other.euclidean_hessian(data.start, data.direction),
    )
    seconds["value"] = (seconds["many"] - seconds["few"]) / (many - few)
    full = milliseconds(seconds["full"])
    for name, label, target in (
        ("value", "one more probe φ(t) in a search / value and gradient", 0.2),
        ("slope", "φ(t) and φ′(t) outside a search / value and gradient", None),
        ("hessian", "Hessian product / value and gradient", 2.5),
    ):
        detail = f"{milliseconds(seconds[name])} / {full}"
        yield Row(label, data.size, seconds[name] / seconds["full"], target, detail)


def golden_sections(data):
    """Searches from one point, with as many probes as they are allowed: they would go on."""
    problem, start = data.problem(), np.asfortranarray(data.start)
    cost, manifold = problem.cost(start), problem.manifold
    gradient = problem.riemannian_gradient(start)
    direction = -problem.preconditioner(start, gradient)
    slope = manifold.inner_product(start, gradient, direction)

    def search(probes):
        problem.cost(start)  # every search begins with the same evaluation in the cache
        before = problem.counts.probe
        searcher = GoldenSection(max_probes=probes, width=1e-8)
        searcher.search(problem.cost, manifold, start, direction, cost, slope)
        assert problem.counts.probe == before + probes

    return search


def memory(size):
    """The peak of a step, with everything that is alive, over what has to be there: Y and its codes."""
    one_step(Data(*SMALLEST), WolfeSearch())  # compiled and imported before anything is measured
    data = Data(*size)
    codes = data.codes
    needed = data.signals.nbytes + codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes
    tracemalloc.start()
    one_step(data, WolfeSearch())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    detail = f"{needed / 2**20:.0f} MiB + {peak / 2**20:.0f} MiB"
    yield Row("peak memory of a step / Y and codes", size, (needed + peak) / needed, 1.5, detail)


def one_empty_support(data, repeats):
    """A flat patch among others: a signal without atoms is left where it is, and costs nothing."""
    codes, rule = data.codes.copy(), SimCO(mu=MU, threads=1)
    codes.data[: codes.indptr[1]] = 0
    codes.eliminate_zeros()
    seconds = shortest(
        repeats,
        none=lambda: rule(data.signals, data.start, data.codes),
        one=lambda: rule(data.signals, data.start, codes),
    )
    detail = f"{milliseconds(seconds['one'])} / {milliseconds(seconds['none'])}"
    yield Row("an empty support / none", data.size, seconds["one"] / seconds["none"], 1.05, detail)


def weights(data, repeats):
    """An update with a weight per signal, or with half of the entries missing, against one without."""
    rng = np.random.default_rng(1)
    per_signal = rng.uniform(0.5, 2.0, data.signals.shape[1])
    observed = np.asfortranarray((rng.random(data.signals.shape) < 0.5).astype(float))
    golden = SteepestDescent(line_searcher=GoldenSection(), max_iterations=1, verbosity=0)
    rules = {"SimCO()": SimCO(mu=MU, threads=1), "a golden-section step": SimCO(golden, mu=MU, threads=1)}
    for label, rule in rules.items():
        update = partial(rule, data.signals, data.start, data.codes)
        seconds = shortest(
            repeats,
            none=update,
            signal=partial(update, weights=per_signal),
            entry=partial(update, weights=observed),
        )
        for name, target in (("signal", 1.1), ("entry", 3.0)):
            detail = f"{milliseconds(seconds[name])} / {milliseconds(seconds['none'])}"
            what = f"{label}, a weight per {name} / none"
            yield Row(what, data.size, seconds[name] / seconds["none"], target, detail)


def two_threads(data, repeats):
    times = turns(
        repeats,
        clock=time.perf_counter,
        one=lambda: one_step(data, WolfeSearch(), threads=1),
        two=lambda: one_step(data, WolfeSearch(), threads=2),
    )
    seconds = {name: min(values) for name, values in times.items()}
    usual = np.median(times["one"]) / np.median(times["two"])
    detail = f"{milliseconds(seconds['one'])} / {milliseconds(seconds['two'])}, medians {usual:.2f}"
    yield Row(
        "one thread / two threads, a step",
        data.size,
        seconds["one"] / seconds["two"],
        1.6,
        detail,
        at_least=True,
    )


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g} ms"


def main():
    quick = "--quick" in sys.argv[1:]
    repeats = 3 if quick else 9
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    console, rows = Console(), []
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("measuring ...", total=2 * len(SIZES) + 5)

        def run(label, measurement):
            progress.update(bar, description=label)
            rows.extend(measurement)
            progress.advance(bar)

        for size in SIZES:
            data = Data(*size)
            more = 10 if size == SMALLEST else 1  # short tasks can be repeated more often
            run(f"steps at {size}", steps_against_mod(data, repeats * more))
            run(f"parts of a step at {size}", parts_of_a_step(data, repeats * more))
        run("a stage of a small problem", small_stage(repeats))
        # More turns than the others: two processors are disturbed more often than one.
        run(f"two threads at {size}", two_threads(data, 3 * repeats))
        run(f"an empty support at {size}", one_empty_support(data, repeats))
        run(f"weights at {size}", weights(data, repeats))
        run(f"memory at {size}", memory(size))
    table = Table("what", "(m, d, S, n)", "ratio", "target", "holds", "times", title="The dictionary update")
    for row in rows:
        bound, verdict = "–", "–"
        if row.target is not None:
            bound = f"{'≥' if row.at_least else '≤'} {row.target}"
            verdict = "[green]yes" if row.holds else "[red]no"
        table.add_row(row.what, str(row.size), f"{row.ratio:.3f}", bound, verdict, row.detail)
    console.print(table)
    if busy > 0.5:
        console.print(
            f"Other work was running (load {busy:.1f}): two threads may not have had two processors."
        )


if __name__ == "__main__":
    main()
