"""Figure 2: the dictionary update alone, with the true support, without noise (a) and at 20 dB (b).

Few signals are the hard case: 16×32 dictionaries, S = 4, 400 iterations. The ridge of regularized SimCO
falls from 1e-1 to 1e-4 in four steps of 100 iterations.
"""

import numpy as np

from manifold_dl.experiments.methods import (
    draw_signals,
    error_per_signal,
    in_equal_shares,
    paper_methods,
    update_with_true_support,
)
from manifold_dl.experiments.study import Study
from manifold_dl.experiments.tables import in_order, select
from manifold_dl.metrics import condition_number, recovery
from manifold_dl.plotting import method_style

SETTING = {
    "shape": [16, 32],
    "sparsity": 4,
    "signals": [50, 60, 70, 80, 100, 125, 150, 200, 300],
    "iterations": 400,
    "ridges": [1e-1, 1e-2, 1e-3, 1e-4],
    "snr_db": None,
    "trials": 50,
}
QUICK = {"signals": [60, 100, 200], "iterations": 200, "trials": 4}


def parts(parameters):
    return [{"n": n, "trial": trial} for n in parameters["signals"] for trial in range(parameters["trials"])]


def measure(parameters, seed, n, trial):
    """One draw of signals and start, and where the four methods end from there."""
    m, d = parameters["shape"]
    snr_db, iterations = parameters["snr_db"], parameters["iterations"]
    true, X, Y, start = draw_signals(m, d, n, parameters["sparsity"], seed, n, trial, snr_db=snr_db)
    support = X.astype(bool)
    rows = []
    for method, update in paper_methods(in_equal_shares(parameters["ridges"], iterations)).items():
        D = update_with_true_support(update, Y, support, start, iterations)
        rows.append(
            {
                "method": method,
                "n": n,
                "trial": trial,
                "error": error_per_signal(Y, support, D),
                "kappa": float(condition_number(D, support)),
                "recovered": recovery(D, true),
            }
        )
    return rows


def draw(table, floor=None):
    """Mean error against the number of signals, with the middle half of the trials behind it."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 4.4))
    for method in in_order(table["method"]):
        mine = select(table, method=method)
        sizes = np.unique(mine["n"])
        errors = [mine["error"][mine["n"] == n] for n in sizes]
        look = method_style(method)
        quarters = np.array([np.percentile(values, [25, 75]) for values in errors]).T
        ax.fill_between(sizes, *quarters, color=look["color"], alpha=0.12, linewidth=0)
        ax.plot(sizes, [np.mean(values) for values in errors], **look, label=method)
    ax.set(xlabel="number of signals n", ylabel="‖Y − DX‖² / n", yscale="log", xscale="log")
    ticks = np.unique(table["n"])
    ax.set_xticks(ticks, labels=[str(n) for n in ticks])
    ax.minorticks_off()
    ax.legend()
    return figure


fig2a = Study(
    name="fig2a",
    title="Dictionary update with the true support, no noise",
    full=SETTING,
    quick=QUICK,
    parts=parts,
    measure=measure,
    draw=draw,
)
fig2b = Study(
    name="fig2b",
    title="Dictionary update with the true support, signals at 20 dB",
    full={**SETTING, "snr_db": 20.0},
    quick=QUICK,
    parts=parts,
    measure=measure,
    draw=draw,
)
