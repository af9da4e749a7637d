"""
The dictionary update as a manifold problem
===========================================

Signals that are mixtures of a few *atoms* out of a *dictionary* are everywhere: patches of pictures,
pieces of music, recordings of neurons. Dictionary learning finds the atoms from the signals alone. It
alternates two stages: *sparse coding* decides which atoms each signal uses, and the *dictionary update*
moves the atoms. This tutorial is about the second stage, which is a beautiful problem in its own right: the
atoms are points on a sphere, and everything else follows from them.

You need NumPy and some linear algebra; no manifold is taken for granted. By the end you will have solved a
dictionary update with two optimizers, looked inside a line search, and recovered a hidden dictionary to the
last digit from hardly more signals than counting allows.

The script takes a few seconds. To keep its pictures, name a folder::

    python tutorials/01_dictionary_update.py pictures
"""

# %%
# What we need: Pymanopt brings the optimizers, this package the problem they solve.

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from pymanopt.optimizers import SteepestDescent, TrustRegions

import manifold_dl as mdl
from manifold_dl.line_search import trace

BLUE, ORANGE, GREY, INK = "#2166ac", "#d6604d", "#9aa5b1", "#1f2933"
plt.rcParams.update({"figure.dpi": 110, "axes.spines.top": False, "axes.spines.right": False})

# %%
# Signals and their support
# -------------------------
#
# The signals are the columns of Y (m×n), the atoms the unit columns of D (m×d), and Y = DX with codes X (d×n)
# that are mostly zero. We draw a dictionary of 32 atoms in 16 dimensions and 200 signals with S = 4 atoms
# each, at random places and with random weights: the synthetic signals of the SimCO paper.

m, d, n, S = 16, 32, 200, 4
D_true, X_true, Y = mdl.datasets.synthetic(m, d, n, sparsity=S, rng=0)

# %%
# The *support* is where X is not zero. In this tutorial it is known and stays as it is: a perfect sparse
# coder has told us which atoms each signal uses, though not what the atoms look like and how much of each
# there is.

support = X_true.astype(bool)

shown, gap = 40, 6
figure, ax = plt.subplots(figsize=(10, 3.4), layout="constrained")
matrices = [
    (Y[:, :shown], "RdBu", f"Y: {n} signals of length {m}", f"known (the first {shown})"),
    (D_true, "RdBu", f"D: {d} atoms, unit vectors", "what we look for"),
    (support.toarray()[:, :shown], "Greys", f"X: {S} atoms a signal", "the places known, the numbers not"),
]
left = 0
for (matrix, colours, title, role), sign in zip(matrices, ["=", "×", ""], strict=True):
    height, width = matrix.shape
    right, limit = left + width, np.abs(matrix).max()
    low = -limit if colours == "RdBu" else 0
    ax.imshow(matrix, cmap=colours, vmin=low, vmax=limit, extent=(left, right, -height / 2, height / 2))
    edge = plt.Rectangle((left, -height / 2), width, height, fill=False, color=GREY, lw=0.8)
    ax.add_patch(edge)
    middle = left + width / 2
    ax.text(middle, height / 2 + 1, title, ha="center", va="bottom", fontsize=11, color=INK)
    ax.text(middle, -height / 2 - 1, role, ha="center", va="top", fontsize=9, color="#66717d")
    ax.text(right + gap / 2, 0, sign, ha="center", va="center", fontsize=24, color=INK)
    left = right + gap
ax.set(xlim=(-1, left - gap + 1), ylim=(-20, 20))
ax.set_axis_off()

# %%
# The update as a Pymanopt problem
# --------------------------------
#
# We are free to choose D and, on the support, X. For any D the best codes are n small least-squares problems,
# so X need not be a variable at all:
#
# .. math::
#
#    f(D) = \sum_{j=1}^{n} \; \min_x \; \|y_j - D_{\Omega_j} x\|^2 + \mu \|x\|^2 ,
#
# where :math:`D_{\Omega_j}` holds the atoms that signal j uses, and the *ridge* μ ≥ 0 keeps the codes from
# growing where those atoms are nearly dependent. Removing the variables that have a closed form is called
# *variable projection*. What is left lives on a product of d unit spheres in :math:`\mathbb{R}^m`, one for
# each atom: a manifold. ``update_problem`` builds a Pymanopt problem from it, with the gradient and the
# exact Hessian.

mu = 0.01
problem = mdl.update_problem(Y, support, mu=mu)
D_start = problem.manifold.random_point(rng=1)

