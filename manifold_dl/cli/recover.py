"""``manifold-dl recover``: hide a dictionary in synthetic signals, and see who finds it again."""

import time
from typing import Annotated

import typer

from manifold_dl.cli.shared import Json, Quiet, Seed, print_json


def recover(
    signals: Annotated[int, typer.Option(min=32, help="How many signals.")] = 300,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
):
    """Hide a 16×32 dictionary in signals of four atoms each, and look for it in five ways."""
    from pymanopt.optimizers import SteepestDescent

    from manifold_dl import metrics, presets
    from manifold_dl.cli.bars import Bars
    from manifold_dl.coders import OMP
    from manifold_dl.datasets import synthetic
    from manifold_dl.learning.learn import learn_dictionary
    from manifold_dl.learning.result import Reason
    from manifold_dl.line_search import GoldenSection
    from manifold_dl.updates.simco import KSVD, MOD, SimCO

    golden = SteepestDescent(line_searcher=GoldenSection(), max_iterations=1)
    omp = {"coder": OMP(sparsity=4), "max_iter": 50, "tol": 0.0}
    methods = {
        "MOD": {**omp, "update": MOD()},
        "K-SVD": {**omp, "update": KSVD()},
        "SimCO, as in the paper": {**omp, "update": SimCO(golden, mu=[0.1] * 30 + [0.0])},
        "SimCO, our default": {**omp, "update": SimCO()},
        "presets.recover": presets.recover(sparsity=4),
    }
    D_true, _, Y = synthetic(16, 32, signals, sparsity=4, rng=seed)
    rows = []
    with Bars(quiet or as_json) as bars:
        for name, settings in methods.items():
            bar, begin = bars.bar(name), time.perf_counter()
            result = learn_dictionary(Y, 32, rng=seed + 1, callbacks=[bar], **settings)
            if result.reason is Reason.INTERRUPTED:
                raise KeyboardInterrupt
            found = round(32 * metrics.recovery(result.dictionary, D_true))
            bar.finish(f"{found} of 32 atoms")
            seconds = time.perf_counter() - begin
            loss = float(result.history.loss[-1])
            rows.append({"method": name, "found": found, "loss": loss, "seconds": seconds})
    if as_json:
        print_json({"signals": signals, "atoms": 32, "results": rows})
    elif not quiet:
        _show(rows, signals)


def _show(rows, signals):
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(
        f"\nA dictionary of 32 atoms was hidden in {signals} signals of length 16, four atoms in each.\n"
        "Who finds it again, from the signals alone?\n"
    )
    table = Table("method", "atoms found", "‖Y − DX‖² / n", "seconds")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(row["method"], f"{row['found']} of 32", f"{row['loss']:.4f}", f"{row['seconds']:.1f}")
    console.print(table)
