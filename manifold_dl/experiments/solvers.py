"""One dictionary update, every solver: the objective against iterations, evaluations and seconds.

The paper uses steepest descent with golden section and mentions that other methods may be better
(Section III-B). Here some of them run on the same problem: another line search, another direction, and the
exact Hessian. Every solver is a Pymanopt optimizer; Armijo backtracking is Pymanopt's default line search.

An iteration is a point that the solver accepted. Evaluations are those of the objective, its gradient, its
Hessian and probes of a line search. Their costs differ (the cost of a probe along a geodesic does not depend
on m), so seconds are measured as well.

Few signals make a harder problem: 78 are twice the smallest number that determines 16×32 atoms. The objective
then has more than one minimum, and with another seed the solvers may converge to different ones.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from pymanopt.optimizers.line_search import BackTrackingLineSearcher

from manifold_dl.experiments.methods import draw_signals
from manifold_dl.experiments.study import Claim, Parameters, Part, Study
from manifold_dl.experiments.tables import Row, Table, in_order, select
from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.optimizers import LBFGS
from manifold_dl.plotting import method_style
from manifold_dl.problem.update_problem import update_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEMS = [
    {"shape": [16, 32], "signals": 78, "sparsity": 4, "iterations": 1500},
    {"shape": [16, 32], "signals": 300, "sparsity": 4, "iterations": 400},
    {"shape": [64, 256], "signals": 10_000, "sparsity": 5, "iterations": 150},
]
SETTING = {"problems": PROBLEMS, "snr_db": 20.0, "mu": 0.01, "repeats": 5}
QUICK = {"problems": PROBLEMS[1:2], "repeats": 2}

# Names in the table, and the methods whose colours and markers they have.
LOOKS = {
    "steepest descent, golden section": "golden section",
    "steepest descent, Armijo": "Armijo",
    "steepest descent, Wolfe search": "steepest descent",
    "conjugate gradients": "conjugate gradients",
    "L-BFGS": "L-BFGS",
    "trust region": "trust region",
}
CLOSE = 1e-6  # of the initial gap f − f*: where solvers are compared
BOTTOM = 1e-12  # of the initial gap; smaller gaps are dominated by rounding


def optimizers(iterations: int, threshold: float) -> dict[str, Any]:
    """Return the solvers by name.

    Parameters
    ----------
    iterations : int
        The largest number of steps.
    threshold : float
        The solvers stop where the norm of the gradient is below it.

    Returns
    -------
    dict of str → pymanopt Optimizer
        In the order of `LOOKS`.
    """
    # A line search without decrease returns a step of 0; min_step_size ends the run there.
    limits: dict[str, Any] = {
        "max_iterations": iterations,
        "min_gradient_norm": threshold,
        "min_step_size": 1e-15,
    }
    limits |= {"max_time": float("inf"), "verbosity": 0}
    one_less = limits | {"max_iterations": iterations + 1}  # Pymanopt's CG makes one step less
    rules = (
        SteepestDescent(line_searcher=GoldenSection(), **limits),
        SteepestDescent(line_searcher=BackTrackingLineSearcher(), **limits),
        SteepestDescent(line_searcher=WolfeSearch(), **limits),
        ConjugateGradient(line_searcher=WolfeSearch(), **one_less),
        LBFGS(**limits),
        TrustRegions(**limits),
    )
    return dict(zip(LOOKS, rules, strict=True))


def parts(parameters: Parameters) -> list[Part]:
    """Return the problems by number."""
    return [{"number": number} for number in range(len(parameters["problems"]))]


def measure(parameters: Parameters, seed: int, number: int) -> list[Row]:
    """Run all solvers on one problem, in turns after one to warm up; of each the fastest run is kept."""
    setting = parameters["problems"][number]
    (m, d), n, sparsity = setting["shape"], setting["signals"], setting["sparsity"]
    _, X, Y, start = draw_signals(m, d, n, sparsity, seed, snr_db=parameters["snr_db"])
    records: dict[str, Any] = {}
    for turn in range(parameters["repeats"] + 1):
        for name in LOOKS:
            problem = update_problem(Y, X.astype(bool), mu=parameters["mu"], threads=1)
            threshold = 1e-9 * problem.scale
            optimizers(setting["iterations"], threshold)[name].run(problem, initial_point=start)
            if turn and (name not in records or problem.record[-1].seconds < records[name][-1].seconds):
                records[name] = problem.record
    best = min(point.value for record in records.values() for point in record)
    return [
        {
            "problem": f"{m}×{d}, n = {n:,}",
            "solver": name,
            "iteration": iteration,
            "evaluations": point.evaluations,
            "seconds": point.seconds,
            "value": point.value,
            "gap": (point.value - best) / (record[0].value - best),
        }
        for name, record in records.items()
        for iteration, point in enumerate(record)
    ]


def draw(table: Table) -> "Figure":
    """Draw the remaining gap against the three measures of effort: a row for every problem."""
    import matplotlib.pyplot as plt

    problems = in_order(table["problem"])
    efforts = {"iteration": "iterations", "evaluations": "evaluations", "seconds": "seconds"}
    figure, axes = plt.subplots(
        len(problems), 3, figsize=(10.4, 3.4 * len(problems) + 0.6), sharey="row", squeeze=False
    )
    for row, problem in zip(axes, problems, strict=True):
        for ax, (effort, label) in zip(row, efforts.items(), strict=True):
            for name in in_order(table["solver"]):
                iterates = select(table, problem=problem, solver=name)
                gap = np.maximum(iterates["gap"], BOTTOM / 1e3)  # below the axes, but not −∞
                look = method_style(LOOKS[name]) | {"markevery": 0.2, "markersize": 4.5}
                ax.plot(iterates[effort], gap, **look, label=name)
            ax.set(xlabel=label, xscale="log", yscale="log", ylim=(BOTTOM, 3))
        row[0].set(title=problem, ylabel="(f − f best) / (f start − f best)")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, handlelength=3.5)
    return figure


def claims(table: Table) -> list[Claim]:
    """Check a claim of ours: the exact Hessian saves iterations."""
    checked = []
    for problem in in_order(table["problem"]):
        steps: dict[str, int | None] = {}
        for name in LOOKS:
            iterates = select(table, problem=problem, solver=name)
            close = iterates["iteration"][iterates["gap"] < CLOSE]
            steps[name] = int(close[0]) if len(close) else None
        text = ", ".join(f"{name} {count or '–'}" for name, count in steps.items())
        others = [count for name, count in steps.items() if name != "trust region" and count is not None]
        ours = steps["trust region"]
        checked.append(
            Claim(
                f"{problem}: the trust region takes the fewest iterations",
                f"iterations to a millionth of the initial gap: {text}",
                ours is not None and bool(others) and all(ours < count for count in others),
            )
        )
    return checked


solvers = Study(
    "solvers", "One dictionary update, every solver", SETTING, QUICK, parts, measure, draw, claims, alone=True
)