dimension = problem.manifold.dim
print(f"{problem.manifold}: {dimension} dimensions instead of {dimension + support.nnz}")
print(f"f(start) = {problem.cost(D_start):.2f},  f(truth) = {problem.cost(D_true):.2f}")

# %%
# The true dictionary does not have f = 0, because the ridge charges for its codes. We shall come back to
# that.
#
# A derivative is best believed when it has been checked. The Hessian product says how the gradient changes
# when the atoms move along E, so it has to agree with a difference of two gradients, codes and all:

E = problem.manifold.random_tangent_vector(D_start, rng=2)
step = 1e-5
difference = problem.euclidean_gradient(D_start + step * E) - problem.euclidean_gradient(D_start - step * E)
product = problem.euclidean_hessian(D_start, E)
hessian_error = np.linalg.norm(difference / (2 * step) - product) / np.linalg.norm(product)
print(f"Hessian product against differences of gradients: relative error {hessian_error:.0e}")

# %%
# Why the codes follow the dictionary
# -----------------------------------
#
# One could as well keep X while D moves and solve for X afterwards; MOD, the method of optimal directions,
# does that. Let us walk from the start in the direction of steepest descent and compare. Both walks take the
# same path: every atom turns along a great circle of its sphere, the geodesic. Its length is measured in
# radians.

following = mdl.update_problem(Y, support)
keeping = mdl.update_problem(Y, following.codes(D_start), codes="fixed")
direction = -following.riemannian_gradient(D_start)
direction /= following.manifold.norm(D_start, direction)  # so that t is the length of the way

t = np.linspace(0, 7.5, 301)
phi, phi_keeping = following.restrict(D_start, direction), keeping.restrict(D_start, direction)
values, values_keeping = np.array([phi(s) for s in t]), np.array([phi_keeping(s) for s in t])

figure, ax = plt.subplots(figsize=(7.6, 4.4), layout="constrained")
scale = phi(0)
ax.plot(t, values_keeping / scale, color=GREY, lw=2.5)
ax.plot(t, values / scale, color=BLUE, lw=2.5)
ax.plot(t, 1 + phi.derivative(0) * t / scale, color=INK, lw=1, ls=":")
for curve, colour in ((values_keeping, GREY), (values, BLUE)):
    lowest = curve.argmin()
    ax.plot(t[lowest], curve[lowest] / scale, "o", color=colour, ms=9, mec="white", mew=1.5)
ax.plot(0, 1, "o", color=INK, ms=9, mec="white", mew=1.5, clip_on=False, zorder=5)
ax.text(5.2, 0.90, "the codes stay", color="#66717d", ha="right", fontsize=11)
ax.text(6.7, 0.48, "the codes follow", color=BLUE, ha="center", fontsize=11)
ax.text(3.85, 0.46, "the tangent of both", color=INK, fontsize=9)
ax.text(0.15, 1.01, "start", color=INK, fontsize=9)
ax.set(xlabel="length of the way t (radians)", ylabel="f relative to the start", xlim=(0, 7.5))
ax.set_ylim(0.45, 1.1)
ax.set_title("The same walk, with and without letting the codes follow", fontsize=11, color=INK, loc="left")

gain_following, gain_keeping = 1 - values.min() / scale, 1 - values_keeping.min() / scale
print(f"best decrease along this geodesic: codes stay {gain_keeping:.0%}, codes follow {gain_following:.0%}")

# %%
# Two things are worth seeing. The curves *touch* at t = 0, in value and in slope: the optimal codes are
# stationary, so to first order their change does not matter. This is the envelope theorem, and the reason
# why the gradient is simply −2(Y − DX)Xᵀ, as if X were constant. And the blue curve never lies above the
# grey one, because codes that may adapt cannot be worse than codes that may not. So a step can go further
# and gain more.

# %%
# Looking inside a line search
# ----------------------------
#
# How far to walk? The paper searches for the minimum of φ(t) = f(D(t)) by golden section: bracket it, then
# shrink the bracket by the golden ratio until it is small. That takes values of φ alone. But on the spheres
# φ has a cheap and exact slope as well, so ``GeodesicSearch`` can put a cubic through two probes and jump
# to its minimum. ``trace`` records every probe of every search made inside its block.

searches = {}
for searcher in (mdl.GoldenSection(), mdl.GeodesicSearch()):
    with trace() as records:
        SteepestDescent(line_searcher=searcher, max_iterations=1, verbosity=0).run(
            following, initial_point=D_start
        )
    searches[type(searcher).__name__] = records[0]

