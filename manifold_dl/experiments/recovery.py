"""The flagship: how many signals does it take to recover a dictionary, the support being known?

There are d(m − 1) + nS unknowns and nm equations, so n ≥ d(m − 1)/(m − S) is necessary. The methods of the
paper need several times as many signals. The same objective with a ridge that is taken away step by step
(continuation) and an optimizer that knows curvature works from just above the bound on. An exact fit is
recognised without knowing the answer, by an error of zero: where one start fails, another may be tried.

A fit of zero error is all that the signals can tell. Near the bound many draws leave a few atoms undetermined
(`determined_atoms`), so the share of the true atoms that were found is measured beside it.
"""

import numpy as np
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

from manifold_dl.experiments.methods import (
    PAPER,
    draw_signals,
    error_per_signal,
    paper_methods,
    update_with_true_support,
)
from manifold_dl.experiments.study import Claim, Study
from manifold_dl.experiments.tables import means, select
from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.manifolds import Spheres
from manifold_dl.metrics import recovery as share_recovered
from manifold_dl.optimizers import LBFGS
from manifold_dl.plotting import method_style, plot_recovery
from manifold_dl.plotting.style import GREY, INK
from manifold_dl.problem.update_problem import update_problem

EXACT = 1e-12  # of ‖Y − DX‖²/n, where a signal has an energy of S; wrong dictionaries are far above it
TRUST_REGION = "SimCO, trust region"
CEILING = "atoms that the signals determine"


def counting_bound(m, d, sparsity):
    """The number of signals with as many equations as unknowns.

    Examples
    --------
    >>> counting_bound(16, 32, 4)
    40.0
    """
    return d * (m - 1) / (m - sparsity)


def parts(parameters):
    return [
        {"shape": shape, "n": n, "trial": trial}
        for shape, sizes in zip(parameters["shapes"], parameters["signals"], strict=True)
        for n in sizes
        for trial in range(parameters["trials"])
    ]


def measure(parameters, seed, shape, n, trial):
    """One draw of signals and start, and whether each method finds the dictionary."""
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
            "recovered": share_recovered(D, true),
            "starts": starts[method],
        }
        for method, D in ends.items()
    ]


def continued_optimizers(iterations):
    """The optimizers that go through the sequence of ridges, and how far each goes at every one."""
    limits = {"min_gradient_norm": 1e-12, "min_step_size": 0.0, "max_time": np.inf, "verbosity": 0}
    golden, geodesic = GoldenSection(), WolfeSearch()
    # Pymanopt's conjugate gradients make one step less than they are allowed iterations.
    return {
        "regularized SimCO": SteepestDescent(
            line_searcher=golden, max_iterations=iterations["golden section"], **limits
        ),
        "SimCO, CG": ConjugateGradient(line_searcher=geodesic, max_iterations=iterations["CG"] + 1, **limits),
        "SimCO, L-BFGS": LBFGS(max_iterations=iterations["L-BFGS"], **limits),
        TRUST_REGION: TrustRegions(max_iterations=iterations["trust region"], **limits),
    }


def with_continuation(optimizer, Y, support, D, ridges):
    """Minimise for one ridge after the other, each time from the dictionary that the last one led to."""
    for mu in ridges:
        problem = update_problem(Y, support, mu=mu, threads=1)
        D = optimizer.run(problem, initial_point=D).point
    return D


def determined_atoms(D, X):
    """Which atoms Y = DX determines, given the support: those that no small change of D without error moves.

    A change δD is noticed by signal j unless the codes can follow, which they can within the span of the
    atoms in use: Qⱼᵀ δD xⱼ = 0 for a basis Qⱼ of the rest. Atoms keep their norms, dᵢᵀδdᵢ = 0. The solutions
    of these linear equations are the directions in which D is free.

    Examples
    --------
    >>> from manifold_dl.datasets import synthetic
    >>> D, X, _ = synthetic(6, 8, 60, sparsity=2, rng=0)
    >>> bool(determined_atoms(D, X).all())
    True
    >>> X = X.toarray()
    >>> X[0, 1:] = 0  # a single user is not enough
    >>> bool(determined_atoms(D, X)[0])
    False
    """
    (m, d), n = D.shape, X.shape[1]
    X = X.toarray() if hasattr(X, "toarray") else X
    rows = []
    for j in range(n):
        used = np.flatnonzero(X[:, j])
        rest = np.linalg.qr(D[:, used], mode="complete")[0][:, len(used) :].T
        equations = np.zeros((len(rest), d, m))
        equations[:, used] = rest[:, None, :] * X[used, j][:, None]
        rows.append(equations.reshape(len(rest), -1))
    norms = np.zeros((d, d, m))
    norms[np.arange(d), np.arange(d)] = D.T
    triangle = np.linalg.qr(np.vstack([*rows, norms.reshape(d, -1)]), mode="r")
    _, values, directions = np.linalg.svd(triangle)
    values = np.append(values, np.zeros(len(directions) - len(values)))
    free = directions[values < 1e-9 * values[0]].reshape(-1, d, m)
    # A direction is a unit vector, so an atom it moves by less than 1e-6 of it is moved by rounding.
    return np.sqrt(np.sum(free**2, axis=(0, 2))) < 1e-6


def by_shape(table):
    """{(m, d, S): the rows of that shape}"""
    shapes = zip(*(table[key].tolist() for key in ("m", "d", "sparsity")), strict=True)
    return {
        shape: select(table, m=shape[0], d=shape[1], sparsity=shape[2]) for shape in dict.fromkeys(shapes)
    }


