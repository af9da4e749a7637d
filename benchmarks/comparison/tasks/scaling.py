"""How time and memory grow with n, m, d and S; one update at two extreme sizes.

"pass": seconds of a run of two passes, per pass, on mixtures of random atoms in single precision, around
64×256, S = 5, n = 20,000. Slopes are those of log(seconds) against log(size). "update": one dictionary
update, within a run, at 16×32 with 78 signals (S = 4), for which codes are given; along d; and at
768×4096 with 4,000 signals (S = 20), the size of embeddings, where OMP before it is timed, too. Peak
memory is that of a process of its own, beyond what Python and the libraries take before there are
signals, relative to signals, dictionary and codes.
"""

import ctypes
import resource
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from comparison import adapters
from comparison.problems import LearningProblem, mixed_signals
from comparison.results import Row, values
from comparison.tables import Table, in_order, number
from comparison.timing import cpu_seconds, warm_up
from manifold_dl import OMP

BASE = {"n": 20_000, "m": 64, "d": 256, "S": 5}
AXES = {
    "n": (10_000, 100_000, 1_000_000),
    "m": (32, 64, 128, 256),
    "d": (128, 256, 512, 1024),
    "S": (2, 5, 10, 20),
}
UPDATES = {
    "small": {"n": 78, "m": 16, "d": 32, "S": 4, "dtype": "float64", "repeats": 300},
    "d 512": {**BASE, "d": 512, "dtype": "float64", "repeats": 3},
    "d 1024": {**BASE, "d": 1024, "dtype": "float64", "repeats": 3},
    "embeddings": {"n": 4_000, "m": 768, "d": 4_096, "S": 20, "dtype": "float32", "repeats": 3},
}
# Warm-ups: ours takes other kernels where supports have few pairs of atoms, with long signals and with short.
SMALL = ((16, 32, 300), (16, 160, 300), (64, 160, 300))
DRAWS, LIMIT = 1, 40.0
STATUS = Path("/proc/self/status")


def cells(options: Any) -> list[Row]:
    draws = range(options.seed, options.seed + options.draws)
    axes = {"n": (1_000, 10_000)} if options.quick else AXES
    passes = [
        {"measured": "pass", "axis": axis, **BASE, axis: size, "dtype": "float32", "draw": draw}
        for draw in draws
        for axis, sizes in axes.items()
        for size in sizes
    ]
    updates = {"small": UPDATES["small"]} if options.quick else UPDATES
    rest = [
        {"measured": "update", "axis": name, **sizes, "draw": draw}
        for draw in draws
        for name, sizes in updates.items()
    ]
    for cell in passes + rest:
        cell["fresh"] = cell["n"] * cell["m"] > 10**6 and (cell["n"] == 10**6 or cell["axis"] == "embeddings")
    return passes + rest


def methods(adapter: ModuleType, cell: Row) -> dict[str, Any]:
    return adapters.functions(adapter, "SCALING" if cell["measured"] == "pass" else "UPDATES", cell["dtype"])


def group(cell: Row) -> Any:
    return cell["measured"], cell["axis"]


def measure(function: Any, cell: Row) -> Row:
    is_pass = cell["measured"] == "pass"
    for small in (mixed_signals(*sizes, 4, 0, cell["dtype"]) for sizes in SMALL):
        warm_up(function if is_pass else _updating_once(function), small, cell["dtype"])
    given = mixed_signals(*(cell[key] for key in ("m", "d", "n", "S")), cell["draw"], cell["dtype"])
    if is_pass:
        return _measure_pass(function, replace(given, passes=2), cell)
    return _measure_update(function, given, cell)


def _measure_pass(function: Any, given: LearningProblem, cell: Row) -> Row:
    before = resident_memory()
    seconds, _ = cpu_seconds(function, given)
    memory = _relative_memory(before, given) if cell["fresh"] else None
    return {"seconds": seconds / given.passes, "memory": memory}