for name, search in searches.items():
    best = min(value for _, value in search.probes)
    print(f"{name:15s} {len(search.probes):2d} probes, f = {search.f0:.3f} → {best:.3f}")

figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(7.6, 6.2), height_ratios=[3, 2], sharex=True, layout="constrained"
)
top.plot(t, values, color=INK, lw=1.5, zorder=1)
for (name, search), colour, marker in zip(searches.items(), (ORANGE, BLUE), ("o", "D"), strict=True):
    probes = np.array(search.probes)
    lengths, numbers = probes[:, 0] * search.norm, np.arange(1, len(probes) + 1)
    label = f"{name}: {len(probes)} probes"
    top.plot(lengths, probes[:, 1], marker, color=colour, ms=6, mec="white", mew=0.6, label=label, zorder=3)
    bottom.plot(lengths, numbers, color=colour, lw=0.8, alpha=0.6)
    bottom.plot(lengths, numbers, marker, color=colour, ms=6, mec="white", mew=0.6)
    accepted = lengths.tolist().index(search.t * search.norm)
    bottom.plot(lengths[accepted], numbers[accepted], "o", ms=13, mec=colour, mfc="none")
    if name == "GeodesicSearch":
        for number, length, value in zip(numbers, lengths, probes[:, 1], strict=True):
            ends = np.array([-0.45, 0.45])
            top.plot(length + ends, value + phi.derivative(length) * ends, color=BLUE, lw=3, alpha=0.35)
            top.annotate(number, (length, value), (5, 7), textcoords="offset points", color=BLUE)
top.set_ylabel("φ(t)")
top.legend(frameon=False, loc="upper right")
top.set_title("Two searches for the same minimum; bars are slopes φ′(t)", fontsize=11, color=INK, loc="left")
bottom.set(xlabel="length of the way t (radians)", ylabel="number of the probe", xlim=(0, 7.5))
bottom.invert_yaxis()

# %%
# Below, time runs downwards, and a ring marks the probe that was accepted. Golden section first reaches
# out, then closes in by the golden ratio at every probe. The search with slopes strides straight to the
# minimum, and stops when the slope has all but vanished. Neither evaluates f in full while it searches: φ
# is computed from inner products that were formed once, at a cost that does not depend on the length m of
# the signals; the page on the mathematics derives it.

# %%
# Steepest descent against a trust region
# ---------------------------------------
#
# Now to the minimum. The paper takes steepest descent with golden section. A trust region minimises at
# every step a quadratic model, made with the exact Hessian, in a ball as large as the model can be trusted.
# Both are Pymanopt's own optimizers; the problem keeps the books: ``problem.counts`` tells what was really
# computed, ``problem.record`` what is known of every accepted point.

optimizers = {
    "steepest descent, golden section": SteepestDescent(
        line_searcher=mdl.GoldenSection(), max_iterations=300, min_gradient_norm=1e-6, verbosity=0
    ),
    "trust region, exact Hessian": TrustRegions(min_gradient_norm=1e-6, verbosity=0),
}
runs = {}
for name, optimizer in optimizers.items():
    runs[name] = mdl.update_problem(Y, support, mu=mu)
    optimizer.run(runs[name], initial_point=D_start)

print(f"{'':34s} steps  factorisations  probes  Hessian products  final f")
for name, run in runs.items():
    steps, counts = len(run.record) - 1, run.counts
    print(
        f"{name:34s} {steps:5d} {counts.factorisation:15d} {counts.probe:7d} {counts.hessian:17d}"
        f"  {run.record[-1].value:.6f}"
    )

figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.9), sharey=True, layout="constrained")
minimum = min(iterate.value for run in runs.values() for iterate in run.record)
for (name, run), colour in zip(runs.items(), (ORANGE, BLUE), strict=True):
    excess = np.array([iterate.value for iterate in run.record]) - minimum
    seconds = np.array([iterate.seconds for iterate in run.record])
    visible = excess > 1e-11 * minimum  # below that there is only rounding
    steps = np.arange(len(excess))
    axes[0].semilogy(steps[visible], excess[visible], ".-", color=colour, label=name)
    axes[1].semilogy(1e3 * seconds[visible], excess[visible], ".-", color=colour)
