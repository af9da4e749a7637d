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
from manifold_dl.experiments.study import Claim, Study
from manifold_dl.experiments.tables import in_order, means, select, standard_error
from manifold_dl.metrics import condition_number, recovery
from manifold_dl.plotting import method_style

SETTING = {
    "shape": [16, 32],
    "sparsity": 4,
    "signals": [50, 60, 80, 100, 150, 200, 300],
    "iterations": 400,
    "ridges": [1e-1, 1e-2, 1e-3, 1e-4],
    "snr_db": None,
    "trials": 50,
}
TRUTH = "true dictionary"
QUICK = {"signals": [60, 100, 200], "iterations": 200, "trials": 4}


def parts(parameters):
    return [{"n": n, "trial": trial} for n in parameters["signals"] for trial in range(parameters["trials"])]


def measure(parameters, seed, n, trial):
    """One draw of signals and start, and where the four methods end from there."""
    m, d = parameters["shape"]
    snr_db, iterations = parameters["snr_db"], parameters["iterations"]
    true, X, Y, start = draw_signals(m, d, n, parameters["sparsity"], seed, n, trial, snr_db=snr_db)
    support = X.astype(bool)
    rules = paper_methods(in_equal_shares(parameters["ridges"], iterations))
    ends = {
        name: update_with_true_support(rule, Y, support, start, iterations) for name, rule in rules.items()
    }
    if snr_db is not None:
        ends["true dictionary"] = (
            true  # the floor; a learned dictionary fits some of the noise and gets below it
        )
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


def draw(table):
    """Mean error, with its standard error, and mean share of the true atoms found, against n."""
    import matplotlib.pyplot as plt

    figure, (errors, shares) = plt.subplots(1, 2, figsize=(9.6, 4.2))
    for method in in_order(table["method"]):
        mine = select(table, method=method)
        sizes, look = np.unique(mine["n"]), method_style(method)
        of_size = [mine["error"][mine["n"] == n] for n in sizes]
        mean = np.array([np.mean(values) for values in of_size])
        spread = np.array([standard_error(values) for values in of_size])
        bars = np.minimum(spread, 0.95 * mean), spread  # a logarithmic axis knows no zero
        errors.errorbar(sizes, mean, yerr=bars, elinewidth=1, capsize=2, **look, label=method)
        found = [100 * np.mean(mine["recovered"][mine["n"] == n]) for n in sizes]
        if method != TRUTH:
            shares.plot(sizes, found, **look)
    errors.set(ylabel="‖Y − DX‖² / n", title="Mean error, and its standard error")
    drawn = [error for of_n in means(table, "error").values() for error in of_n.values()]
    if max(drawn) > 100 * min(drawn):
        errors.set_yscale("log")
    else:
        errors.set_ylim(bottom=0)
    shares.set(ylabel="atoms found, %", ylim=(-3, 103), title="Atoms of the true dictionary")
    ticks = np.unique(table["n"])
    for ax in (errors, shares):
        ax.set(xlabel="number of signals n", xscale="log")
        ax.set_xticks(ticks, labels=[str(n) for n in ticks])
        ax.xaxis.set_minor_locator(plt.NullLocator())
    figure.legend(loc="outside lower center", ncols=5)
    return figure


def claims(table):
    """Section VI-B: regularized SimCO is better than MOD and K-SVD on average; primitive SimCO is worst."""
    return [
        _order(
            "the mean error of regularized SimCO is consistently below those of MOD and K-SVD",
            table,
            "regularized SimCO",
            ("MOD", "K-SVD"),
        ),
        _order(
            "primitive SimCO is not as good as the other methods",
            table,
            "primitive SimCO",
            ("MOD", "K-SVD", "regularized SimCO"),
            sign=-1,
        ),
    ]


def _order(says, table, method, others, sign=1):
    """Whether a method's mean error is below (or above) that of each other, n by n, over the same draws.

    A difference counts if it exceeds two standard errors; where it does not, the draws leave it open.
    """
    sizes = in_order(table["n"])
    clear, open_, against, told = [], [], [], []
    for n in sizes:
        mine = select(table, method=method, n=n)["error"]
        rivals = {other: select(table, method=other, n=n)["error"] for other in others}
        leads = {other: sign * (errors - mine) for other, errors in rivals.items()}
        doubts = {other: 2 * standard_error(lead) for other, lead in leads.items()}
        if any(lead.mean() < -doubts[other] for other, lead in leads.items()):
            against.append(n)
        elif all(lead.mean() > doubts[other] for other, lead in leads.items()):
            clear.append(n)
        else:
            open_.append(n)
        told.append(f"{_mean(mine)} against {', '.join(map(_mean, rivals.values()))}")
    trials = len(select(table, method=method, n=sizes[0])["error"])
    verdicts = (("beyond two standard errors", clear), ("undecided", open_), ("the other way round", against))
    words = "; ".join(f"{word} at n = {', '.join(map(str, ns))}" for word, ns in verdicts if ns)
    means_of = "; ".join(f"n = {n}: {text}" for n, text in zip(sizes, told, strict=True))
    return Claim(
        says,
        f"{trials} draws a point, {words} (means ± standard errors, {', '.join(others)}: {means_of})",
        bool(clear and not against),
    )


def _mean(errors):
    return f"{np.mean(errors):.2g} ± {standard_error(errors):.1g}"


fig2a = Study(
    name="fig2a",
    title="Dictionary update with the true support, no noise",
    full=SETTING,
    quick=QUICK,
    parts=parts,
    measure=measure,
    draw=draw,
    claims=claims,
)
fig2b = Study(
    name="fig2b",
    title="Dictionary update with the true support, signals at 20 dB",
    full={**SETTING, "snr_db": 20.0},
    quick=QUICK,
    parts=parts,
    measure=measure,
    draw=draw,
    claims=claims,
)
