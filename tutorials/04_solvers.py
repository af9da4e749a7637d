"""
Swapping solvers
================

The dictionary update is a Pymanopt problem, so every Pymanopt optimizer solves it, and one word changes
the solver. Which one is best? We run five of them from the same start to the same minimum, and compare
them three times: against iterations, against evaluations, and against seconds. Three pictures,
three rankings. You will see why, and how to read such pictures in papers.

You need NumPy, and :ref:`sphx_glr_tutorials_03_dictionary_update.py` for the problem that is solved.
"""

# %%
# One problem, five solvers
# -------------------------
#
# The problem has 64 atoms of length 32, and 4,000 noisy signals of 5 atoms each; the atoms resemble
# each other, which makes it neither trivial nor nasty. One thread, so that seconds mean something.

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

import manifold_dl as mdl

plt.style.use(mdl.plotting.STYLE)

m, d, n, S = 32, 64, 4000, 5
spheres = mdl.manifolds.Spheres(m, d)
D_random, X_true, _ = mdl.datasets.synthetic(m, d, n, sparsity=S, rng=0)
D_true = spheres.closest(D_random + 2 / np.sqrt(m))  # the same push for every atom
noise = np.random.default_rng(1).standard_normal((m, n))
Y = D_true @ X_true + 0.03 * noise
support = X_true.astype(bool)

away = spheres.random_tangent_vector(D_true, rng=2)
D_start = spheres.exp(D_true, 0.6 * np.sqrt(d) * away)  # atoms are off by 0.6 radians


def fresh_problem():
    return mdl.update_problem(Y, support, mu=1e-3, threads=1)


scale = fresh_problem().scale

# %%
# The five differ in what they use.
#
# * **Steepest descent** uses the gradient. It moves downhill and looks for the lowest point of its path,
#   by golden section (as in the SimCO paper) or by a search that uses derivatives
#   (:ref:`sphx_glr_tutorials_02_line_search.py`).
# * **Conjugate gradients** also use the last direction, and choose the new one so that it does not undo it.
# * **L-BFGS** stores the last ten steps, and how the gradient changed along them. That is an estimate of
#   the curvature.
# * A **trust region** uses the exact curvature. It minimises a quadratic model made with the exact Hessian,
#   inside a ball in which it trusts the model; for that it evaluates several products of the Hessian with a
#   vector.
#
# (The last three also use a *preconditioner* that the problem offers. The exercise asks what it is good
# for.)


def five_solvers(scale, max_iterations=300):
    settings = {"max_iterations": max_iterations, "min_gradient_norm": 1e-7 * scale}
    settings |= {"min_step_size": 0, "verbosity": 0}
    return {
        "SD, golden section": SteepestDescent(mdl.GoldenSection(), **settings),
        "SD, derivative search": SteepestDescent(mdl.WolfeSearch(), **settings),
        "conjugate gradients": ConjugateGradient(line_searcher=mdl.WolfeSearch(), **settings),
        "L-BFGS": mdl.LBFGS(**settings),
        "trust region": TrustRegions(**settings),
    }


solvers = five_solvers(scale)
looks = {name: mdl.plotting.method_style(name.removeprefix("SD, ")) for name in solvers}
looks["SD, derivative search"] = mdl.plotting.method_style("steepest descent")

# %%
# Counting evaluations
# --------------------
#
# What a solver reports about itself is not to be relied on: Pymanopt's ``cost_evaluations`` is its
# number of iterations. So the problem counts for itself. ``problem.counts`` holds what was really
# computed, ``problem.record`` has an entry for every point that the solver accepted. We want the counts
# at each of those points, so we give the problem a record that stores them.


class CountingRecord(list):
    """A record that notes, with every accepted point, what has been computed until then."""

    def __init__(self, counts):
        super().__init__()
        self.counts, self.evaluations, self.seconds = counts, [], []

    def append(self, iterate):
        super().append(iterate)
        self.evaluations.append(self.counts.value + self.counts.hessian + self.counts.probe)
        self.seconds.append(process_time())


def solve(solver, problem, start):
    problem.record = CountingRecord(problem.counts)
    begin = process_time()
    solver.run(problem, initial_point=start)
    problem.record.seconds = np.array(problem.record.seconds) - begin
    return problem


# %%
# An *evaluation* is one pass over all signals, of one of three kinds: a value of f (with the gradient, from
# the same pass); a Hessian product; a probe of a line search. The first time round Numba has to load its
# compiled kernels, so we warm up before we look at the clock.

for solver in (SteepestDescent(mdl.WolfeSearch(), max_iterations=1, verbosity=0), solvers["trust region"]):
    solve(solver, fresh_problem(), D_start)