axes[0].set(xlabel="accepted steps", ylabel="f − minimum")
axes[1].set(xlabel="milliseconds")
axes[0].legend(frameon=False, loc="upper right")
for ax in axes:
    ax.grid(True, alpha=0.25)
    ax.margins(x=0.02)
axes[0].set_title("A straight line is linear convergence, a waterfall quadratic", fontsize=11, loc="left")

# %%
# Steepest descent loses a constant factor per step, so it draws a straight line. Near the minimum, where
# the quadratic model is right, the trust region doubles its digits with every step: the waterfall. Its
# price are the Hessian products, each about as dear as an evaluation of f with its gradient; with the
# factorisations of the supports kept, a dozen steps of them cost less than the thousands of probes. (It also
# uses the preconditioner that the problem offers, which divides the gradient of every atom by how much the
# atom is used; steepest descent asks for none.) On your machine the right-hand picture may differ, the counts
# in the table will hardly do so.

# %%
# Exact recovery, near the counting bound
# ---------------------------------------
#
# How many signals does it take to pin down a dictionary if the support is known? There are d(m − 1)
# unknowns in the atoms and nS in the codes, against nm numbers in Y. So no method can do with fewer than
#
# .. math:: n \;\ge\; \frac{d\,(m-1)}{m-S}
#
# signals, which is 40 here. We take n = 52, and no noise: now f = 0 at the true dictionary, if μ = 0.

bound = d * (m - 1) / (m - S)
few = 52
D_few, X_few, Y_few = mdl.datasets.synthetic(m, d, few, sparsity=S, rng=5)
print(f"counting bound n ≥ {bound:.0f}; we have n = {few}")


def descend(Y, support, D, ridges, steps):
    """A trust region for one ridge after the other, each from where the last one ended."""
    points, records = [D], []
    for ridge in ridges:
        problem = mdl.update_problem(Y, support, mu=ridge)
        optimizer = TrustRegions(max_iterations=steps, min_gradient_norm=1e-12, verbosity=0)
        points.append(optimizer.run(problem, initial_point=points[-1]).point)
        records.append([iterate.value / problem.scale for iterate in problem.record])
    return points, records, problem


# %%
# We could ask for μ = 0 at once. But without a ridge f is not smooth: where two atoms of a support become
# parallel there is a cliff, and descent likes to walk along cliffs. The paper calls these points *singular*,
# and uses a ridge to stay away from them. A ridge, on the other hand, makes the truth no minimum any more. So
# we start with a large one and let it go in stages, each starting where the last one ended: *continuation*.

ridges = [1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0.0]
starts = [problem.manifold.random_point(rng=seed) for seed in range(5)]
support_few = X_few.astype(bool)
continued = [descend(Y_few, support_few, D, ridges, steps=60) for D in starts]
direct = [descend(Y_few, support_few, D, [0.0], steps=150) for D in starts]

for name, results in (("μ = 0 at once", direct), ("continuation in μ", continued)):
    found = [round(d * mdl.metrics.recovery(points[-1], D_few)) for points, _, _ in results]
    print(f"{name:18s} atoms found, of {d}, from {len(starts)} starts: {found}")

points, _, last = direct[0]
print(f"\nThe first run with μ = 0 ended at a point that is {mdl.metrics.is_singular(last, points[-1])}")

# %%
# Same starts, same optimizer, and enough steps for both. What the continuation does is best seen stage by
# stage. An atom and its negative are the same atom to us, because the codes absorb the sign: so we measure
# how far the atoms are from the true ones as *lines*.

line = mdl.manifolds.Lines(m, 1)


def angles(D):
    """The angle of every atom to the true one, in degrees."""
    return np.degrees([line.dist(D[:, [i]], D_few[:, [i]]) for i in range(d)])


points, records, _ = continued[0]
turned = np.array([angles(D) for D in points])

figure, axes = plt.subplots(1, 2, figsize=(10.4, 4.5), layout="constrained")
colours = plt.colormaps["viridis"](np.linspace(0.88, 0.05, len(ridges)))
begin = 0
for colour, ridge, record in zip(colours, ridges, records, strict=True):
    steps = begin + np.arange(len(record))
    axes[0].semilogy(steps, record, ".-", color=colour, ms=6, label=f"μ = {ridge:g}")
    begin = steps[-1]
axes[0].semilogy(direct[0][1][0][: begin + 10], color=ORANGE, lw=2, zorder=1, label="μ = 0 at once")
axes[0].set(xlabel="accepted steps", ylabel="f / ‖Y‖²", ylim=(1e-31, 30))
axes[0].legend(frameon=False, loc="lower left", bbox_to_anchor=(0.05, 0.05))
axes[0].set_title("The objective, one stage after the other", fontsize=11, color=INK, loc="left")

