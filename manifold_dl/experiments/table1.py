"""Table I: running times of Figures 2 to 4, as ratios to MOD in the same run, beside the paper's.

Machines and languages have changed since the paper, so ratios within one run are compared instead of seconds.
Each method runs the loop of its figure on one thread: updates with the true support (Figure 2), learning with
OMP (Figure 3), and the learning in denoising (Figure 4). The methods take turns, so that a disturbance
affects all of them, after a turn to warm up, so that compilation is not timed. For all of them the time
includes the optimal codes before an update, which SimCO would not need, and the drawing of the patches.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from manifold_dl._validation import each_warning_once
from manifold_dl.coders import OMP
from manifold_dl.experiments import fig2, fig3, fig4
from manifold_dl.experiments.methods import (
    PAPER,
    draw_signals,
    in_equal_fractions,
    paper_methods,
    update_with_true_support,
)
from manifold_dl.experiments.study import Claim, Parameters, Part, Study
from manifold_dl.experiments.tables import Row, Table, in_order, select
from manifold_dl.images import denoise
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.plotting import method_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IN_PAPER = {  # seconds, in the order of PAPER
    "fig2a": (2.4e4, 2.0e5, 5.1e4, 4.0e4),
    "fig2b": (2.3e4, 1.9e5, 5.0e4, 4.0e4),
    "fig3": (1.5e4, 3.7e4, 3.1e4, 3.1e4),
    "fig4": (1.42, 29.43, 2.63, 2.72),
}
TITLES = {
    "fig2a": "Figure 2(a)\nupdates, no noise",
    "fig2b": "Figure 2(b)\nupdates, 20 dB",
    "fig3": "Figure 3\nlearning with OMP",
    "fig4": "Figure 4\nlearning from a picture",
}

# The parameters that differ from those of the figures.
SETTING: Parameters = {
    "figures": {"fig2a": {}, "fig2b": {}, "fig3": {"signals": [500]}, "fig4": {}},
    "repeats": 5,
}
FEWER = {"signals": [60, 200], "iterations": 40}
QUICK = {
    "figures": {
        "fig2a": FEWER,
        "fig2b": FEWER,
        "fig3": {"signals": [500], "iterations": 20},
        "fig4": {"crop": [80, 190, 128], "iterations": 4},
    },
    "repeats": 3,
}


def parts(parameters: Parameters) -> list[Part]:
    """Return the figures. Figure 4 needs scikit-image."""
    fig4.scikit_image()
    return [{"figure": figure} for figure in parameters["figures"]]


def measure(parameters: Parameters, seed: int, figure: str) -> list[Row]:
    """Return milliseconds per iteration for each method and turn, and the ratio to MOD's in the same turn."""
    studies: dict[str, tuple[Study, Callable[[Parameters, int], dict[str, Callable[[], float]]]]] = {
        "fig2a": (fig2.fig2a, _update_loops),
        "fig2b": (fig2.fig2b, _update_loops),
        "fig3": (fig3.fig3, _learning_loops),
        "fig4": (fig4.fig4, _denoising_loops),
    }
    study, loops = studies[figure]
    setting = {**study.parameters(), **parameters["figures"][figure]}
    iterations = setting["iterations"] * len(setting.get("signals", [1]))
    seconds_of = loops(setting, seed)
    in_paper = dict(zip(PAPER, IN_PAPER[figure], strict=True))
    rows: list[Row] = []
    for turn in range(-1, parameters["repeats"]):  # the turn before the first is not counted
        seconds = {method: seconds_of[method]() for method in PAPER}
        rows += [
            {
                "figure": figure,
                "method": method,
                "turn": turn,
                "milliseconds": 1e3 * seconds[method] / iterations,
                "ratio": seconds[method] / seconds["MOD"],
                "paper_seconds": in_paper[method],
                "paper_ratio": in_paper[method] / in_paper["MOD"],
            }
            for method in PAPER
            if turn >= 0
        ]
    return rows


def _update_loops(setting: Parameters, seed: int) -> dict[str, Callable[[], float]]:
    """Return functions that time Figure 2: the whole run for each number of signals, one draw each."""
    (m, d), sparsity, iterations = setting["shape"], setting["sparsity"], setting["iterations"]
    draws = [draw_signals(m, d, n, sparsity, seed, n, snr_db=setting["snr_db"]) for n in setting["signals"]]

    def loop(update: Any) -> None:
        for _, X, Y, start in draws:
            update_with_true_support(update, Y, X.astype(bool), start, iterations)

    rules = paper_methods(in_equal_fractions(setting["ridges"], iterations))
    return {method: partial(_timed, loop, rule) for method, rule in rules.items()}


