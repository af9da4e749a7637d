"""``python -m manifold_dl``: learn one dictionary with four rules and show what each finds."""

import time

from pymanopt.optimizers import SteepestDescent
from rich.console import Console
from rich.table import Table

import manifold_dl as mdl


def main(n_signals=300, seed=0):
    """Hide a 16×32 dictionary in signals of four atoms each, and look for it."""
    console = Console()
    golden = SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=1)
    omp = {"coder": mdl.OMP(sparsity=4), "max_iter": 50, "tol": 0.0}
    methods = {
        "MOD": {**omp, "update": mdl.MOD()},
        "K-SVD": {**omp, "update": mdl.KSVD()},
        "SimCO, as in the paper": {**omp, "update": mdl.SimCO(golden, mu=[0.1] * 30 + [0.0])},
        "SimCO, our default": {**omp, "update": mdl.SimCO()},
        "presets.recover": mdl.presets.recover(sparsity=4),
    }
    D_true, _, Y = mdl.datasets.synthetic(16, 32, n_signals, sparsity=4, rng=seed)
    console.print(
        f"\nA dictionary of 32 atoms was hidden in {n_signals} signals of length 16, four atoms in each.\n"
        "Who finds it again, from the signals alone?\n"
    )
    table = Table("method", "atoms found", "‖Y − DX‖² / n", "seconds")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, settings in methods.items():
        begin = time.perf_counter()
        result = mdl.learn_dictionary(Y, 32, rng=seed + 1, callbacks=[mdl.Progress(name)], **settings)
        seconds = time.perf_counter() - begin
        found = mdl.metrics.recovery(result.dictionary, D_true)
        table.add_row(name, f"{32 * found:.0f} of 32", f"{result.history.loss[-1]:.4f}", f"{seconds:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
