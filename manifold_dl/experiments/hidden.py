"""How many atoms of a hidden dictionary are found from signals alone, by which method, in what time.

Nothing is known but the signals: supports have to be found together with the atoms. No exact count says how
many signals that needs; even with known supports it is d(m − 1)/(m − S), the counting bound in the figure.
Every method has the same random initial dictionary (except scikit-learn, which starts from singular vectors)
and one thread; seconds are those of the processor.
"""

import time
import warnings
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from manifold_dl import metrics
from manifold_dl.experiments.identifiability import counting_bound
from manifold_dl.experiments.methods import draw_signals
from manifold_dl.experiments.peers import ANNEALED, RECOVER, peer_methods
from manifold_dl.experiments.study import Claim, Parameters, Part, Study
from manifold_dl.experiments.tables import Row, Table, in_order, means, select, standard_error
from manifold_dl.plotting import method_style
from manifold_dl.plotting.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOISELESS = "no noise"
SETTING = {
    "shape": [16, 32],
    "sparsity": 4,
    "signals": [100, 150, 200, 300, 500, 1000, 1500],
    "snr_db": {NOISELESS: None, "20 dB": 20.0},
    # Of the annealed ℓ₁ methods; with noise it is better to end earlier.
    "annealing": {NOISELESS: [0.3, 0.15, 0.08, 0.04, 0.02], "20 dB": [0.3, 0.19, 0.12, 0.08, 0.05]},
    "penalty": 0.2,
    "iterations": 50,
    "steps": 60,
    "passes": 100,
    "trials": 32,
}
QUICK = {"signals": [150, 300], "trials": 2}

# What `presets.recover` has to find at 16×32, S = 4: the fraction of the atoms, by noise and n.
GOALS = {
    NOISELESS: {150: 0.6, 200: 0.93, 300: 0.98, 500: 0.99, 1500: 0.995},
    "20 dB": {200: 0.5, 300: 0.93, 500: 0.98, 1500: 0.995},
}
LABELS = {
    RECOVER: "presets.recover (ours)",
    "lasso_problem": "lasso_problem, annealed, one start (ours)",
    "SimCO, our default": "SimCO with OMP (our default)",
    "K-SVD": "K-SVD with OMP",
    "MOD": "MOD with OMP",
    "scikit-learn": "scikit-learn, ℓ₁, cd",
    "SPAMS": "SPAMS, ℓ₁",
}


def parts(parameters: Parameters) -> list[Part]:
    """Return every trial of every noise and number of signals."""
    return [
        {"noise": noise, "n": n, "trial": trial}
        for noise in parameters["snr_db"]
        for n in parameters["signals"]
        for trial in range(parameters["trials"])
    ]


def measure(parameters: Parameters, seed: int, noise: str, n: int, trial: int) -> list[Row]:
    """Draw signals and a start; run every method, and count the atoms found."""
    (m, d), sparsity = parameters["shape"], parameters["sparsity"]
    methods = peer_methods(parameters, sparsity, parameters["annealing"][noise])
    snr_db = parameters["snr_db"][noise]
    true, _, Y, start = draw_signals(m, d, n, sparsity, seed, n, trial, snr_db=snr_db)
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():  # one thread, for BLAS as well
        warnings.simplefilter("ignore")  # atoms that no signal uses, and iterations that end at tol = 0
        compile_methods(m, d, sparsity)
        for name, method in methods.items():
            begin = time.process_time()
            D = method(Y, start, trial)
            seconds = time.process_time() - begin
            rows.append({"noise": noise, "n": n, "trial": trial, "method": name})
            rows[-1] |= {"found": metrics.recovery(D, true), "seconds": seconds}
    return rows


@cache
def compile_methods(m: int, d: int, sparsity: int) -> None:
    """Run every method once on a few signals, before anything is timed in this process."""
    _, _, Y, start = draw_signals(m, d, 2 * d, sparsity, 0)
    few = {"iterations": 2, "steps": 2, "passes": 1, "penalty": 0.2}
    for method in peer_methods(few, sparsity, [0.2]).values():
        method(Y, start, 0)