runs = {name: solve(solver, fresh_problem(), D_start) for name, solver in solvers.items()}

print(f"{'':22s} iterations  values  probes  Hessian products  final f / ‖Y‖²")
for name, run in runs.items():
    counts, last = run.counts, run.record[-1]
    print(
        f"{name:22s} {len(run.record) - 1:10d} {counts.value:7d} {counts.probe:7d} {counts.hessian:17d}"
        f"  {last.value / scale:.8f}"
    )

# %%
# All five found the same minimum, to eight digits. Here is the race, three times.

minimum = min(iterate.value for run in runs.values() for iterate in run.record)


def excess(run):
    """How far above the minimum; what is lost in rounding is left out."""
    values = (np.array([iterate.value for iterate in run.record]) - minimum) / scale
    return np.where(values > 1e-13, values, np.nan)


figure, axes = plt.subplots(1, 3, figsize=(11, 4.4), sharey=True)
for name, run in runs.items():
    courses = [
        np.arange(len(run.record)),
        np.array(run.record.evaluations),
        1e3 * run.record.seconds,
    ]
    for ax, x in zip(axes, courses, strict=True):
        ax.semilogy(x, excess(run), markevery=0.12, label=name, **looks[name])
for ax, x in zip(axes, ("iterations", "evaluations", "seconds"), strict=True):
    ax.set(xlabel=x, title=f"… against {x}", ylim=(1e-13, 1))
axes[2].set_xlabel("milliseconds of the processor")
axes[1].set_xlim(-5, 250)
axes[1].text(245, 1.5e-3, "golden section goes on →", ha="right", color=looks["SD, golden section"]["color"])
axes[0].set_ylabel("(f − minimum) / ‖Y‖²")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)

# %%
# **Against iterations** the trust region wins by a factor, and the two steepest descents are one line:
# both find the lowest point of the same path, so they take the same steps. A straight line is linear
# convergence, the same factor at every step. The curve that bends down is better than linear: near the
# minimum the quadratic model is right.
#
# **Against evaluations** the lead is gone. An iteration of the trust region hides several Hessian
# products, one of L-BFGS about two evaluations: a value and a probe. And the two steepest descents,
# which looked alike, are a factor of six apart: here one sees what golden section costs, about 17
# probes per step against two.
#
# **Against seconds** golden section comes back, at about twice the time of the derivative search and not
# six times. The others are close, and on your machine their order may be another one. Not all evaluations
# take the same time.

# %%
# What one evaluation costs
# -------------------------
#
# Let us time one of each. A probe of φ does not use the signals themselves, only inner products that were
# computed when the search began (that is the cost of *setting up* a search).


def seconds_of(task, times=20):
    seconds = []
    for k in range(times):
        begin = process_time()
        task(k)
        seconds.append(process_time() - begin)
    return min(seconds)


problem = fresh_problem()
points = [spheres.random_point(rng=k) for k in range(21)]
problem.euclidean_hessian(points[-1], away)  # once before the clock runs
phi = problem.restrict(D_start, away)
phi(0.05)  # the first probe sets the search up


def set_up_and_probe(k):
    problem.restrict(D_start, (1 + k) * away)(0.1)


unit_costs = {
    "values with gradients": seconds_of(
        lambda k: (problem.cost(points[k]), problem.euclidean_gradient(points[k]))
    ),
    "Hessian products": seconds_of(lambda k: problem.euclidean_hessian(points[19], away)),
    "setting up searches": seconds_of(set_up_and_probe),
    "probes": seconds_of(lambda k: phi(0.1 + k / 100)),
    "probes with slope": seconds_of(lambda k: phi.derivative(0.4 + k / 100)),
}
unit_costs["setting up searches"] -= unit_costs["probes"]
unit = unit_costs["values with gradients"]
for item, seconds in unit_costs.items():
    print(f"{item:22s} {1e3 * seconds:6.2f} ms   {seconds / unit:4.2f} of a value with its gradient")

# %%
# With these costs and the counts we can predict the time of every solver, and compare with what it really
# took.

figure, ax = plt.subplots(figsize=(8.4, 3.8))
colours = ("#0072B2", "#D55E00", "#CC79A7", "#E69F00", "#F4C95D", "#D5D5D5")
for place, (name, run) in enumerate(runs.items()):
    counts = run.counts
    searches = 0 if name == "trust region" else len(run.record) - 1
    probes = (counts.probe, 0) if "golden" in name else (0, counts.probe)
    numbers = (counts.value, counts.hessian, searches, *probes)
    costs = [1e3 * seconds * number for seconds, number in zip(unit_costs.values(), numbers, strict=True)]
    costs.append(max(1e3 * run.record.seconds[-1] - sum(costs), 0))
    lefts = np.cumsum([0, *costs[:-1]])
    for cost, left, colour, item in zip(costs, lefts, colours, [*unit_costs, "all the rest"], strict=True):
        ax.barh(place, cost, left=left, color=colour, height=0.6, label=item if place == 0 else None)
