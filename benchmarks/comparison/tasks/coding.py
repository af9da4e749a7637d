"""Code 65,000 signals over a given dictionary, 64×256: a sparsity, an error to reach, or an ℓ₁ penalty.

Patches of a photograph over cosines, and mixtures of random atoms with 20 dB of noise. Libraries take
turns, and the shortest time of several counts. A slow one codes fewer signals: its speed is what is
compared.
"""

from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from comparison import adapters
from comparison.problems import CodingProblem, unit_columns
from comparison.results import Row, values
from comparison.tables import Table, in_order, number
from comparison.tasks.patches import patches
from comparison.timing import cpu_seconds, warm_up
from manifold_dl.images import Picture, cosines

ATOMS, SPARSITY, N = 256, 5, 65_000
KINDS = {"sparsity": "OMP, S = 5", "error": "OMP, error-constrained", "lasso": "lasso"}
DATA = ("patches", "mixtures")
DRAWS, LIMIT = 5, 20.0  # draws are rounds here
AT_MOST = 0.6  # seconds of a measurement: what is slower codes fewer signals


def cells(options: Any) -> list[Row]:
    n = N // 10 if options.quick else N
    return [
        {"data": data, "kind": kind, "dtype": dtype, "n": n, "seed": options.seed, "round": number}
        for data in DATA
        for kind in KINDS
        for dtype in ("float64", "float32")
        for number in range(options.draws)
    ]


def methods(adapter: ModuleType, cell: Row) -> dict[str, Any]:
    return adapters.functions(adapter, "CODING", cell["dtype"]).get(cell["kind"], {})


def group(cell: Row) -> Any:
    return cell["data"], cell["kind"], cell["dtype"]


@lru_cache(maxsize=1)
def problem(data: str, kind: str, dtype: str, n: int, seed: int) -> CodingProblem:
    """Signals, dictionary and what is asked for; the same in both precisions."""
    if data == "patches":
        Y = patches("camera", n, 100 * seed)
        D = cosines(Picture.of(np.zeros((8, 8)), 8, 1), ATOMS)
    else:
        Y, D = _mixtures(n, seed)
    sparsity, tol, alpha = SPARSITY, None, None
    if kind == "error":  # as in denoising at σ = 10 on the patches; the noise itself in the mixtures
        sparsity, tol = 32, 64 * 11.5**2 if data == "patches" else 0.02 * SPARSITY
    elif kind == "lasso":
        alpha = 0.2 * float(np.abs(D.T @ Y).max(axis=0).mean())
    given = (np.asfortranarray(part.astype(dtype)) for part in (Y, D))
    return CodingProblem(*given, sparsity, tol, alpha)


def _mixtures(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    D = unit_columns(rng.standard_normal((64, ATOMS)))
    chosen = np.argsort(rng.random((n, ATOMS)), axis=1)[:, :SPARSITY]
    clean = np.einsum("ns,nsm->nm", rng.standard_normal((n, SPARSITY)), D.T[chosen])
    noise = rng.standard_normal((n, 64)) * 0.1 * np.sqrt(SPARSITY / 64)
    return (clean + noise).T, D


def measure(function: Any, cell: Row) -> Row:
    given = problem(*(cell[key] for key in ("data", "kind", "dtype", "n", "seed")))
    few = given.part(min(cell["n"], 1_000))
    warm_up(function, few, cell["dtype"])
    each = cpu_seconds(function, few)[0] / few.signals.shape[1]
    n = int(min(cell["n"], max(1_000, AT_MOST / max(each, 1e-9))))
    used = given if n == cell["n"] else given.part(n)
    seconds, X = cpu_seconds(function, used)
    residual = used.signals - used.dictionary @ X
    quality = float(np.sum(residual.astype(float) ** 2) / n)
    if cell["kind"] == "lasso":
        quality = 0.5 * quality + given.alpha * float(np.abs(X).sum()) / n
    atoms = float((abs(X) > 0).sum()) / n
    return {"seconds": seconds, "signals": n, "rate": n / seconds, "quality": quality, "atoms": atoms}


def tables(rows: list[Row]) -> list[Table]:
    return [_table(rows, data, kind) for data in DATA for kind in KINDS]


def _table(rows: list[Row], data: str, kind: str) -> Table:
    lines = []
    for name in in_order(row["method"] for row in rows if row["cell"]["kind"] == kind):
        cells = [name]
        for dtype in ("float64", "float32"):
            chosen = {"method": name, "data": data, "kind": kind, "dtype": dtype}
            rates, qualities = values(rows, "rate", **chosen), values(rows, "quality", **chosen)
            best = max(rates, default=None)
            cells += [
                number(None if best is None else best / 1000, ",.0f"),
                number(min(qualities, default=None), ".6g"),
            ]
        atoms = values(rows, "atoms", method=name, data=data, kind=kind, dtype="float64")
        lines.append([*cells, number(min(atoms, default=None))])
    quality = "objective per signal" if kind == "lasso" else "‖y − Dx‖² per signal"
    head = ["method", "thousand signals/s", quality, "the same, float32", quality, "atoms per signal"]
    return Table(f"{KINDS[kind]}, {data}", head, lines)


def rate(rows: list[Row], name: str, **cell: Any) -> float | None:
    """The highest speed of the rounds."""
    return max(values(rows, "rate", method=name, **cell), default=None)