def draw(table: Table) -> "Figure":
    """Draw the atoms found, and the seconds, against the number of signals: a column for each noise."""
    import matplotlib.pyplot as plt

    noises, sizes = in_order(table["noise"]), np.unique(table["n"])
    figure, axes = plt.subplots(
        2,
        len(noises),
        figsize=(5.2 * len(noises), 7.8),
        squeeze=False,
        sharex=True,
        sharey="row",
        height_ratios=[3, 2],
    )
    for (above, below), noise in zip(axes.T, noises, strict=True):
        rows = select(table, noise=noise)
        draw_column(above, rows, "found")
        draw_column(below, rows, "seconds")
        above.set(title=f"16×32 dictionaries, S = 4, {noise}", xscale="log", ylim=(-0.03, 1.03))
        below.set(yscale="log", xlabel="number of signals n", ylim=(0.008, 4))
        below.set_yticks([0.01, 0.1, 1], labels=["0.01", "0.1", "1"])
        below.set_xlim(36, 1.08 * sizes.max())
        below.set_xticks(sizes, labels=[str(n) for n in sizes])
        below.minorticks_off()
    draw_bound(axes)
    axes[0, 0].set_ylabel("fraction of the atoms found")
    axes[1, 0].set_ylabel("seconds on one thread")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], names[::-1], loc="outside lower center", ncols=3, handlelength=3.2)
    return figure


def draw_column(ax: "Axes", rows: Table, column: str) -> None:
    """Draw the means of one column, each with a band of one standard error on both sides."""
    for method in in_order(rows["method"]):
        own = select(rows, method=method)
        sizes = np.unique(own["n"])
        values = [select(own, n=n)[column] for n in sizes]
        mean, error = np.array([np.mean(v) for v in values]), np.array([standard_error(v) for v in values])
        look = method_style(method) | {"linewidth": 2.6 if method == RECOVER else 1.4}
        ax.plot(sizes, mean, **look, label=LABELS.get(method, method), zorder=3 if method == RECOVER else 2)
        ax.fill_between(sizes, mean - error, mean + error, color=look["color"], alpha=0.15, linewidth=0)


def draw_bound(axes: np.ndarray) -> None:
    """Draw the counting bound of 16×32, S = 4 into all axes, and name it in the upper ones."""
    bound = counting_bound(16, 32, 4)
    for ax in axes.flat:
        ax.axvline(bound, color=INK, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
    for ax in axes[0]:
        ax.annotate(
            f"counting bound n = {bound:g} (supports known)",
            (bound, 0.5),
            (3, 0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            rotation=90,
            va="center",
            color=INK,
            fontsize="small",
        )


def claims(table: Table) -> list[Claim]:
    """Check claims of ours: how many atoms `presets.recover` finds, and that SPAMS finds no more."""
    checked = []
    for noise in in_order(table["noise"]):
        rows = select(table, noise=noise)
        found, seconds = means(rows, "found"), means(rows, "seconds")
        goals = {n: goal for n, goal in GOALS.get(noise, {}).items() if n in found[RECOVER]}
        wanted = ", ".join(f"{goal:.1%} at n = {n}" for n, goal in goals.items())
        checked.append(
            Claim(
                f"{noise}: `presets.recover` finds at least {wanted}",
                _found(rows, RECOVER),
                bool(goals) and all(found[RECOVER][n] >= goal for n, goal in goals.items()),
            )
        )
        says = f"{noise}: it finds at least as many as SPAMS with annealed ℓ₁ penalty"
        if ANNEALED not in found:
            checked.append(Claim(says, "not measured: SPAMS is not installed (extra `bench`)", False))
            continue
        # Means of 32 draws that differ by less than one of 32·32 atoms are the same.
        as_good = all(found[RECOVER][n] >= found[ANNEALED][n] - 5e-4 for n in found[RECOVER])
        checked.append(Claim(says, f"SPAMS: {_found(rows, ANNEALED)}", as_good))
        timed = ", ".join(
            f"{seconds[RECOVER][n]:.2f} against {t:.2f} at n = {n}" for n, t in seconds[ANNEALED].items()
        )
        small = {"at the numbers of signals named above": [n for n in goals if n <= 500]}
        small["at every number of them"] = [n for n in found[RECOVER] if n <= 500]
        for where, sizes in small.items():
            checked.append(
                Claim(
                    f"{noise}: and takes no more time than that {where}, up to 500",
                    f"seconds: {timed}" if where != "at every number of them" else "see above",
                    bool(sizes) and all(seconds[RECOVER][n] <= seconds[ANNEALED][n] for n in sizes),
                )
            )
    return checked


def _found(rows: Table, method: str) -> str:
    """The atoms found, in per cent with standard errors."""
    own = select(rows, method=method)
    texts = []
    for n in np.unique(own["n"]).tolist():
        values = 100 * select(own, n=n)["found"]
        texts.append(f"{np.mean(values):.1f} ± {standard_error(values):.1f} % at n = {n}")
    return ", ".join(texts)


# Not `alone`: processor seconds of one thread, and the methods of a part take turns in one process.
hidden = Study("hidden", "Atoms found without known supports", SETTING, QUICK, parts, measure, draw, claims)
