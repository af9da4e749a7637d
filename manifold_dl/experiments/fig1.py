"""Figure 1: ill-conditioned dictionaries, Section VI-A.

The paper handpicks an example, 78 signals of 16×32 atoms with the support known, in which MOD, K-SVD and
primitive SimCO run from one start into a singular point: the objective stops falling, the gradient does not
vanish, and κ(D) stays large. Regularized SimCO (μ = 0.01) keeps κ small; the gradient of f, which it does not
minimise, is left with what the ridge adds. Our example is handpicked as well, so the same run is made for
many draws, and the last panel shows where each of them ends.
"""

import numpy as np

from manifold_dl.experiments.methods import PAPER, draw_signals, paper_methods, update_with_true_support
from manifold_dl.experiments.study import Claim, Study
from manifold_dl.experiments.tables import in_order, select
from manifold_dl.metrics import condition_number
from manifold_dl.plotting import method_style
from manifold_dl.plotting.style import GREY
from manifold_dl.problem.update_problem import update_problem

SETTING = {
    "shape": [16, 32],
    "sparsity": 4,
    "signals": 78,
    "mu": 0.01,
    "iterations": 200,
    "example": 3,  # the draw whose course is shown
    "trials": 50,
}
QUICK = {"trials": 6}

TRUTH = "true dictionary"
SINGULAR = 10  # the paper calls a dictionary with κ > 10 ill-conditioned


def parts(parameters):
    """The draws to be counted, and the example if it is not among them."""
    draws = sorted({*range(parameters["trials"]), parameters["example"]})
    return [{"draw": draw} for draw in draws]


def measure(parameters, seed, draw):
    """Where the four methods end in one draw of signals and start; for the example, how they get there."""
    (m, d), iterations = parameters["shape"], parameters["iterations"]
    true, X, Y, start = draw_signals(m, d, parameters["signals"], parameters["sparsity"], draw, seed)
    support = X.astype(bool)
    primitive = update_problem(Y, support, threads=1)

    def row(method, iteration, D):
        return {
            "method": method,
            "draw": draw,
            "iteration": iteration,
            "objective": float(primitive.cost(D)),
            "gradient": float(primitive.manifold.norm(D, primitive.riemannian_gradient(D))),
            "kappa": condition_number(D, support),
        }

    rows = []
    for method, update in paper_methods(parameters["mu"]).items():
        course = []

        def visit(t, D, method=method, course=course):
            if t == iterations or draw == parameters["example"]:
                course.append(row(method, t, D))

        update_with_true_support(update, Y, support, start, iterations, visit)
        rows += course
    return [*rows, row(TRUTH, iterations, true)]


def draw(table):
    """Objective, gradient and κ of the example against iterations, and the final κ of all draws."""
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
            course = select(table, method=method, draw=example)
            looks = method_style(method) | {"markevery": max(1, last // 8)}
            ax.plot(course["iteration"], course[column], **looks, label=method)
        ax.set(title=title, xlabel="iterations", ylabel=label, yscale="log")
    _draw_truth(axes[1, 0], select(table, method=TRUTH, draw=example)["kappa"][0])
    _draw_final(axes[1, 1], select(table, iteration=last), example)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _draw_truth(ax, kappa):
    ax.axhline(kappa, color=GREY, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
    ax.annotate(
        f"κ of the {TRUTH}: {kappa:.2f}", (1, kappa), (0, -4), xycoords=("axes fraction", "data"),
        textcoords="offset points", ha="right", va="top", color=GREY, fontsize="small",
    )  # fmt: skip
    ax.set_ylim(bottom=0.7 * kappa)


def _draw_final(ax, final, example):
    """A dot for every draw, the example with a ring; how many are singular is written above."""
    methods, draws = in_order(final["method"]), in_order(final["draw"])
    # Side by side in an order that has nothing to do with κ: multiples of the golden ratio spread evenly.
    places = dict(zip(draws, 0.6 * (np.arange(len(draws)) * 0.618 % 1 - 0.5), strict=True))
    for i, method in enumerate(methods):
        mine = select(final, method=method)
        looks = method_style(method) | {"linestyle": "none"}
        if method == TRUTH:
            looks |= {"color": GREY, "marker": "o"}
        x = i + np.array([places[draw] for draw in mine["draw"].tolist()])
        ax.plot(x, mine["kappa"], **looks, markersize=4, alpha=0.75, markeredgewidth=0)
        shown = mine["draw"] == example
        ring = {"markersize": 9, "markerfacecolor": "none", "markeredgecolor": "black", "linestyle": "none"}
        ax.plot(x[shown], mine["kappa"][shown], marker="o", **ring)
        singular = int(np.sum(mine["kappa"] > SINGULAR))
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


def claims(table):
    """Section VI-A, for the example; and in how many of all draws the same happens."""
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
            f"example: κ = {_listed(kappa, others, '.0f')}; gradients, as shares of the first: "
            f"{_listed(still, others, '.3f')}; the last quarter of the iterations changes them by factors of "
            f"{_listed(left, others, '.2f')}",
            all(
                bool(kappa[method] > SINGULAR and left[method] > 0.8 and still[method] > 0.01)
                for method in others
            ),
        ),
        Claim(
            "regularized SimCO avoids ill-conditioned dictionaries",
            f"example: κ = {kappa[PAPER[3]]:.1f}; of {len(ill['MOD'])} draws κ > 10 in "
            + ", ".join(f"{ill[method].sum()} ({method})" for method in PAPER),
            bool(kappa[PAPER[3]] < 5 and ill[PAPER[3]].sum() < min(ill[method].sum() for method in others)),
        ),
    ]


def _listed(values, methods, form):
    return ", ".join(f"{values[method]:{form}} ({method})" for method in methods)


fig1 = Study(
    name="fig1",
    title="Ill-conditioned dictionaries",
    full=SETTING,
    quick=QUICK,
    parts=parts,
    measure=measure,
    draw=draw,
    claims=claims,
)
