"""Figure 2: the dictionary update alone, with the true support, without noise (a) and at 20 dB (b).

16×32 dictionaries, S = 4, 400 iterations; few signals are the hard case. The ridge of regularized SimCO is
reduced from 1e-1 to 1e-4 in four stages of 100 iterations.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from manifold_dl.experiments.methods import (
    TRUTH,
    draw_signals,
    error_per_signal,
    in_equal_fractions,
    paper_methods,
    update_with_true_support,
)
from manifold_dl.experiments.study import Claim, Parameters, Part, Study
from manifold_dl.experiments.tables import Row, Table, in_order, means, select, standard_error
from manifold_dl.metrics import condition_number, recovery
from manifold_dl.plotting import method_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTING = {
    "shape": [16, 32],
    "sparsity": 4,
    "signals": [50, 60, 80, 100, 150, 200, 300],
    "iterations": 400,
    "ridges": [1e-1, 1e-2, 1e-3, 1e-4],
    "snr_db": None,
    "trials": 50,
}
QUICK = {"signals": [60, 100, 200], "iterations": 200, "trials": 4}


def parts(parameters: Parameters) -> list[Part]:
    """Return every trial of every number of signals."""
    return [{"n": n, "trial": trial} for n in parameters["signals"] for trial in range(parameters["trials"])]


def measure(parameters: Parameters, seed: int, n: int, trial: int) -> list[Row]:
    """Draw signals and a start, run the four methods from it, and measure the last dictionary of each."""
    m, d = parameters["shape"]
    snr_db, iterations = parameters["snr_db"], parameters["iterations"]
    true, X, Y, start = draw_signals(m, d, n, parameters["sparsity"], seed, n, trial, snr_db=snr_db)
    support = X.astype(bool)
    rules = paper_methods(in_equal_fractions(parameters["ridges"], iterations))
    ends = {
        name: update_with_true_support(rule, Y, support, start, iterations) for name, rule in rules.items()
    }
    if snr_db is not None:
        ends[TRUTH] = true  # for comparison: a learned dictionary fits some noise and has a lower error
    return [
        {
            "method": method,
            "n": n,
            "trial": trial,
            "error": error_per_signal(Y, support, D),
            "kappa": float(condition_number(D, support)),
            "recovered": recovery(D, true),
        }
        for method, D in ends.items()
    ]


def draw(table: Table) -> "Figure":
    """Draw the mean error, with its standard error, and the mean fraction of true atoms found, against n."""
    import matplotlib.pyplot as plt

    figure, (errors, fractions) = plt.subplots(1, 2, figsize=(9.6, 4.2))
    for method in in_order(table["method"]):
        rows = select(table, method=method)
        sizes, look = np.unique(rows["n"]), method_style(method)
        by_size = [rows["error"][rows["n"] == n] for n in sizes]
        mean = np.array([np.mean(values) for values in by_size])
        spread = np.array([standard_error(values) for values in by_size])
        bars = np.minimum(spread, 0.95 * mean), spread  # a logarithmic axis has no zero
        errors.errorbar(sizes, mean, yerr=bars, elinewidth=1, capsize=2, **look, label=method)
        found = [100 * np.mean(rows["recovered"][rows["n"] == n]) for n in sizes]
        if method != TRUTH:
            fractions.plot(sizes, found, **look)
    errors.set(ylabel="‖Y − DX‖² / n", title="Mean error, and its standard error")
    drawn = [error for of_n in means(table, "error").values() for error in of_n.values()]
    if max(drawn) > 100 * min(drawn):
        errors.set_yscale("log")
    else:
        errors.set_ylim(bottom=0)
    fractions.set(ylabel="atoms found, %", ylim=(-3, 103), title="Atoms of the true dictionary")
    ticks = np.unique(table["n"])
    for ax in (errors, fractions):
        ax.set(xlabel="number of signals n", xscale="log")
        ax.set_xticks(ticks, labels=[str(n) for n in ticks])
        ax.xaxis.set_minor_locator(plt.NullLocator())
    figure.legend(loc="outside lower center", ncols=5)
    return figure


def claims(table: Table) -> list[Claim]:
    """Check Section VI-B: regularized SimCO has the lowest mean error, primitive SimCO the highest."""
    return [
        _compare(
            "the mean error of regularized SimCO is consistently below those of MOD and K-SVD",
            table,
            "regularized SimCO",
            ("MOD", "K-SVD"),
        ),
        _compare(
            "primitive SimCO is not as good as the other methods",
            table,
            "primitive SimCO",
            ("MOD", "K-SVD", "regularized SimCO"),
            sign=-1,
        ),
    ]


def _compare(says: str, table: Table, method: str, others: Sequence[str], sign: int = 1) -> Claim:
    """Check whether a method's mean error is below (sign=1) or above (−1) that of the others, for every n.

    A difference is significant if it exceeds two standard errors over the same draws; otherwise it is
    undecided.
    """
    sizes = in_order(table["n"])
    clear, undecided, against, texts = [], [], [], []
    for n in sizes:
        own = select(table, method=method, n=n)["error"]
        compared = [select(table, method=other, n=n)["error"] for other in others]
        leads = [sign * (errors - own) for errors in compared]
        if any(lead.mean() < -2 * standard_error(lead) for lead in leads):
            against.append(n)
        elif all(lead.mean() > 2 * standard_error(lead) for lead in leads):
            clear.append(n)
        else:
            undecided.append(n)
        texts.append(f"{_mean(own)} against {', '.join(map(_mean, compared))}")
    trials = len(select(table, method=method, n=sizes[0])["error"])
    verdicts = (("beyond two standard errors", clear), ("undecided", undecided), ("opposite", against))
    words = "; ".join(f"{word} at n = {', '.join(map(str, ns))}" for word, ns in verdicts if ns)
    all_means = "; ".join(f"n = {n}: {text}" for n, text in zip(sizes, texts, strict=True))
    return Claim(
        says,
        f"{trials} draws per point, {words} (means ± standard errors, {', '.join(others)}: {all_means})",
        bool(clear and not against),
    )


def _mean(errors: np.ndarray) -> str:
    return f"{np.mean(errors):.2g} ± {standard_error(errors):.1g}"


fig2a = Study(
    "fig2a", "Dictionary update with the true support, no noise", SETTING, QUICK, parts, measure, draw, claims
)
fig2b = replace(
    fig2a,
    name="fig2b",
    title="Dictionary update with the true support, signals at 20 dB",
    full={**SETTING, "snr_db": 20.0},
)
