"""``manifold-dl recover``: learn from synthetic signals, and count the atoms of the true dictionary found."""

import time
from typing import Annotated, Any

import typer

from manifold_dl.cli.options import Json, Quiet, Seed
from manifold_dl.cli.outputs import report


def recover(
    signals: Annotated[int, typer.Option(min=32, help="How many signals.")] = 300,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Recover a 16×32 dictionary from synthetic signals of four atoms each, with five methods."""
    from manifold_dl import metrics
    from manifold_dl.cli.bars import Bars
    from manifold_dl.datasets import synthetic
    from manifold_dl.learning.learn import learn_dictionary
    from manifold_dl.learning.result import Reason

    D_true, _, Y = synthetic(16, 32, signals, sparsity=4, rng=seed)
    rows = []
    with Bars(quiet or as_json) as bars:
        for name, settings in _methods().items():
            bar, begin = bars.bar(name), time.perf_counter()
            result = learn_dictionary(Y, 32, rng=seed + 1, callbacks=[bar], **settings)
            if result.reason is Reason.INTERRUPTED:
                raise KeyboardInterrupt
            found = round(32 * metrics.recovery(result.dictionary, D_true))
            bar.finish(f"{found} of 32 atoms")
            seconds = time.perf_counter() - begin
            loss = float(result.history.loss[-1])
            rows.append({"method": name, "found": found, "loss": loss, "seconds": seconds})
    facts = {"signals": signals, "atoms": 32, "results": rows}
    report(facts, lambda: _show(rows, signals), as_json=as_json, quiet=quiet)


def _methods() -> dict[str, dict[str, Any]]:
    """Return the keyword arguments of `learn_dictionary`, by the name of the method."""
    from manifold_dl import presets
    from manifold_dl.coders import OMP
    from manifold_dl.experiments.methods import one_step
    from manifold_dl.updates import KSVD, MOD, SimCO

    omp = {"coder": OMP(sparsity=4), "max_iter": 50, "tol": 0.0}
    return {
        "MOD": {**omp, "update": MOD()},
        "K-SVD": {**omp, "update": KSVD()},
        "SimCO, as in the paper": {**omp, "update": SimCO(one_step(), mu=[0.1] * 30 + [0.0])},
        "SimCO, our default": {**omp, "update": SimCO()},
        "presets.recover": presets.recover(sparsity=4),
    }


def _show(rows: list[dict[str, Any]], signals: int) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(
        f"\n{signals} signals of length 16 were made from a dictionary of 32 atoms, four atoms in each.\n"
        "How many of the atoms does each method find, from the signals alone?\n"
    )
    table = Table("method", "atoms found", "‖Y − DX‖² / n", "seconds")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(row["method"], f"{row['found']} of 32", f"{row['loss']:.4f}", f"{row['seconds']:.1f}")
    console.print(table)