def _measure_update(begin: Any, given: LearningProblem, cell: Row) -> Row:
    Y, D, repeats = given.signals, given.start, cell["repeats"]
    seconds_omp, X = cpu_seconds(lambda: OMP(sparsity=cell["S"]).encode(Y, D, threads=1))
    before = resident_memory()
    update = begin()

    def run() -> Any:
        for k in range(repeats):
            update(Y, D, X, k)

    seconds, _ = cpu_seconds(run)
    memory = _relative_memory(before, given) if cell["fresh"] else None
    return {"seconds": seconds / repeats, "omp": seconds_omp, "memory": memory}


@cache
def _updating_once(begin: Any) -> Any:
    """A function of a problem that makes one update."""

    def update(given: LearningProblem) -> None:
        codes = OMP(sparsity=given.sparsity).encode(given.signals, given.start, threads=1)
        begin()(given.signals, given.start, codes, 0)

    return update


def _relative_memory(before: int, given: LearningProblem) -> float:
    """The peak beyond what was there before, and what was given, relative to the least there can be."""
    return (peak_memory() - before + given.signals.nbytes + given.start.nbytes) / memory_of(given)


def memory_of(given: LearningProblem) -> int:
    """Bytes of signals, dictionary and codes (values and 32-bit indices)."""
    Y, D = given.signals, given.start
    return Y.nbytes + D.nbytes + Y.shape[1] * given.sparsity * (Y.itemsize + 4)


def resident_memory() -> int:
    """What this process has in memory, in bytes; from here on, Linux measures its peak anew."""
    if not STATUS.exists():
        return peak_memory()
    # What was freed before and is kept by malloc would be used again, and not be seen.
    with suppress(AttributeError):  # of glibc
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def peak_memory() -> int:
    """The largest resident memory of this process, in bytes."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def slope(sizes: list[float], seconds: list[float]) -> float | None:
    """Of log(seconds) against log(size), by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]) if len(sizes) > 1 else None


def points(rows: list[Row], name: str, axis: str) -> tuple[list[float], list[float]]:
    """Sizes along an axis and seconds per pass, smallest of the draws."""
    sizes = sorted({row["cell"][axis] for row in rows if row["cell"]["axis"] == axis})
    found = [
        (size, values(rows, "seconds", method=name, measured="pass", axis=axis, **{axis: size}))
        for size in sizes
    ]
    return [size for size, seconds in found if seconds], [min(seconds) for _, seconds in found if seconds]


def tables(rows: list[Row]) -> list[Table]:
    return [_passes(rows, axis) for axis in AXES] + [_updates(rows)]


def _passes(rows: list[Row], axis: str) -> Table:
    rows = [row for row in rows if row["cell"]["axis"] == axis]
    sizes = sorted({row["cell"][axis] for row in rows})
    lines = []
    for name in in_order(row["method"] for row in rows):
        measured, seconds = points(rows, name, axis)
        by_size = dict(zip(measured, seconds, strict=True))
        last = slope(measured[-2:], seconds[-2:])
        lines.append(
            [
                name,
                *(number(by_size.get(size), ".3f") for size in sizes),
                number(slope(measured, seconds)),
                number(last),
                number(max(values(rows, "memory", method=name), default=None)),
            ]
        )
    head = ["method", *(f"{axis} = {size:,}" for size in sizes), "slope", "last two", "memory"]
    return Table(f"CPU seconds per pass against {axis}", head, lines)


def _updates(rows: list[Row]) -> Table:
    rows = [row for row in rows if row["cell"]["measured"] == "update"]
    head = [
        "update",
        "16×32, n = 78 (ms)",
        "d = 512 (s)",
        "d = 1,024 (s)",
        "slope",
        "768×4096 (s)",
        "OMP (s)",
        "memory",
    ]
    lines = []
    for name in in_order(row["method"] for row in rows):
        small, half, full, large = (
            min(values(rows, "seconds", method=name, axis=axis), default=None) for axis in UPDATES
        )
        omp, memory = (
            min(values(rows, q, method=name, axis="embeddings"), default=None) for q in ("omp", "memory")
        )
        growth = slope([512, 1024], [half, full]) if half and full else None
        milliseconds = None if small is None else 1000 * small
        lines.append(
            [name, number(milliseconds, ".3f"), *map(number, (half, full, growth, large, omp, memory))]
        )
    return Table("CPU seconds of one dictionary update", head, lines)
