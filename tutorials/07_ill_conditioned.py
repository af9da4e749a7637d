"""
Ill-conditioned dictionaries: singular or stationary?
=====================================================

A descent has stopped: the objective does not decrease any more. Is it at a minimum, or stuck at a point
where the objective is not continuous? This tutorial shows such a point on a sphere you can see, distinguishes
the two cases by one number, and then solves the problem: with a ridge on the codes, reduced in stages.

You need NumPy, and the dictionary update as :ref:`sphx_glr_tutorials_03_dictionary_update.py` introduces
it: the atoms move, and the codes follow by least squares.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
import pymanopt
from pymanopt.optimizers import SteepestDescent, TrustRegions

import manifold_dl as mdl

plt.style.use(mdl.plotting.STYLE)
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#7A7A7A"

# %%
# Two atoms, one plane
# --------------------
# A signal :math:`y` in three dimensions uses two atoms, :math:`d_1` and :math:`d_2`. They span a plane, the
# best codes project :math:`y` to that plane, and what is left over is the residual. So the fit does not
# depend on the two atoms as such, but on their *plane*.
#
# Let :math:`d_1` point to the pole of the sphere, and let :math:`d_2` be very close to it. The direction in
# which it leans decides everything:

pole, y = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])


def near_pole(a, b):
    """The point of the sphere that leans from the pole by a towards y, and by b aside; both in radians."""
    angle = np.hypot(a, b)
    return np.array([np.sinc(angle / np.pi) * a, np.sinc(angle / np.pi) * b, np.cos(angle)])


for name, neighbour in (("towards y", near_pole(0.05, 0)), ("aside", near_pole(0, 0.05))):
    pair = np.column_stack([pole, neighbour])
    codes, *_ = np.linalg.lstsq(pair, y, rcond=None)
    rest = np.linalg.norm(y - pair @ codes)
    print(f"slightly {name:9s}: residual {rest:.2f}, codes {codes[0]:5.1f} and {codes[1]:4.1f}")

# %%
# The two neighbours are 4 degrees apart. One plane contains the signal and the other is perpendicular to
# it. Note the codes of the first: to make a signal of length 1, it takes twenty of one atom and takes
# twenty of the other away. We shall come back to them.

figure = plt.figure(figsize=(8.6, 4))
turn, radius = np.meshgrid(np.linspace(0, 2 * np.pi, 61), [0.0, 1.15])
longitude, latitude = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
globe = np.sin(latitude) * np.cos(longitude), np.sin(latitude) * np.sin(longitude), np.cos(latitude)
for i, (a, b, title) in enumerate(
    [(0.12, 0, "leaning towards $y$: $y$ is fitted"), (0, 0.12, "aside: it is not")]
):
    ax = figure.add_subplot(1, 2, i + 1, projection="3d", computed_zorder=False)
    across = near_pole(np.pi / 2, 0) if i == 0 else near_pole(0, np.pi / 2)
    disc = [radius * (np.cos(turn) * u + np.sin(turn) * v) for u, v in zip(pole, across, strict=True)]
    ax.plot_wireframe(*globe, color=GREY, lw=0.3, alpha=0.6)
    ax.plot_surface(*disc, color=BLUE, alpha=0.25, shade=False, rcount=2, ccount=61)
    for vector, colour, label, place in (
        (pole, "k", "$d_1$", (-0.22, 0, 1.05)),
        (near_pole(a, b), BLUE, "$d_2$", (a + 0.08, b + 0.08, 1.05)),
        (y, VERMILION, "$y$", (1.15, 0, 0.02)),
    ):
        ax.quiver(0, 0, 0, *vector, color=colour, arrow_length_ratio=0.1, lw=2)
        ax.text(*place, label, color=colour, fontsize=13)
    ax.set(xlim=(-0.9, 0.9), ylim=(-0.9, 0.9), zlim=(-0.9, 0.9), title=f"$d_2$ {title}")
    ax.set_axis_off()
    ax.view_init(18, -60)
    ax.set_box_aspect((1, 1, 1), zoom=1.15)

# %%
# A discontinuity
# ---------------
# Now let :math:`d_1` stay at the pole and draw the objective as a map, over all places of :math:`d_2`
# around it. We add a second signal that uses :math:`d_2` alone, and that is represented best if :math:`d_2`
# leans in both directions; so there is a reason to move.
#
# :func:`~manifold_dl.update_problem` computes the objective of both atoms. We want to move one of them by
# hand, so we wrap it into a Pymanopt problem on a single sphere.

signals = np.column_stack([1.5 * near_pole(0.3, 0.5), y])
uses = np.array([[False, True], [True, True]])  # the first signal uses d2, the second both
sphere = mdl.manifolds.Spheres(3, 1)


def second_atom(mu):
    """The objective as a function of the second atom; the first stays at the pole."""
    both = mdl.update_problem(signals, uses, mu=mu, threads=1)
    cost = pymanopt.function.numpy(sphere)(lambda d: both.cost(np.column_stack([pole, d])))
    gradient = pymanopt.function.numpy(sphere)(
        lambda d: both.euclidean_gradient(np.column_stack([pole, d]))[:, 1:]
    )
    return pymanopt.Problem(sphere, cost, euclidean_gradient=gradient)


def descend(mu, start, steps):
    """Steepest descent with golden section, as in the paper: every point of the way, 3×1 each."""
    problem, points = second_atom(mu), [start]
    descent = SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=1, verbosity=0)
    for _ in range(steps):
        points.append(descent.run(problem, initial_point=points[-1]).point)
    return points


start = near_pole(-0.9, 0.4)[:, None]
stuck_way = descend(0.0, start, steps=60)

# %%
# Here is the map, twice: as a whole, and 25 times enlarged around the pole.


def draw_map(ax, mu, size, levels):
    grid = np.linspace(-size, size, 81)
    problem = second_atom(mu)
    heights = [[problem.cost(near_pole(a, b)[:, None]) for a in grid] for b in grid]
    colours = ax.contourf(grid, grid, heights, levels=levels, cmap="viridis", extend="max")
    ax.set(aspect="equal", xlabel="$d_2$ leans towards $y$ (radians)", xlim=(-size, size), ylim=(-size, size))
    ax.locator_params(nbins=5)
    ax.grid(False)
    return colours


def on_map(points):
    """Back from points of the sphere to the map: the inverse of `near_pole`."""
    d = np.hstack(points)
    sine = np.maximum(np.hypot(d[0], d[1]), 1e-300)
    return d[:2] * np.arctan2(sine, d[2]) / sine


levels = np.linspace(0.3, 2.4, 22)
figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4))
for ax, size in zip(axes, (1.1, 0.044), strict=True):
    colours = draw_map(ax, 0.0, size, levels)
    ax.plot(*on_map(stuck_way), ".-", color="white", lw=1.2, ms=5)
    ax.plot(0, 0, "+", color=VERMILION, ms=13, mew=2)
axes[0].plot(*on_map([start]), "o", color="white", ms=8)
axes[0].set(ylabel="$d_2$ leans aside (radians)", title="Descent runs into the pole ...")
axes[1].set(title="... which looks the same at any scale")
figure.colorbar(colours, ax=axes, label="objective", ticks=[0.5, 1, 1.5, 2])

# %%
# Dark is low. Around the pole the objective depends on the *direction* of :math:`d_2` and not on its
# distance, so the map is a pinwheel, and enlarging it changes nothing. All its values meet in one point:
# the function is not continuous there, let alone differentiable. The minimum is the dark lobe on the right.
# Descent follows the lobe on the left, which becomes narrower towards the pole. It jumps from side to side,
# in steps that shrink near the pole, and never gets across.
#
# Watch the numbers, step by step. κ is the ratio of the largest to the smallest singular value of the pair
# of atoms; for two of them at a small angle θ it is about 2/θ.

bare = second_atom(0.0)
print(" step   objective   gradient     κ")
for step in (0, 5, 10, 20, 40, 60):
    d = stuck_way[step]
    slope = sphere.norm(d, bare.riemannian_gradient(d))
    kappa = mdl.metrics.condition_number(np.column_stack([pole, d]), uses)
    print(f"{step:5d} {bare.cost(d):11.4f} {slope:10.2f} {kappa:7.1f}")

pole_gradient, pole_kappa = slope, kappa

# %%
# The objective alone looks like convergence. The gradient shows that it is not: it does not go to zero. It
# is as large as before; only the steps have become short. That is the difference:
#
# * at a **stationary** point the gradient vanishes;
# * at a **singular** point it does not, and some support of the dictionary is nearly dependent.
#
# Why the ridge helps
# -------------------
# Remember the twenty minus twenty. In a pair at a small angle θ the codes are of the size 1/θ, so large
# codes announce a singular point. Regularized SimCO penalizes them:
#
# .. math:: f_\mu(D) = \sum_j \min_x \|y_j - D_{\Omega_j} x\|^2 + \mu \|x\|^2 .
#
# With :math:`\mu > 0` it is too expensive to fit a signal with atoms that are nearly parallel. One can even
# show that :math:`\|x\| \le \|y\| / (2\sqrt\mu)`, wherever the atoms are, so that all is smooth. The
# discontinuity becomes a smooth hill, and a descent can pass it. In the end we want :math:`\mu = 0`, so we
# reduce it in stages, each starting where the last one ended. This is called *continuation*.

stages = [0.1, 0.01, 0.0]
ways = []
for mu in stages:
    ways.append(descend(mu, ways[-1][-1] if ways else start, steps=12))

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.6), sharey=True)
for ax, mu, way in zip(axes, stages, ways, strict=True):
    colours = draw_map(ax, mu, 1.1, levels)
    ax.plot(*on_map(way), ".-", color="white", lw=1.2, ms=5)
    ax.plot(*on_map(way[:1]), "o", color="white", ms=8)
    ax.plot(0, 0, "+", color=VERMILION, ms=13, mew=2)
    ax.set_title(f"μ = {mu:g}")
axes[0].set_ylabel("$d_2$ leans aside (radians)")
figure.colorbar(colours, ax=axes, label="objective", ticks=[0.5, 1, 1.5, 2])

found = ways[-1][-1]
print(f"stuck at f = {bare.cost(stuck_way[-1]):.3f}; by continuation f = {bare.cost(found):.3f}", end=", ")
print(f"gradient {sphere.norm(found, bare.riemannian_gradient(found)):.0e}")

# %%
# With μ = 0.1 the left lobe is no valley at all. The path passes the pole on its way to the other side, and
# the later stages only have to correct what the ridge has changed.
#
# Sixteen dimensions
# ------------------
# Does this also happen in practice? In Section VI-A the SimCO paper shows an example: 78 signals of length
# 16, made of 32 atoms, four in each; the support is known, and all methods begin at the same dictionary.
# Three of the four end at a singular point. We repeat it with a draw of our own. (It was looked for, as the
# paper's was: by the test that is used below, all three fail in about a third of the draws.)

rng = np.random.default_rng(3)
true, codes, Y = mdl.datasets.synthetic(16, 32, 78, sparsity=4, rng=rng)
D0 = mdl.manifolds.Spheres(16, 32).random_point(rng)
support = codes.astype(bool)
objective = mdl.update_problem(Y, support, threads=1)  # μ = 0; one thread is plenty for 78 signals


def one_step():
    return SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=1, verbosity=0)


methods = {
    "MOD": mdl.MOD(),
    "K-SVD": mdl.KSVD(threads=1),
    "primitive SimCO": mdl.SimCO(one_step(), mu=0.0, threads=1),
    "regularized SimCO": mdl.SimCO(one_step(), mu=0.01, threads=1),
}

# %%
# Before every update all methods get the best codes there are, and we write down three numbers: the error,
# the gradient (both relative to :math:`\|Y\|^2`) and κ, the worst condition number of any of the 78
# supports.

ends, courses = {}, {}
for name, update in methods.items():
    D, course, run = D0, [], mdl.updates.begin(update, max_iter=150)
    for iteration in range(150):
        gradient = objective.manifold.norm(D, objective.riemannian_gradient(D))
        kappa = mdl.metrics.condition_number(D, support)
        course.append((objective.cost(D) / objective.scale, gradient / objective.scale, kappa))
        D, _ = run(Y, D, objective.codes(D), iteration=iteration)
    ends[name], courses[name] = D, np.array(course)

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.6))
for ax, column, title in zip(axes, range(3), ("error", "gradient", "condition number κ"), strict=True):
    runs = {name: course[:, column] for name, course in courses.items()}
    mdl.plotting.plot_convergence(runs, ax=ax)
    ax.set(title=title, ylabel="")
    if column:
        ax.get_legend().remove()

# %%
# The left panel could be mistaken for slow convergence. The other two say what it is: the gradients stay
# where they are, and κ grows and grows. :func:`~manifold_dl.metrics.is_singular` looks at the same two
# numbers and gives a verdict:

for name, D in ends.items():
    print(f"{name}:\n   {mdl.metrics.is_singular(objective, D)}")

# %%
# Regularized SimCO is not at a minimum of this objective either: it minimises another one, with μ = 0.01,
# and steepest descent is slow. But it is not stuck.
#
# Which signal is the cause?
# --------------------------
# Let us look at all 78 supports of the stuck dictionary instead of the worst one only.

stuck = ends["primitive SimCO"]
kappas = mdl.metrics.condition_numbers(stuck, support)
worst = int(np.argmax(kappas))
atoms = support[:, [worst]].indices
print(f"signal {worst}: κ = {kappas[worst]:.0f}; the next worst has {np.sort(kappas)[-2]:.1f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8))
for name in ("primitive SimCO", "regularized SimCO"):
    colour = mdl.plotting.method_style(name)["color"]
    mdl.plotting.plot_condition(ends[name], support, ax=left, label=name, color=colour)
left.set_title("κ, signal by signal")
bars = {
    "primitive SimCO": objective.codes(stuck)[:, [worst]].data,
    "truth": codes[:, [worst]].data,
}
for shift, (name, height), colour in zip((-0.2, 0.2), bars.items(), (VERMILION, GREY), strict=True):
    right.bar(np.arange(4) + shift, height, 0.38, color=colour, label=name)
right.set_xticks(range(4), [f"atom {i}" for i in atoms])
right.set(title=f"The codes of signal {worst}, whose norm is {np.linalg.norm(Y[:, worst]):.1f}")
right.axhline(0, color="k", lw=0.8)
right.legend()

# %%
# It is a single signal out of 78. Four atoms have come to lie almost in a space of three dimensions, so
# that tiny differences between them, blown up by huge codes, fit that one signal. The other signals hardly
# depend on it, and the descent cannot get back, as on the map above.
#
# Leaving the singular point
# --------------------------
# Now the proof that it was no minimum. We begin *at the stuck dictionary* and run a continuation
# from μ = 0.1 down to zero, with a trust region in each stage.

ridges = [1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0.0]


def descend(D, ridges):
    """A trust region for one ridge after the other; yields the dictionary after each."""
    for mu in ridges:
        problem = mdl.update_problem(Y, support, mu=mu, threads=1)
        region = TrustRegions(max_iterations=60, min_gradient_norm=1e-8, verbosity=0)
        D = region.run(problem, initial_point=D).point
        yield D


def report(D):
    error, kappa = objective.cost(D) / objective.scale, mdl.metrics.condition_number(D, support)
    print(f"{error:9.0e} {kappa:8.1f} {round(32 * mdl.metrics.recovery(D, true)):8d} of 32")


print("     μ       error        κ   atoms found")
print(" stuck", end="   ")
report(stuck)
for mu, freed in zip(ridges, descend(stuck, ridges), strict=True):
    print(f"{mu:6.0e}", end="   ")
    report(freed)

# %%
# The very first stage corrects it: κ is that of a well-conditioned dictionary again (the true one has 3.7),
# and with it the error falls. From then on it follows μ down, to where the stopping rule says that it is
# enough.
#
# And the one atom that is missing? Only two signals use it, and both of them use another atom, too, which
# can replace it. No method can distinguish the two: :ref:`sphx_glr_tutorials_09_counting_bound.py` explains
# why.

best = np.abs(true.T @ freed).max(axis=1)  # for every true atom, the largest cosine with a learned one
missing = int(np.argmin(best))
users = codes.toarray()[:, codes.toarray()[missing] != 0] != 0
companions = np.setdiff1d(np.flatnonzero(users.all(axis=1)), missing)
print(f"atom {missing}: {users.shape[1]} signals use it, and all of them use atom {companions} as well")

# %%
# Exercise
# --------
# A trust region uses the exact Hessian, and near a minimum it is far better than steepest descent. Does it
# need the ridge at all? Draw five random starts; run it with μ = 0 at once, and by continuation. Compare
# the errors and the verdicts.
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# It does. Second derivatives describe a function well where it is smooth, and at a discontinuity there is
# no derivative: the trust region shrinks to nothing near it. With the ridge there is none, and all five
# starts end at an exact fit.

spheres, exact = mdl.manifolds.Spheres(16, 32), {"μ = 0 at once": 0, "continuation": 0}
for seed in range(13, 18):
    D = spheres.random_point(rng=seed)
    for name, sequence in (("μ = 0 at once", [0.0]), ("continuation", ridges)):
        *_, end = descend(D, sequence)
        exact[name] += objective.cost(end) < 1e-15 * objective.scale
        verdict = mdl.metrics.is_singular(objective, end).verdict.name.lower()
        print(f"start {seed}, {name:13s}: error {objective.cost(end) / objective.scale:.0e}, {verdict}")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
# * A fit depends on the space that the atoms of a support span. Where they become dependent that space
#   changes with the smallest movement, and the objective is not continuous.
# * Descent can end there. The error does not show it, but the gradient does: it vanishes at a stationary
#   point and not at a singular one.
# * A ridge on the codes makes the objective smooth. Continuation passes the point and then reduces the
#   ridge to zero.

assert bare.cost(found) < 0.8 * bare.cost(stuck_way[-1])  # the pole was no minimum
assert pole_gradient > 0.1 and pole_kappa > 20  # the gradient stays where κ grows
assert sphere.norm(found, bare.riemannian_gradient(found)) < 1e-3 * pole_gradient  # continuation converges

for name in ("MOD", "K-SVD", "primitive SimCO"):
    assert mdl.metrics.is_singular(objective, ends[name]), name  # three methods end at a singular point
assert mdl.metrics.condition_number(ends["regularized SimCO"], support) < 5  # the ridge keeps away from it
assert np.sort(kappas)[-2] < 10 < kappas[worst]  # one signal is the cause
assert np.abs(bars["primitive SimCO"]).max() > 10 * np.abs(bars["truth"]).max()  # by its huge codes

assert users.shape[1] == 2 and len(companions) > 0  # the missing atom never appears without another
assert objective.cost(freed) < 1e-15 * objective.scale  # away from the singular point, to an exact fit
assert exact["continuation"] == 5 > exact["μ = 0 at once"]  # the exact Hessian is no cure, the ridge is

plt.show()
