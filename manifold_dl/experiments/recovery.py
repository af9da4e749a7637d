"""The number of signals that recover a dictionary exactly when the support is known.

There are d(m − 1) + nS unknowns and nm equations, so n ≥ d(m − 1)/(m − S) is necessary. The methods of the
paper need several times as many signals. The same objective with a ridge that is reduced in stages
(continuation) and an optimizer with curvature information succeeds from just above the bound on. An exact fit
is recognised by an error of zero, without the true dictionary: if one start fails, another can be tried.

Near the bound many draws leave a few atoms undetermined (`identifiability.determined_atoms`) although the fit
is exact, so the fraction of the true atoms that were found is measured as well.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

from manifold_dl import metrics
from manifold_dl.experiments.identifiability import counting_bound, determined_atoms
from manifold_dl.experiments.methods import (
    PAPER,
    draw_signals,
    error_per_signal,
    paper_methods,
    update_with_true_support,
)
from manifold_dl.experiments.study import Claim, Parameters, Part, Study
from manifold_dl.experiments.tables import Row, Table, means, select
from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.manifolds import Spheres
from manifold_dl.optimizers import LBFGS
from manifold_dl.plotting import method_style, plot_recovery
from manifold_dl.plotting.style import GREY, INK
from manifold_dl.problem.update_problem import update_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT = 1e-12  # of ‖Y − DX‖²/n, where a signal has an energy of S; wrong dictionaries are far above it
TRUST_REGION = "SimCO, trust region"
CEILING = "atoms that the signals determine"
ITERATIONS = ("a rule of the paper", "golden section", "CG", "L-BFGS", "trust region")

SETTING = {
    "shapes": [[16, 32, 4], [20, 40, 4]],
    "signals": [[44, 48, 52, 60, 70, 80, 100, 150, 200], [50, 56, 64, 80, 100, 150]],
    "ridges": [1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0.0],
    "iterations": dict(zip(ITERATIONS, (400, 200, 200, 200, 60), strict=True)),
    "starts": 5,
    "trials": 20,
}
QUICK = {
    "shapes": [[8, 12, 2], [10, 16, 2]],
    "signals": [[18, 24, 40], [22, 30, 50]],
    "iterations": dict(zip(ITERATIONS, (200, 60, 60, 60, 30), strict=True)),
    "starts": 3,
    "trials": 3,
}


def parts(parameters: Parameters) -> list[Part]:
    """Return every trial of every shape and number of signals."""
    return [
        {"shape": shape, "n": n, "trial": trial}
        for shape, sizes in zip(parameters["shapes"], parameters["signals"], strict=True)
        for n in sizes
        for trial in range(parameters["trials"])
    ]


def measure(parameters: Parameters, seed: int, shape: list[int], n: int, trial: int) -> list[Row]:
    """Draw signals and a start, and check which methods find the dictionary."""
    m, d, sparsity = shape
    true, X, Y, start = draw_signals(m, d, n, sparsity, seed, m, n, trial)
    support = X.astype(bool)
    iterations, ridges = parameters["iterations"], parameters["ridges"]
    ends = {
        method: update_with_true_support(rule, Y, support, start, iterations["a rule of the paper"])
        for method, rule in paper_methods(mu=0.0).items()
        if method != "regularized SimCO"
    }
    optimizers = continued_optimizers(iterations)
    for method, optimizer in optimizers.items():
        ends[method] = with_continuation(optimizer, Y, support, start, ridges)
    errors = {method: error_per_signal(Y, support, D) for method, D in ends.items()}
    starts = dict.fromkeys(ends, 1)
    again = f"{TRUST_REGION}, up to {parameters['starts']} starts"
    ends[again], errors[again], starts[again] = ends[TRUST_REGION], errors[TRUST_REGION], 1
    rng = np.random.default_rng((seed, m, n, trial, 1))
    while errors[again] >= EXACT and starts[again] < parameters["starts"]:
        D = Spheres(m, d).random_point(rng)
        D = with_continuation(optimizers[TRUST_REGION], Y, support, D, ridges)
        starts[again] += 1
        if (error := error_per_signal(Y, support, D)) < errors[again]:
            ends[again], errors[again] = D, error
    determined = int(determined_atoms(true, X).sum())
    return [
        {
            "m": m,
            "d": d,
            "sparsity": sparsity,
            "n": n,
            "trial": trial,
            "determined": determined,
            "method": method,
            "success": int(errors[method] < EXACT),
            "error": errors[method],
            "recovered": metrics.recovery(D, true),
            "starts": starts[method],
        }
        for method, D in ends.items()
    ]


def continued_optimizers(iterations: dict[str, int]) -> dict[str, Any]:
    """Return the optimizers that are run for every ridge, by name.

    Parameters
    ----------
    iterations : dict of str → int
        The largest number of steps for one ridge.

    Returns
    -------
    dict of str → pymanopt Optimizer
    """
    limits: dict[str, Any] = {
        "min_gradient_norm": 1e-12,
        "min_step_size": 0.0,
        "max_time": np.inf,
        "verbosity": 0,
    }
    golden, wolfe = GoldenSection(), WolfeSearch()
    # Pymanopt's conjugate gradients make one step less than they are allowed iterations.
    return {
        "regularized SimCO": SteepestDescent(
            line_searcher=golden, max_iterations=iterations["golden section"], **limits
        ),
        "SimCO, CG": ConjugateGradient(line_searcher=wolfe, max_iterations=iterations["CG"] + 1, **limits),
        "SimCO, L-BFGS": LBFGS(max_iterations=iterations["L-BFGS"], **limits),
        TRUST_REGION: TrustRegions(max_iterations=iterations["trust region"], **limits),
    }


def with_continuation(
    optimizer: Any, Y: np.ndarray, support: Any, D: np.ndarray, ridges: list[float]
) -> np.ndarray:
    """Minimise for one ridge after the other, each time from the dictionary of the previous one.

    Parameters
    ----------
    optimizer : pymanopt Optimizer
        Run once for every ridge.
    Y : array (m×n)
        The signals.
    support : array or sparse array
        The support Ω.
    D : array (m×d)
        The initial dictionary.
    ridges : list of float
        Values of μ, usually decreasing to 0.

    Returns
    -------
    array (m×d)
    """
    for mu in ridges:
        problem = update_problem(Y, support, mu=mu, threads=1)
        D = optimizer.run(problem, initial_point=D).point
    return D


def by_shape(table: Table) -> dict[tuple[int, int, int], Table]:
    """Return the rows of each shape (m, d, S)."""
    shapes = zip(*(table[key].tolist() for key in ("m", "d", "sparsity")), strict=True)
    return {
        shape: select(table, m=shape[0], d=shape[1], sparsity=shape[2]) for shape in dict.fromkeys(shapes)
    }


def draw(table: Table) -> "Figure":
    """Draw exact fits and atoms found against the number of signals, a column for each shape."""
    import matplotlib.pyplot as plt

    tables = by_shape(table)
    size = (5.2 * len(tables), 7.6)
    figure, axes = plt.subplots(2, len(tables), figsize=size, squeeze=False, sharex="col", sharey="row")
    for column, ((m, d, sparsity), rows) in zip(axes.T, tables.items(), strict=True):
        bound, sizes = counting_bound(m, d, sparsity), np.unique(rows["n"])
        above, below = column
        above.set_xscale("log")
        plot_recovery(rows, ax=above, bound=round(bound, 1))
        above.get_legend().remove()
        above.set(xlabel="", title=f"{m}×{d} dictionaries, S = {sparsity}, support known")
        for method, fractions in means(rows, "recovered").items():
            below.plot(sizes, list(fractions.values()), **method_style(method))
        ceiling = [np.mean(rows["determined"][rows["n"] == n]) / d for n in sizes]
        below.plot(sizes, ceiling, color=GREY, linewidth=5, alpha=0.35, zorder=1, label=CEILING)
        below.axvline(bound, color=INK, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
        below.set(xlabel="number of signals n", xlim=(0.9 * bound, 1.04 * sizes.max()), ylim=(-0.03, 1.03))
        below.set_xticks(sizes, labels=_separated_labels(sizes))
        below.minorticks_off()
    for ax in axes[0]:
        ax.set_ylabel("")
    axes[0, 0].set_ylabel(f"fraction of {len(np.unique(table['trial']))} draws fitted exactly")
    axes[1, 0].set_ylabel("fraction of the true atoms found")
    curves, names = axes[0, 0].get_legend_handles_labels()
    curves = [curve.lines[0] for curve in curves]  # without error bars in the legend
    ceilings, ceiling_names = axes[1, 0].get_legend_handles_labels()
    figure.legend(
        curves + ceilings, names + ceiling_names, loc="outside lower center", ncols=3, handlelength=3.2
    )
    return figure


def _separated_labels(sizes: np.ndarray, ratio: float = 1.1) -> list[str]:
    """Return the numbers as labels, without those too close to the previous one on a logarithmic axis."""
    labels, last = [], 0
    for n in sizes.tolist():
        labels.append(str(n) if n > ratio * last else "")
        last = n if labels[-1] else last
    return labels


def claims(table: Table) -> list[Claim]:
    """Check claims of ours: near the bound a trust region succeeds where the paper's methods fail."""
    return [claim for shape, rows in by_shape(table).items() for claim in _claims_of_shape(*shape, rows)]