axes[1].semilogy(turned, color=GREY, lw=0.8, alpha=0.7)
axes[1].semilogy(np.median(turned, axis=1), "o-", color=BLUE, lw=2.5, ms=8, mec="white", label="median")
axes[1].legend(frameon=False, loc="lower left", bbox_to_anchor=(0.05, 0.05))
names = ["start", *(f"{ridge:g}" for ridge in ridges)]
axes[1].set_xticks(range(len(names)), names)
axes[1].set(xlabel="after the stage with μ =", ylabel="degrees", ylim=(1e-16, 400))
axes[1].set_title(f"Angles of {d} atoms to the true ones", fontsize=11, color=INK, loc="left")
for ax in axes:
    ax.grid(True, alpha=0.25)

print(f"largest angle of an atom to the true one: {turned[-1].max():.0e} degrees")

# %%
# With μ = 0.1 the objective is so smooth that descent finds the right valley, though not its floor. From then
# on the angles shrink in step with μ, and when the ridge is let go the dictionary is exact to rounding.

# %%
# An exercise
# -----------
#
# Take n = 32 signals, fewer than the 40 of the counting bound, and run the same continuation. What do you
# expect of the objective? What of the dictionary? Decide before you unfold the answer.
#
# .. raw:: html
#
#    <details><summary>The answer</summary>
#
# The objective still falls to zero, up to rounding: the signals are represented exactly. But the dictionary
# is another one. With more unknowns than equations there is a whole surface of dictionaries with f = 0, and
# the optimizer has no reason to end at the one that the signals were made of. A small error on the training
# signals is no proof of having found anything; counting comes first.

D_32, X_32, Y_32 = mdl.datasets.synthetic(m, d, 32, sparsity=S, rng=0)
points, records, _ = descend(Y_32, X_32.astype(bool), starts[0], ridges, steps=60)
found_32, error_32 = mdl.metrics.recovery(points[-1], D_32), records[-1][-1]
print(f"n = 32: f / ‖Y‖² = {error_32:.0e}, atoms found: {round(d * found_32)} of {d}")

# %%
# .. raw:: html
#
#    </details>
#
# What was taught, as assertions
# ------------------------------
#
# Prose may be wrong. These lines would fail.

# The derivative was right, codes and all.
assert hessian_error < 1e-6

# Codes that follow: the same tangent, never above, and more to gain.
assert np.isclose(phi.derivative(0), phi_keeping.derivative(0))
assert np.all(values <= values_keeping + 1e-9 * scale)
assert gain_following > gain_keeping

# Both searches find the minimum; with slopes in a fraction of the probes.
golden, geodesic = searches["GoldenSection"], searches["GeodesicSearch"]
decrease = golden.f0 - min(value for _, value in golden.probes)
assert golden.f0 - min(value for _, value in geodesic.probes) > 0.99 * decrease
assert 4 * len(geodesic.probes) <= len(golden.probes)

# Both optimizers find the same minimum; the trust region in a fraction of the steps.
descent, region = runs.values()
assert np.isclose(descent.record[-1].value, region.record[-1].value, rtol=1e-6)
assert 5 * len(region.record) < len(descent.record)
assert region.counts.hessian < descent.counts.probe

# Continuation finds every atom from every start, exactly; μ = 0 at once does not.
assert all(mdl.metrics.recovery(points[-1], D_few) == 1.0 for points, _, _ in continued)
assert turned[-1].max() < 1e-6
assert sum(mdl.metrics.recovery(points[-1], D_few) < 1.0 for points, _, _ in direct) >= 2

# Below the counting bound a perfect fit means nothing.
assert error_32 < 1e-15
assert found_32 < 0.5

# %%
# Where to go from here: swap the optimizer for ``ConjugateGradient`` or ``mdl.LBFGS``, the manifold for
# ``mdl.manifolds.Lines``, or update some of the atoms only (``atoms=``, with the whole ``dictionary=``). In a
# learning loop, where the support is not known, ``mdl.SimCO`` runs such an update between two stages of
# sparse coding: ``mdl.learn_dictionary``.

if len(sys.argv) > 1:  # a folder for the pictures
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number in plt.get_fignums():
        plt.figure(number).savefig(folder / f"01_dictionary_update_{number}.png")
