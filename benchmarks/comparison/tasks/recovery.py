"""Find a hidden dictionary again: 16×32, S = 4, from the signals alone and from random starts."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from comparison import adapters
from comparison.problems import LearningProblem, unit_columns
from comparison.results import Row, values
from comparison.tables import Table, in_order, mean, number
from comparison.timing import after_warm_up
from manifold_dl import OMP, metrics
from manifold_dl.datasets import synthetic
from manifold_dl.manifolds import Spheres

M, ATOMS, SPARSITY = 16, 32, 4
SIGNALS, NOISES = (78, 150, 200, 300, 500, 1500), (None, 20.0)
FIRST_DRAW = 20_000  # settings were chosen on draws below 10,000
DRAWS, LIMIT = 4, 6.0
WARM_UP_DRAW = 19_000  # of problems that nobody is measured on


def cells(options: Any) -> list[Row]:
    signals = (78, 300) if options.quick else SIGNALS
    first = FIRST_DRAW + 1000 * options.seed
    return [
        {"snr_db": snr, "n": n, "draw": draw}
        for snr in NOISES
        for n in signals
        for draw in range(first, first + options.draws)
    ]


def methods(adapter: ModuleType, cell: Row) -> dict[str, Any]:
    return adapters.functions(adapter, "RECOVERY")


def group(cell: Row) -> Any:
    return cell["snr_db"]


def problem(cell: Row) -> tuple[np.ndarray, LearningProblem]:
    """The true dictionary, and the problem."""
    true, _, Y = synthetic(M, ATOMS, cell["n"], SPARSITY, snr_db=cell["snr_db"], rng=cell["draw"])
    start = Spheres(M, ATOMS).random_point(rng=10**6 + cell["draw"])
    noisy = cell["snr_db"] is not None
    given = np.asfortranarray(Y), np.asfortranarray(start)
    return true, LearningProblem(*given, SPARSITY, passes=50, seed=cell["draw"], noisy=noisy)


@cache
def warm_up_problems() -> tuple[LearningProblem, ...]:
    """Few signals and many, without noise and with it, and some on three lines: their atoms are dependent."""
    cells = [{"snr_db": snr, "n": n, "draw": WARM_UP_DRAW} for snr in NOISES for n in (70, 310)]
    problems = [problem(cell)[1] for cell in cells]
    few = problems[0].signals[:, :3]
    on_lines = few[:, np.arange(60) % 3] * np.linspace(0.5, 2, 60)
    return *problems, replace(problems[0], signals=np.asfortranarray(on_lines))


def measure(function: Any, cell: Row) -> Row:
    true, given = problem(cell)
    seconds, D = after_warm_up(function, given, *warm_up_problems())
    D = unit_columns(np.asarray(D, float))
    X = OMP(sparsity=SPARSITY).encode(given.signals, D, threads=1)
    loss = float(np.sum((given.signals - D @ X) ** 2) / cell["n"])
    return {"seconds": seconds, "found": metrics.recovery(D, true), "loss": loss}


def tables(rows: list[Row]) -> list[Table]:
    signals = sorted({row["cell"]["n"] for row in rows})
    return [_table(rows, snr, signals) for snr in NOISES]


def _table(rows: list[Row], snr: float | None, signals: list[int]) -> Table:
    noise = "no noise" if snr is None else f"{snr:g} dB"
    draws = len({row["cell"]["draw"] for row in rows})
    lines = []
    for name in in_order(row["method"] for row in rows):
        cells = [_cell(rows, name, snr, n) for n in signals]
        lines.append([name, *cells])
    title = f"Atoms found (CPU seconds), {noise}, mean of {draws} draws"
    return Table(title, ["method", *(f"n = {n:,}" for n in signals)], lines)


def _cell(rows: list[Row], name: str, snr: float | None, n: int) -> str:
    found, seconds = (mean(values(rows, q, method=name, snr_db=snr, n=n)) for q in ("found", "seconds"))
    return "–" if found is None else f"{100 * found:.0f} % ({number(seconds)})"


def plot(rows: list[Row], path: Path) -> None:
    from matplotlib.figure import Figure

    signals = sorted({row["cell"]["n"] for row in rows})
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for axes, snr in zip(figure.subplots(1, 2, sharey=True), NOISES, strict=True):
        for k, name in enumerate(in_order(row["method"] for row in rows)):
            found = [(n, mean(values(rows, "found", method=name, snr_db=snr, n=n))) for n in signals]
            points = [(n, 100 * f) for n, f in found if f is not None]
            style = "o-" if name.startswith("ours") else "s--"
            label = name if snr is None else None
            axes.plot(*zip(*points, strict=True), style, color=f"C{k % 10}", label=label, markersize=4)
        axes.set(xscale="log", xlabel="n", title="no noise" if snr is None else f"{snr:g} dB")
        axes.set_xticks(signals, [f"{n:,}" for n in signals], minor=False)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("atoms found, %")
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=150)