def _claims_of_shape(m: int, d: int, sparsity: int, rows: Table) -> list[Claim]:
    rates, shape = means(rows, "success"), f"{m}×{d}, S = {sparsity}"
    bound = counting_bound(m, d, sparsity)
    checked = []
    for method in (name for name in rates if name == TRUST_REGION or name.startswith(f"{TRUST_REGION}, up")):
        close, farther = ({n: r for n, r in rates[method].items() if n >= x * bound} for x in (1.0, 1.3))
        checked.append(
            Claim(
                f"{shape}: {method}: exact fits of at least 80 % close to the bound, n = {bound:.4g}, "
                "and of 95 % from 1.3 times as many signals on",
                _success_counts(rows, method),
                min(close.values()) >= 0.8 and min(farther.values(), default=0) >= 0.95,
            )
        )
    exact = select(rows, success=1)
    missing = exact["determined"] - np.rint(exact["recovered"] * d)
    sufficient = {method: _sufficient_n(rates[method]) for method in rates}
    ours, paper = sufficient[TRUST_REGION], [sufficient[name] for name in PAPER]
    return [
        *checked,
        Claim(
            f"{shape}: all but 5 % of the exact fits find as many true atoms as the signals determine",
            f"{np.sum(missing <= 0)} of {len(missing)} exact fits",
            bool(len(missing) and np.mean(missing <= 0) >= 0.95),
        ),
        Claim(
            f"{shape}: from one start, the trust region needs fewer signals than the paper's methods",
            "at least 90 % from n on: " + ", ".join(f"{name} {n or '–'}" for name, n in sufficient.items()),
            ours is not None and all(n is None or ours < n for n in paper),
        ),
    ]


def _sufficient_n(rates: dict[int, float]) -> int | None:
    """Return the n from which on at least nine in ten are recovered; None if there is none."""
    failing = [n for n in rates if rates[n] < 0.9]
    working = [n for n in rates if n > max(failing, default=0)]
    return min(working, default=None)


def _success_counts(table: Table, method: str) -> str:
    """Return "k of N at n = ..." for the smallest n."""
    rows = select(table, method=method)
    counts = []
    for n in np.unique(rows["n"])[:4]:
        success = rows["success"][rows["n"] == n]
        counts.append(f"{success.sum()} of {len(success)} at n = {n}")
    return ", ".join(counts)


recovery = Study(
    "recovery",
    "Exact recovery of a dictionary from few signals",
    SETTING,
    QUICK,
    parts,
    measure,
    draw,
    claims,
)