def draw(table):
    """Exact fits and atoms found against the number of signals, a column for each shape."""
    import matplotlib.pyplot as plt

    tables = by_shape(table)
    size = (5.2 * len(tables), 7.6)
    figure, axes = plt.subplots(2, len(tables), figsize=size, squeeze=False, sharex="col", sharey="row")
    for column, ((m, d, sparsity), mine) in zip(axes.T, tables.items(), strict=True):
        bound, sizes = counting_bound(m, d, sparsity), np.unique(mine["n"])
        above, below = column
        above.set_xscale("log")
        plot_recovery(mine, ax=above, bound=round(bound, 1))
        above.get_legend().remove()
        above.set(xlabel="", title=f"{m}×{d} dictionaries, S = {sparsity}, support known")
        for method, shares in means(mine, "recovered").items():
            below.plot(sizes, list(shares.values()), **method_style(method))
        ceiling = [np.mean(mine["determined"][mine["n"] == n]) / d for n in sizes]
        below.plot(sizes, ceiling, color=GREY, linewidth=5, alpha=0.35, zorder=1, label=CEILING)
        below.axvline(bound, color=INK, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
        below.set(xlabel="number of signals n", xlim=(0.9 * bound, 1.04 * sizes.max()), ylim=(-0.03, 1.03))
        below.set_xticks(sizes, labels=_labels_with_room(sizes))
        below.minorticks_off()
    for ax in axes[0]:
        ax.set_ylabel("")
    axes[0, 0].set_ylabel(f"share of {len(np.unique(table['trial']))} draws fitted exactly")
    axes[1, 0].set_ylabel("share of the true atoms found")
    curves, names = axes[0, 0].get_legend_handles_labels()
    curves = [curve.lines[0] for curve in curves]  # the bars say nothing in a legend
    ceilings, ceiling_names = axes[1, 0].get_legend_handles_labels()
    figure.legend(
        curves + ceilings, names + ceiling_names, loc="outside lower center", ncols=3, handlelength=3.2
    )
    return figure


def _labels_with_room(sizes, apart=1.1):
    """The numbers as labels, without those too close to the last one on a logarithmic axis."""
    labels, last = [], 0
    for n in sizes.tolist():
        labels.append(str(n) if n > apart * last else "")
        last = n if labels[-1] else last
    return labels


def claims(table):
    """Ours: near the bound a trust region does what the paper's methods cannot."""
    made = []
    for (m, d, sparsity), mine in by_shape(table).items():
        rates, shape = means(mine, "success"), f"{m}×{d}, S = {sparsity}"
        bound = counting_bound(m, d, sparsity)
        again = next(method for method in rates if method.startswith(f"{TRUST_REGION}, up to"))
        for method in (TRUST_REGION, again):
            close, farther = ({n: r for n, r in rates[method].items() if n >= x * bound} for x in (1.0, 1.3))
            made.append(
                Claim(
                    f"{shape}: {method}: exact fits of at least 80 % close to the bound, n = {bound:.4g}, "
                    "and of 95 % from 1.3 times as many signals on",
                    _listed(mine, method),
                    min(close.values()) >= 0.8 and min(farther.values(), default=0) >= 0.95,
                )
            )
        exact = select(mine, success=1)
        missing = exact["determined"] - np.rint(exact["recovered"] * d)
        made.append(
            Claim(
                f"{shape}: all but 5 % of the exact fits find as many true atoms as the signals determine",
                f"{np.sum(missing <= 0)} of {len(missing)} exact fits",
                bool(len(missing) and np.mean(missing <= 0) >= 0.95),
            )
        )
        begins = {method: _works_from(rates[method]) for method in rates}
        ours, theirs = begins[TRUST_REGION], [begins[name] for name in PAPER]
        made.append(
            Claim(
                f"{shape}: from one start, the trust region needs fewer signals than the paper's methods",
                "at least 90 % from n on: " + ", ".join(f"{name} {n or '–'}" for name, n in begins.items()),
                ours is not None and all(n is None or ours < n for n in theirs),
            )
        )
    return made


def _works_from(rates):
    """The n from which on at least nine in ten are recovered; None if there is none."""
    failing = [n for n in rates if rates[n] < 0.9]
    working = [n for n in rates if n > max(failing, default=0)]
    return min(working, default=None)


def _listed(table, method):
    """k of N at the smaller n."""
    mine = select(table, method=method)
    counts = []
    for n in np.unique(mine["n"])[:4]:
        success = mine["success"][mine["n"] == n]
        counts.append(f"{success.sum()} of {len(success)} at n = {n}")
    return ", ".join(counts)


recovery = Study(
    name="recovery",
    title="Exact recovery of a dictionary from few signals",
    full={
        "shapes": [[16, 32, 4], [20, 40, 4]],
        "signals": [[44, 48, 52, 60, 70, 80, 100, 150, 200], [50, 56, 64, 80, 100, 150]],
        "ridges": [1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0.0],
        "iterations": {
            "a rule of the paper": 400,
            "golden section": 200,
            "CG": 200,
            "L-BFGS": 200,
            "trust region": 60,
        },
        "starts": 5,
        "trials": 20,
    },
    quick={
        "shapes": [[8, 12, 2], [10, 16, 2]],
        "signals": [[18, 24, 40], [22, 30, 50]],
        "iterations": {
            "a rule of the paper": 200,
            "golden section": 60,
            "CG": 60,
            "L-BFGS": 60,
            "trust region": 30,
        },
        "starts": 3,
        "trials": 3,
    },
    parts=parts,
    measure=measure,
    draw=draw,
    claims=claims,
)
