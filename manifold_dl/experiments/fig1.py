"""Figure 1: ill-conditioned dictionaries, Section VI-A.

The paper selects an example, 78 signals of 16×32 atoms with the support known, in which MOD, K-SVD and
primitive SimCO converge from one start to a singular point: the objective stops decreasing, the gradient does
not vanish, and κ(D) stays large. Regularized SimCO (μ = 0.01) keeps κ small; it does not minimise f, so the
gradient of f does not vanish either. Our example is selected as well, so the same run is repeated for many
draws, and the last panel shows the final κ of each of them.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from manifold_dl.experiments.methods import (
    PAPER,
    TRUTH,
    draw_signals,
    paper_methods,
    update_with_true_support,
)
from manifold_dl.experiments.study import Claim, Parameters, Part, Study
from manifold_dl.experiments.tables import Row, Table, in_order, listed, select
from manifold_dl.metrics import condition_number
from manifold_dl.plotting import method_style
from manifold_dl.plotting.style import GREY
from manifold_dl.problem.update_problem import update_problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SETTING = {
    "shape": [16, 32],
    "sparsity": 4,
    "signals": 78,
    "mu": 0.01,
    "iterations": 200,
    "example": 3,  # the draw whose iterations are shown
    "trials": 50,
}
QUICK = {"trials": 6}

SINGULAR = 10  # the paper calls a dictionary with κ > 10 ill-conditioned


def parts(parameters: Parameters) -> list[Part]:
    """Return the draws that are counted, and the example if it is not among them."""
    draws = sorted({*range(parameters["trials"]), parameters["example"]})
    return [{"draw": draw} for draw in draws]


def measure(parameters: Parameters, seed: int, draw: int) -> list[Row]:
    """Run the four methods on one draw: the last iterate of each, and for the example every iterate."""
    (m, d), iterations = parameters["shape"], parameters["iterations"]
    true, X, Y, start = draw_signals(m, d, parameters["signals"], parameters["sparsity"], draw, seed)
    support = X.astype(bool)
    primitive = update_problem(Y, support, threads=1)

    def row(method: str, iteration: int, D: np.ndarray) -> Row:
        return {
            "method": method,
            "draw": draw,
            "iteration": iteration,
            "objective": float(primitive.cost(D)),
            "gradient": float(primitive.manifold.norm(D, primitive.riemannian_gradient(D))),
            "kappa": condition_number(D, support),
        }

    rows: list[Row] = []
    for method, update in paper_methods(parameters["mu"]).items():

        def visit(t: int, D: np.ndarray, method: str = method) -> None:
            if t == iterations or draw == parameters["example"]:
                rows.append(row(method, t, D))

        update_with_true_support(update, Y, support, start, iterations, visit)
    return [*rows, row(TRUTH, iterations, true)]


def draw(table: Table) -> "Figure":
    """Draw objective, gradient and κ of the example against iterations, and the final κ of all draws."""
    import matplotlib.pyplot as plt

    example = select(table, iteration=0)["draw"][0]
    last = table["iteration"].max()
    figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.2))
    columns = {
        "objective": ("Objective", "‖Y − DX‖²"),
        "gradient": ("Gradient of the primitive objective f", "‖grad f(D)‖"),
        "kappa": ("Conditioning", "condition number κ(D)"),
    }
    methods = [method for method in in_order(table["method"]) if method != TRUTH]
    for ax, (column, (title, label)) in zip(axes.flat, columns.items(), strict=False):
        for method in methods:
            iterates = select(table, method=method, draw=example)
            look = method_style(method) | {"markevery": max(1, last // 8)}
            ax.plot(iterates["iteration"], iterates[column], **look, label=method)
        ax.set(title=title, xlabel="iterations", ylabel=label, yscale="log")
    _draw_truth(axes[1, 0], select(table, method=TRUTH, draw=example)["kappa"][0])
    _draw_final(axes[1, 1], select(table, iteration=last), example)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _draw_truth(ax: "Axes", kappa: float) -> None:
    ax.axhline(kappa, color=GREY, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
    ax.annotate(
        f"κ of the {TRUTH}: {kappa:.2f}", (1, kappa), (0, -4), xycoords=("axes fraction", "data"),
        textcoords="offset points", ha="right", va="top", color=GREY, fontsize="small",
    )  # fmt: skip
    ax.set_ylim(bottom=0.7 * kappa)


def _draw_final(ax: "Axes", final: Table, example: int) -> None:
    """Draw a dot for every draw, the example with a ring; the number of singular ones is written above."""
    methods, draws = in_order(final["method"]), in_order(final["draw"])
    # Horizontal positions are independent of κ: multiples of the golden ratio are evenly distributed.
    places = dict(zip(draws, 0.6 * (np.arange(len(draws)) * 0.618 % 1 - 0.5), strict=True))
    for i, method in enumerate(methods):
        rows = select(final, method=method)
        look = method_style(method) | {"linestyle": "none"}
        if method == TRUTH:
            look |= {"color": GREY, "marker": "o"}
        x = i + np.array([places[draw] for draw in rows["draw"].tolist()])
        ax.plot(x, rows["kappa"], **look, markersize=4, alpha=0.75, markeredgewidth=0)
        shown = rows["draw"] == example
        ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": "black", "linestyle": "none"}
        ax.plot(x[shown], rows["kappa"][shown], marker="o", markersize=9, **ring)
        singular = int(np.sum(rows["kappa"] > SINGULAR))
        ax.annotate(
            f"{singular}", (i, 1.0), (0, -2), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="top", fontsize="small",
        )  # fmt: skip
    ax.axhline(SINGULAR, color=GREY, linewidth=1, linestyle="--", zorder=1)
    short = [method.replace(" ", "\n") for method in methods]
    ax.set_xticks(range(len(methods)), labels=short, fontsize="small")
    ax.grid(False, axis="x")
    ax.set(yscale="log", ylabel="κ(D) after the last iteration")
    ax.set_ylim(top=6 * np.max(final["kappa"][np.isfinite(final["kappa"])]))
    ax.set_title(f"All {len(draws)} draws; how many end with κ > {SINGULAR}")


def claims(table: Table) -> list[Claim]:
    """Check Section VI-A for the example, and count the draws in which the same happens."""
    last = table["iteration"].max()
    example = select(table, iteration=0)["draw"][0]
    kappa = {
        method: select(table, iteration=last, draw=example, method=method)["kappa"][0] for method in PAPER
    }
    ill = {method: select(table, iteration=last, method=method)["kappa"] > SINGULAR for method in PAPER}
    gradient = {method: select(table, draw=example, method=method)["gradient"] for method in PAPER}
    others = PAPER[:3]
    left = {method: gradient[method][-1] / gradient[method][3 * last // 4] for method in others}
    still = {method: gradient[method][-1] / gradient[method][0] for method in others}
    return [
        Claim(
            "MOD, K-SVD and primitive SimCO may end with κ > 10, far from any stationary point",
            f"example: κ = {listed(kappa, others, '.0f')}; gradients, as fractions of the first: "
            f"{listed(still, others, '.3f')}; the last quarter of the iterations changes them by factors of "
            f"{listed(left, others, '.2f')}",
            all(
                bool(kappa[method] > SINGULAR and left[method] > 0.8 and still[method] > 0.01)
                for method in others
            ),
        ),
        Claim(
            "regularized SimCO avoids ill-conditioned dictionaries",
            f"example: κ = {kappa[PAPER[3]]:.1f}; of {len(ill['MOD'])} draws κ > 10 in "
            + listed({method: draws.sum() for method, draws in ill.items()}, PAPER, "d"),
            bool(kappa[PAPER[3]] < 5 and ill[PAPER[3]].sum() < min(ill[method].sum() for method in others)),
        ),
    ]


fig1 = Study("fig1", "Ill-conditioned dictionaries", SETTING, QUICK, parts, measure, draw, claims)