def _learning_loops(setting: Parameters, seed: int) -> dict[str, Callable[[], float]]:
    """Return functions that time Figure 3: the same with OMP instead of the true support."""
    (m, d), sparsity = setting["shape"], setting["sparsity"]
    draws = [draw_signals(m, d, n, sparsity, seed, n) for n in setting["signals"]]
    coder, iterations = OMP(sparsity=sparsity), setting["iterations"]
    options: dict[str, Any] = {
        "coder": coder,
        "max_iter": iterations,
        "tol": 0.0,
        "replace": None,
        "threads": 1,
    }

    def loop(update: Any) -> None:
        with each_warning_once("unused atoms"):  # only the time counts
            for _, _, Y, start in draws:
                learn_dictionary(Y, d, update=update, init=start, **options)

    rules = paper_methods(fig3.two_step(setting))
    return {method: partial(_timed, loop, rule) for method, rule in rules.items()}


def _denoising_loops(setting: Parameters, seed: int) -> dict[str, Callable[[], float]]:
    """Return functions that time Figure 4: the learning only, so few patches are reconstructed."""
    _, noisy = fig4.noisy_picture(setting, seed, trial=0)

    def seconds(settings: dict[str, Any]) -> float:
        options: dict[str, Any] = {**settings, "stride": len(noisy), "rng": seed, "threads": 1}
        return denoise(noisy, setting["sigma"], **options).seconds_learning

    return {method: partial(seconds, settings) for method, settings in fig4.learning(setting).items()}


def _timed(loop: Callable[[Any], None], update: Any) -> float:
    begin = time.perf_counter()
    loop(update)
    return time.perf_counter() - begin


def draw(table: Table) -> "Figure":
    """Draw the ratios to MOD, the median of the turns beside the paper's."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    figures = in_order(table["figure"])
    methods = [method for method in in_order(table["method"]) if method != "MOD"]
    figure, ax = plt.subplots(figsize=(8.6, 4.4))
    ax.axhline(1, color=method_style("MOD")["color"], linewidth=1.2, linestyle=":", label="MOD", zorder=1)
    for i, method in enumerate(methods):
        look = method_style(method) | {"linestyle": "none", "markersize": 9, "markeredgewidth": 1.4}
        x = np.arange(len(figures)) + 0.26 * (i - (len(methods) - 1) / 2)
        tables = [select(table, figure=name, method=method) for name in figures]
        ours = [float(np.median(rows["ratio"])) for rows in tables]
        paper = [rows["paper_ratio"][0] for rows in tables]
        ax.vlines(x, ours, paper, color=look["color"], linewidth=1, alpha=0.6, zorder=1)
        ax.plot(x, ours, **look, label=method)
        ax.plot(x, paper, **(look | {"markerfacecolor": "white"}))
        for place, value in zip(x, ours, strict=True):
            ax.annotate(
                f"{value:.2g}", (place, value), (7, 0), textcoords="offset points", va="center", fontsize=7.5
            )
    ax.set_xticks(range(len(figures)), labels=[TITLES[name] for name in figures])
    ax.set(yscale="log", ylabel="running time, MOD = 1", xlim=(-0.5, len(figures) - 0.5))
    ax.set_title("Filled: measured here. Hollow: in the paper")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.grid(False, axis="x")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def claims(table: Table) -> list[Claim]:
    """Check Section VI-D: SimCO is faster than K-SVD and slower than MOD, in every turn."""
    checked: list[Claim] = []
    for figure in in_order(table["figure"]):
        ratio = {method: select(table, figure=figure, method=method)["ratio"] for method in PAPER}
        text = ", ".join(f"{method} {_range(ratio[method])}" for method in PAPER[1:])
        simco = [ratio[method] for method in PAPER[2:]]
        slowest, fastest = np.max(simco, axis=0), np.min(simco, axis=0)
        checked += [
            Claim(
                f"{figure}: SimCO is faster than K-SVD",
                f"as multiples of MOD, median (and range): {text}",
                bool(np.all(slowest < ratio["K-SVD"])),
            ),
            Claim(f"{figure}: SimCO is slower than MOD", "see above", bool(np.all(fastest > 1))),
        ]
    return checked


def _range(values: np.ndarray) -> str:
    return f"{np.median(values):.2g} ({values.min():.2g} to {values.max():.2g})"


table1 = Study(
    "table1", "Running times as ratios to MOD", SETTING, QUICK, parts, measure, draw, claims, alone=True
)