ax.set(
    yticks=range(len(runs)),
    yticklabels=runs,
    xlabel="milliseconds of the processor",
    title="Where the time goes",
)
ax.invert_yaxis()
ax.grid(axis="y", visible=False)
ax.legend()

# %%
# Golden section spends its time on probes, the trust region on Hessian products, and what is left is
# Python: the solver's own arithmetic and the moves from point to point. The smaller the problem, the
# larger that part. So a count of evaluations says more about a method than seconds do, but only if it
# says what was counted; and seconds say more about a program.

# %%
# How exact must it be?
# ---------------------
#
# There is a fourth question, and it often decides. In a learning loop the support changes after every
# update, so eight digits are not needed. What does it take to come within 10 %, 1 % and a millionth of
# the way down?

fractions = (0.1, 0.01, 1e-6)
print(f"evaluations until ... is left {'10 %':>10s} {'1 %':>10s} {'1e-6':>10s}")
needed = {}
for name, run in runs.items():
    values = np.array([iterate.value for iterate in run.record])
    left = (values - minimum) / (values[0] - minimum)
    needed[name] = [run.record.evaluations[np.flatnonzero(left <= fraction)[0]] for fraction in fractions]
    print(f"{name:29s} {needed[name][0]:10d} {needed[name][1]:10d} {needed[name][2]:10d}")

# %%
# For a first guess all but golden section are equal. That is why :class:`~manifold_dl.SimCO` takes a
# few steps of conjugate gradients between two stages of sparse coding, and why recovering a dictionary
# exactly (:ref:`sphx_glr_tutorials_09_counting_bound.py`) is a matter for the trust region.

# %%
# Exercise
# --------
#
# In real data some atoms are used much, others hardly. Give atom i the weight :math:`10^{-i/d}`, so that
# the last is ten times weaker than the first. Which solvers become slower? Then pass ``precondition=False``
# to :func:`~manifold_dl.update_problem` and try again.
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# The curvature of f along an atom is about twice the energy of its codes, :math:`2\|X_i\|^2`, which now
# differs by a factor of nearly a hundred. A step that suits the strong atoms is a hundredth of what the
# weak ones need, and steepest descent does not reach the minimum. (The noise is the same as before.) The
# problem offers a *preconditioner* that divides the gradient of every atom by its energy. Conjugate
# gradients, L-BFGS and the trust region use it, and are hardly slower. Without it they are slower, too.

weights = 10.0 ** (-np.arange(d) / d)
Y_uneven = (D_true * weights) @ X_true + 0.03 * noise
steps = {}
for precondition in (True, False):
    print("with" if precondition else "without", "the preconditioner:")
    for name in ("SD, derivative search", "conjugate gradients", "trust region"):
        uneven = mdl.update_problem(Y_uneven, support, mu=1e-3, threads=1, precondition=precondition)
        solve(five_solvers(uneven.scale, max_iterations=150)[name], uneven, D_start)
        steps[name, precondition] = len(uneven.record) - 1
        evaluations = uneven.record.evaluations[-1]
        print(f"   {name:22s} {steps[name, precondition]:4d} steps, {evaluations:4d} evaluations")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
#
# * One word swaps the solver. Here all of them found the same minimum.
# * Iterations favour the methods whose iterations are long. Count evaluations, say of what, and measure
#   what they cost.
# * With gradients alone it takes many steps; with estimated or exact curvature few.
# * A preconditioner made of how much each atom is used is worth more than the choice among the
#   better solvers.

iterations = {name: len(run.record) - 1 for name, run in runs.items()}
evaluations = {name: run.record.evaluations[-1] for name, run in runs.items()}
golden, derivative, gradients, bfgs, region = solvers
assert all(np.isclose(run.record[-1].value, minimum, rtol=1e-8) for run in runs.values())  # the same minimum
assert iterations[region] < iterations[gradients] < iterations[derivative]  # curvature saves steps
assert abs(iterations[golden] - iterations[derivative]) < 0.2 * iterations[golden]  # the same steps,
assert evaluations[golden] > 3 * evaluations[derivative]  # ... fewer evaluations with derivatives
lead = iterations[bfgs] / iterations[region]
assert evaluations[bfgs] / evaluations[region] < 0.75 * lead  # the trust region's lead is in what one counts
assert steps[derivative, True] > 140  # steepest descent uses no preconditioner, and is too slow
assert 2 * steps[gradients, True] < steps[gradients, False]  # with it, others are not

plt.show()
