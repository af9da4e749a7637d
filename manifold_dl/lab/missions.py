"""Six missions, each with a check: what the lessons of the page ask for.

A check reads the runs of the page, the last one first of all, and returns a sentence once its mission is
done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from manifold_dl import KSVD, metrics
from manifold_dl.lab.job import make_problem
from manifold_dl.lab.numbers import measure
from manifold_dl.lab.own_code import Typed
from manifold_dl.lab.run import Run
from manifold_dl.lab.settings import NONE, Settings
from manifold_dl.problem import update_problem

Check = Callable[[Sequence[Run], Typed | None], str | None]


@dataclass(frozen=True)
class Mission:
    """Something to find out with the page.

    Attributes
    ----------
    key : str
        A short name.
    title, task, hint : str
        For the page.
    settings : Settings
        Where it begins.
    check : callable
        (runs, what was typed) → a sentence, or None while it is not done.
    """

    key: str
    title: str
    task: str
    hint: str
    settings: Settings
    check: Check


def _fast(runs: Sequence[Run], typed: Typed | None) -> str | None:
    job = runs[-1].job
    s = job.settings
    if (
        s.data != "synthetic"
        or s.m < 16
        or s.d < 32
        or s.sparsity < 4
        or s.n < 300
        or s.noise
        or job.is_lasso
    ):
        return None
    hits = [it.evaluations for it in runs[-1].iterates if it.value <= 1e-6 * job.energy]
    if not hits or hits[0] >= 60:
        return None
    return f"{s.optimizer} reached 10⁻⁶ ‖Y‖² in {hits[0]} evaluations."


def _singular(runs: Sequence[Run], typed: Typed | None) -> str | None:
    run = runs[-1]
    job = run.job
    mus = [mu for _, mu in job.penalties]
    if job.is_lasso or not job.moves_all or not run.state.is_over or len(mus) < 3 or mus[-1] != 0:
        return None
    last = {iterate.stage: iterate for iterate in run.iterates}
    before = next((k for k, mu in enumerate(mus) if mu == 0 and any(mus[k + 1 :])), None)
    if before is None or len(last) < len(mus) * job.settings.sweeps:
        return None
    stuck, end = last[(before + 1) * job.settings.sweeps - 1], last[max(last)]
    problem = make_problem(job, run.stages[stuck.stage], threads=1)
    found = metrics.is_singular(problem, stuck.point)
    if not found or end.value > 0.01 * stuck.value:
        return None
    where = f"κ = {found.condition_number:.0f}, f = {stuck.value:.3g}"
    return f"Stuck at {where}; the ridge led on to f = {end.value:.1g}."


def _ksvd(runs: Sequence[Run], typed: Typed | None) -> str | None:
    run = runs[-1]
    job = run.job
    mus = {mu for _, mu in job.penalties}
    if job.is_lasso or job.moves_all or mus != {0.0} or run.state.value != "finished" or job.regularizers:
        return None
    if any(stage.atoms is None or len(stage.atoms) != 1 for stage in run.stages.values()):
        return None
    D, Y = job.start, job.data.signals
    X = update_problem(Y, job.support).codes(D)
    rule = KSVD()
    for _ in range(job.settings.sweeps * len(job.penalties)):
        D, X = rule(Y, D, X)
    apart = float(np.abs(np.abs(np.sum(D * run.dictionary, axis=0)) - 1).max())
    if apart > 1e-6:
        return None
    return f"K-SVD and your configuration of SimCO have the same {D.shape[1]} atoms, to {apart:.0e}."


def _bad_set(runs: Sequence[Run], typed: Typed | None) -> str | None:
    run = runs[-1]
    job = run.job
    if job.is_lasso or job.start.shape != (3, 1) or not run.state.is_over or len(run.iterates) < 3:
        return None
    best = np.linalg.svd(job.data.signals, full_matrices=False)[0][:, 0]
    begin, end = (_degrees(best, point) for point in (job.start, run.dictionary))
    if begin < 89.999 or end < 80:
        return None
    return f"You began {90 - begin:.0e}° from B, and descent stayed {end:.1f}° away from the best atom."


def _coherence(runs: Sequence[Run], typed: Typed | None) -> str | None:
    job = runs[-1].job
    if not job.regularizers or not runs[-1].iterates:
        return None
    same = [
        run for run in runs[:-1] if run.iterates and _same_data(run, runs[-1]) and not run.job.regularizers
    ]
    if not same:
        return None
    before, after = measure(same[-1]), measure(runs[-1])
    if after.coherence > before.coherence / 2 or max(before.error, after.error) >= 0.01:
        return None
    return f"Coherence {before.coherence:.2f} → {after.coherence:.2f} at an error of {after.error:.2%}."


def _gradient(runs: Sequence[Run], typed: Typed | None) -> str | None:
    if typed is None or not typed.is_broken or not typed.slope or typed.slope > 1.5:
        return None
    return f"The check found it: slope {typed.slope:.2f} where 2 was expected."


def _degrees(axis: np.ndarray, point: np.ndarray) -> float:
    """The angle to the nearer of ±axis, in degrees; accurate near 0 and near 90."""
    along = axis @ point[:, 0]
    across = np.linalg.norm(point[:, 0] - along * axis)
    return float(np.degrees(np.arctan2(across, abs(along))))


def _same_data(one: Run, other: Run) -> bool:
    """Whether they learn as many atoms from the same signals, by the same problem."""
    names = ("d", "sparsity", "problem")
    same = all(getattr(one.job.settings, name) == getattr(other.job.settings, name) for name in names)
    return same and np.array_equal(one.job.data.signals, other.job.data.signals)


_SLOW = Settings(optimizer="SteepestDescent", line_searcher="GoldenSection", iterations=300)

MISSIONS = (
    Mission(
        "fast",
        "Reach 10⁻⁶ in under 60 evaluations",
        "Steepest descent with golden section needs hundreds of evaluations until f is 10⁻⁶ ‖Y‖². "
        "Find an optimizer and a line searcher that need fewer than 60.",
        "Switch the axis to evaluations. A probe is an evaluation: WolfeSearch, which uses slopes, needs "
        "two to five where GoldenSection needs twenty or more. ConjugateGradient and LBFGS use earlier "
        "steps, and TrustRegions uses curvature.",
        _SLOW,
        _fast,
    ),
    Mission(
        "singular",
        "Get stuck at a singular point, and out of it with a ridge",
        "With few signals and μ = 0 descent can end where the atoms of a support are nearly dependent: κ is "
        "large, and the gradient is not small. Run once and look at κ; then find ridges μ, in turn, such "
        "that a run gets stuck there and goes on to a much smaller f.",
        "As schedule of μ choose “several, in turn”, and type the ridges 0, 0.1, 0.01, 0: the first of them "
        "ends at the singular point, and the last one compares f without a ridge.",
        replace(_SLOW, n=78, seed=1, iterations=150, line_searcher="WolfeSearch"),
        _singular,
    ),
    Mission(
        "ksvd",
        "Make K-SVD out of SimCO",
        "K-SVD is SimCO with one atom at a time. Choose schedule and optimizer such that the dictionary "
        "after a sweep is that of K-SVD.",
        "The schedule OneAtATime. For one atom the minimum has a closed form, which the optimizer "
        "LeadingSingularVector computes; it can be chosen once the schedule is.",
        Settings(m=8, d=12, n=200, sparsity=2, optimizer="ConjugateGradient", line_searcher="WolfeSearch"),
        _ksvd,
    ),
    Mission(
        "bad set",
        "Find a start in the bad set of Theorem 1",
        "With one atom, descent finds the best one, u₁, from every start outside of the great circle B that "
        "is orthogonal to it. Run once to see u₁, then type a start in B, and stay there.",
        "The numbers of the atom stand below the sphere. (a, b, c) is orthogonal to (b, −a, 0): as start "
        "choose “typed”, and type b, −a and 0, separated by spaces, with all ten digits. From a start that "
        "is 10⁻⁶ away from B, descent escapes.",
        Settings(
            m=3, d=1, n=10, sparsity=1, noise=100.0, seed=27, line_searcher="WolfeSearch", iterations=30
        ),
        _bad_set,
    ),
    Mission(
        "coherence",
        "Halve the coherence at less than 1 % error",
        "With few signals many dictionaries fit. Run once without a regularizer, then find one, and a "
        "weight, with half the coherence and an error ‖Y − DX‖/‖Y‖ below 1 %.",
        "The regularizer Coherence, with a weight between 0.003 and 0.03: less does too little, and more "
        "costs too much error.",
        Settings(n=30, ridge="in turn", mu="0.1, 0.01, 0", optimizer="LBFGS", line_searcher="WolfeSearch"),
        _coherence,
    ),
    Mission(
        "gradient",
        "Break a gradient, and let the check find it",
        "In the box “Your own regularizer”, add a function gradient(D) that is almost right. The Taylor "
        "remainder then falls with slope 1 instead of 2.",
        "Let R(D) return np.sum(D**4). Its gradient is 4 * D**3: add def gradient(D): return 3.9 * D**3.",
        Settings(regularizer=NONE),
        _gradient,
    ),
)
