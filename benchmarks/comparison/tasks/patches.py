"""Learn from 65,000 patches of a photograph, 64×256, S = 5: error against seconds, as a curve.

Even seeds have `camera`, which was among the pictures that settings were chosen on, odd ones `astronaut` in
grey, which was not.

A point of the curve is a run of its own with so many passes over the signals, from patches as the start. The
error is ‖Y − DX‖²/n on these patches in double precision, with codes by OMP and, since some libraries learn
with forward selection, with those, too.
"""

from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from skimage import color, data

from comparison import adapters
from comparison.problems import LearningProblem, unit_columns
from comparison.results import Row, values
from comparison.tables import Table, in_order, mean, number
from comparison.timing import after_warm_up
from manifold_dl import OMP, ForwardSelection

ATOMS, SPARSITY, N = 256, 5, 65_000
PASSES = (1, 2, 3, 5, 10, 20)
DRAWS, LIMIT = 1, 25.0
PICTURES = ("camera", "astronaut")
TEN = 10  # passes, of the goals
JUDGES = {"error": "OMP", "error_forward": "forward selection"}
HIGHEST = 3_500  # error in the plot


def cells(options: Any) -> list[Row]:
    n, passes = (6_500, (1, 3, 10)) if options.quick else (N, PASSES)
    first, picture = 100 * options.seed, PICTURES[options.seed % 2]
    return [
        {"picture": picture, "n": n, "dtype": dtype, "passes": count, "draw": draw}
        for draw in range(first, first + options.draws)
        for dtype in ("float64", "float32")
        for count in passes
    ]


def methods(adapter: ModuleType, cell: Row) -> dict[str, Any]:
    return adapters.functions(adapter, "PATCHES", cell["dtype"])


def group(cell: Row) -> Any:
    return cell["draw"], cell["dtype"]


@lru_cache(maxsize=2)
def patches(picture: str, n: int, draw: int) -> np.ndarray:
    """Mean-free 8×8 patches in the columns, grey values 0 to 255."""
    pixels = getattr(data, picture)()
    if pixels.ndim == 3:
        pixels = np.rint(255 * color.rgb2gray(pixels))
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (8, 8)).reshape(-1, 64)
    rows = windows[np.random.default_rng(draw).choice(len(windows), n, replace=False)].astype(float)
    return (rows - rows.mean(axis=1, keepdims=True)).T


def start_from(Y: np.ndarray, draw: int) -> np.ndarray:
    """Patches that are not flat, brought to norm 1."""
    rough = np.flatnonzero(np.linalg.norm(Y, axis=0) > 1)
    chosen = np.random.default_rng([draw, 1]).choice(rough, ATOMS, replace=False)
    return np.asfortranarray(unit_columns(Y[:, chosen]))


def measure(function: Any, cell: Row) -> Row:
    Y = patches(cell["picture"], cell["n"], cell["draw"])
    start = start_from(Y, cell["draw"]).astype(cell["dtype"])
    given = LearningProblem(Y.astype(cell["dtype"]), start, SPARSITY, cell["passes"], seed=cell["draw"])
    # Ours takes other kernels where supports have few pairs of atoms, as 3,000 signals do.
    seconds, D = after_warm_up(function, given, given.part(3_000), given.part(9_000))
    D = unit_columns(np.asarray(D, float))
    qualities = {"error": OMP(sparsity=SPARSITY), "error_forward": ForwardSelection(sparsity=SPARSITY)}
    return {"seconds": seconds} | {name: error(Y, D, coder) for name, coder in qualities.items()}


def error(Y: np.ndarray, D: np.ndarray, coder: Any) -> float:
    X = coder.encode(Y, D, threads=1)
    residual = Y.T - X.T @ D.T
    return float(np.vdot(residual, residual) / Y.shape[1])


def tables(rows: list[Row]) -> list[Table]:
    return [_table(rows, quality) for quality in JUDGES]


def _table(rows: list[Row], quality: str) -> Table:
    passes = sorted({row["cell"]["passes"] for row in rows})
    lines = []
    for dtype in ("float64", "float32"):
        for name in in_order(row["method"] for row in rows if row["cell"]["dtype"] == dtype):
            cells = [_cell(rows, quality, name, dtype, count) for count in passes]
            lines.append([name, dtype, *cells])
    title = f"Error per patch with codes by {JUDGES[quality]} (CPU seconds) after so many passes"
    return Table(title, ["method", "precision", *map(str, passes)], lines)


def _cell(rows: list[Row], quality: str, name: str, dtype: str, passes: int) -> str:
    found, seconds = (
        mean(values(rows, q, method=name, dtype=dtype, passes=passes)) for q in (quality, "seconds")
    )
    return "–" if found is None else f"{found:,.0f} ({number(seconds)})"


def curve(rows: list[Row], name: str, dtype: str, quality: str = "error") -> list[tuple[float, float]]:
    """Seconds and errors of a method, in the order of passes; means over the draws."""
    passes = sorted({row["cell"]["passes"] for row in rows})
    found = [
        tuple(mean(values(rows, q, method=name, dtype=dtype, passes=count)) for q in ("seconds", quality))
        for count in passes
    ]
    return [(s, e) for s, e in found if s is not None and e is not None]


def plot(rows: list[Row], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    outside = []
    for k, name in enumerate(in_order(row["method"] for row in rows)):
        for dtype, style in (("float64", "o-"), ("float32", "s--")):
            if points := [(s, e) for s, e in curve(rows, name, dtype) if e < HIGHEST]:
                label = name if dtype == "float64" else f"{name}, float32"
                axes.plot(*zip(*points, strict=True), style, color=f"C{k % 10}", label=label, markersize=4)
            elif curve(rows, name, dtype):
                outside.append(name)
    axes.set(xscale="log", xlabel="CPU seconds", ylabel="‖Y − DX‖² / n, codes by OMP")
    if outside:
        axes.set_title(f"with an error above {HIGHEST:,}: {', '.join(outside)}", fontsize=9)
    figure.legend(loc="outside right upper", fontsize=8)
    axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
