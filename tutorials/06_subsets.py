"""
One atom, all atoms, and everything between
===========================================

K-SVD updates one atom at a time, SimCO all of them at once. They are the two ends of one family: choose
a set of atoms, move those, let their codes follow, choose the next set. You will see why a single atom
needs no optimizer at all (and why every optimizer finds the same answer), what larger sets gain, and
what the order of the sets costs.

You need NumPy, and :ref:`sphx_glr_tutorials_03_dictionary_update.py` for the objective.
"""

# %%
# A set of atoms
# --------------
#
# Call the set I. The atoms outside stay, and so do their codes. What they explain is taken off the
# signals,
#
# .. math:: Y_r = Y - D_{I^c} X_{I^c} ,
#
# and the update of I is the old problem again, with :math:`Y_r` for Y and only the atoms of I. In
# :func:`~manifold_dl.update_problem` the set is ``atoms=``. Signals that use none of them are left
# aside.

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

import manifold_dl as mdl
from manifold_dl.schedules import AllAtoms, Blocks, OneAtATime

plt.style.use(mdl.plotting.STYLE)
BLUE, ORANGE, GREEN, INK = "#0072B2", "#D55E00", "#009E73", "#202020"

m, d, n, S = 16, 32, 300, 4
_, X_true, Y = mdl.datasets.synthetic(m, d, n, sparsity=S, snr_db=20, rng=0)
support = X_true.astype(bool)
whole = mdl.update_problem(Y, support)
D0 = whole.manifold.random_point(rng=1)
X0 = whole.codes(D0)

for atoms in ([5], [5, 6, 7, 8], range(d)):
    problem = mdl.update_problem(Y, X0, atoms=atoms, dictionary=D0)
    users = (np.diff(problem.support.indptr) > 0).sum()
    print(f"|I| = {len(atoms):2d}: {problem.manifold.dim:3d} unknowns, {users:3d} signals use them")

# %%
# One atom: a picture of Theorem 1
# --------------------------------
#
# With a single atom u the best code of a signal y is the inner product :math:`u^T y`, and what is left
# is
#
# .. math:: f(u) = \|Y_r\|^2 - \|Y_r^T u\|^2 .
#
# Make :math:`\|Y_r^T u\|` as large as possible: that is what the *leading left singular vector* of
# :math:`Y_r` does, and K-SVD has its name from computing it. SimCO's authors study what a gradient descent
# would find, and prove (their Theorem 1) that from a random start it finds the same vector, with
# probability one. In three dimensions we can watch.

rng = np.random.default_rng(2)
rotation, _ = np.linalg.qr(rng.standard_normal((3, 3)))
A = rotation @ np.diag([1.0, 0.75, 0.35]) @ np.linalg.qr(rng.standard_normal((60, 3)))[0].T
u1, u2, u3 = rotation.T  # the singular vectors: A was made of them
rank_one = mdl.update_problem(A, np.ones((1, 60), dtype=bool))


def descend(u, steps=320, size=0.04):
    """Small steps downhill: nearly the curve that water would take."""
    path = [u[:, None]]
    for _ in range(steps):
        path.append(rank_one.manifold.exp(path[-1], -size * rank_one.riemannian_gradient(path[-1])))
    return np.array(path)[:, :, 0]


starts = rng.standard_normal((24, 3))
paths = [descend(u / np.linalg.norm(u)) for u in starts]
unlucky = descend(np.cos(1.2) * u2 + np.sin(1.2) * u3)  # exactly at a right angle to u1

# %%
# We draw f on the sphere, and once more as a map of the world, turned so that the two minima ±u₁ lie on
# the equator.

axes_of_map = np.array([u3, u1, u2])


def f(points):
    """f at the rows of an array; cost for the picture."""
    return np.sum(A**2) - np.sum((points @ A) ** 2, axis=-1)


def on_map(points):
    x, y, z = axes_of_map @ points.T
    return np.arctan2(y, x), np.arcsin(np.clip(z, -1, 1))


figure = plt.figure(figsize=(10.4, 4.0))
globe = figure.add_subplot(1, 2, 1, projection="3d")
world = figure.add_subplot(1, 2, 2, projection="mollweide")
eye = u3 + 0.5 * u1 + 0.3 * u2
view = np.degrees([np.arcsin(eye[2] / np.linalg.norm(eye)), np.arctan2(eye[1], eye[0])])
for path in paths:
    looks = {"color": INK, "marker": "none", "linewidth": 0.8, "ends": False}
    mdl.plotting.plot_sphere_path(path, ax=globe, cost=f, view=view, **looks)
globe.set_title("f on the sphere: dark is low")

east, north = np.meshgrid(np.linspace(-np.pi, np.pi, 181), np.linspace(-np.pi / 2, np.pi / 2, 91))
points = np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=-1)
world.pcolormesh(east, north, f(points @ axes_of_map), shading="gouraud", rasterized=True)
for path in paths:
    world.plot(*on_map(path), ".", color="white", ms=1)
    world.plot(*on_map(path[:1]), "o", color="white", mec=INK, ms=5)
world.plot(*on_map(unlucky), ".", color=ORANGE, ms=2)
world.plot(*on_map(unlucky[:1]), "o", color=ORANGE, mec="white", ms=7)
for point, name, offset in ((u1, "u₁", 18), (-u1, "−u₁", -18), (u2, "the pass u₂", 45)):
    place = np.ravel(on_map(point[None]))
    world.annotate(name, place, (offset, -14), textcoords="offset points", color="white", ha="center")
world.set(xticklabels=[], yticklabels=[], title="The same as a map, with 24 descents")
world.grid(False)

# %%
# The paths end at one of two minima, u₁ and −u₁, which are the same atom. There are other points where the
# gradient vanishes: the maxima ±u₃, and the saddles ±u₂. The orange start was chosen exactly on the great
# circle between the two basins, and ends at a saddle. A random start is on it with probability zero. That
# is the theorem.

# %%
# Any optimizer is an SVD
# -----------------------
#
# Back to sixteen dimensions and atom 5. Five methods, one result:

residual = Y - D0 @ X0
users = X0.toarray()[5] != 0
Y_r = residual[:, users] + np.outer(D0[:, 5], X0.toarray()[5, users])
leading = np.linalg.svd(Y_r)[0][:, [0]]

settings = {"max_iterations": 500, "min_gradient_norm": 1e-10 * whole.scale, "verbosity": 0}
settings["min_step_size"] = 0
optimizers = {
    "steepest descent": SteepestDescent(mdl.GoldenSection(), **settings),
    "conjugate gradients": ConjugateGradient(line_searcher=mdl.WolfeSearch(), **settings),
    "L-BFGS": mdl.LBFGS(**settings),
    "trust region": TrustRegions(**settings),
    "LeadingSingularVector": mdl.LeadingSingularVector(),
}
gaps, values = {}, {}
for name, optimizer in optimizers.items():
    problem = mdl.update_problem(Y, X0, atoms=[5], dictionary=D0)
    u = optimizer.run(problem, initial_point=problem.manifold.random_point(rng=3)).point
    gaps[name] = min(np.linalg.norm(u - leading), np.linalg.norm(u + leading))
    values[name] = problem.cost(u) / problem.cost(leading) - 1
    print(f"{name:22s} distance to the singular vector {gaps[name]:.0e}, excess of f {values[name]:+.0e}")

# %%
# The values agree to rounding. (The vectors do so to half as many digits where a method stops by its
# gradient or value: near a minimum f is flat.) A whole sweep over the atoms agrees as well.
# :class:`~manifold_dl.KSVD` *is* :class:`~manifold_dl.SimCO` with one atom at a time; replace the closed
# form by a trust region and the result is the same.

region = TrustRegions(max_iterations=100, min_gradient_norm=1e-9, verbosity=0)
D_svd, X_svd = mdl.KSVD()(Y, D0, X0)
D_region, X_region = mdl.SimCO(optimizer=region, schedule=OneAtATime(), mu=0.0)(Y, D0, X0)
sweep_gap = np.abs(D_svd - D_region).max()
print(f"after a sweep of {d} atoms the dictionaries differ by {sweep_gap:.0e}")

# %%
# And with a ridge? The SimCO paper calls it unclear how the SVD could help there. For one unit atom it
# is a single line:
#
# .. math:: f(u) = \|Y_r\|^2 - \frac{\|Y_r^T u\|^2}{1 + \mu} .
#
# The same vector is best for every μ, and only its codes shrink, by :math:`1 + \mu`.

ridged = mdl.update_problem(Y, X0, atoms=[5], dictionary=D0, mu=0.5)
u = TrustRegions(**settings).run(ridged, initial_point=ridged.manifold.random_point(rng=3)).point
shrunk = np.abs(ridged.codes(u)[[5], :].toarray()[0, users]) / np.abs(leading.T @ Y_r)[0]
print(f"|⟨u, singular vector⟩| = {abs((u * leading).sum()):.12f}, codes shrunk to {shrunk.min():.4f}")

# %%
# Everything between
# ------------------
#
# A *schedule* says which sets make up a sweep: :class:`~manifold_dl.schedules.OneAtATime`,
# :class:`~manifold_dl.schedules.AllAtoms`, random :class:`~manifold_dl.schedules.Blocks`, or simply a
# list of index arrays. We cut the 32 atoms into blocks of 1, 2, 4, ... neighbours, solve every block to
# its minimum, and count sweeps.

sweeps, sizes = 8, (1, 2, 4, 8, 16, 32)
best = TrustRegions(min_gradient_norm=1e-9 * whole.scale, verbosity=0).run(whole, initial_point=D0).point
bottom = whole.cost(best)


def excess(D, X):
    """How far above the minimum; below 1e-12 there is only rounding."""
    return max((np.linalg.norm(Y - D @ X) ** 2 - bottom) / whole.scale, 1e-12)


def run(update, sweeps=sweeps):
    """Milliseconds and excess after every sweep."""
    D, X, begin, course = D0, X0, process_time(), [(0.0, excess(D0, X0))]
    for _ in range(sweeps):
        D, X = update(Y, D, X)
        course.append((1e3 * (process_time() - begin), excess(D, X)))
    return np.array(course)


updates = {
    size: mdl.SimCO(optimizer=region, schedule=list(np.arange(d).reshape(-1, size)), mu=0.0, threads=1)
    for size in sizes
}
updates["K-SVD"] = mdl.KSVD(threads=1)
updates["SimCO"] = mdl.SimCO(mu=0.0, threads=1)  # its default: five steps of conjugate gradients
for name in (32, "K-SVD", "SimCO"):
    run(updates[name], sweeps=1)  # load what is compiled, before we look at the clock
courses = {name: run(update) for name, update in updates.items()}

# %%
# Beside the blocks we have put the two methods as one would really run them: K-SVD with its singular
# vectors, and SimCO with a few steps on all atoms.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2), sharey=True)
colours = plt.colormaps["viridis"](np.linspace(0, 0.85, len(sizes)))
for size, colour in zip(sizes, colours, strict=True):
    left.semilogy(courses[size][:, 1], "o-", color=colour, ms=4, label=f"|I| = {size}")
    right.loglog(*courses[size][1:].T, "o-", color=colour, ms=4)
label = "|I| = 1 by singular vectors: K-SVD"
right.loglog(*courses["K-SVD"][1:].T, "D--", color="#E69F00", ms=4, label=label)
right.loglog(*courses["SimCO"][1:].T, "s-", color=ORANGE, ms=4, label="all atoms, five steps: SimCO")
left.set(xlabel="sweeps", ylabel="(f − minimum) / ‖Y‖²", title="Larger sets go further in a sweep ...")
right.set(xlabel="milliseconds of the processor", title="... and what a sweep costs")
left.legend(loc="lower left", bbox_to_anchor=(0.2, 0.08), ncols=2)
right.legend(loc="lower right", bbox_to_anchor=(1, 0.08))

# %%
# **Left**: the larger the set, the fewer sweeps; slowly at first, and at :math:`|I| = 32` one sweep is
# the whole problem. Why? Atoms that appear in the same signals depend on each other, and when one of
# them moves, the others should move with it. One at a time, each adapts to what the others were, not to
# what they will be. That is taking turns again, as in
# :ref:`sphx_glr_tutorials_03_dictionary_update.py`, this time between atoms.
#
# **Right**: larger sets make harder problems, but fewer, and less work in all. A signal of four atoms is
# processed four times in a sweep of single atoms, and once if all move together; and every small problem
# costs Python time to set up and to solve. The closed form of K-SVD avoids that. Nor is it necessary to
# solve a large problem to its minimum: the default of :class:`~manifold_dl.SimCO` makes five steps with all
# atoms, and then the sparse coder runs again.

# %%
# What order costs
# ----------------
#
# One atom at a time needs an order. Does it matter which? We try 20 random ones, and three ways to use
# each: keep it, draw a fresh one for every sweep, or run through it forwards and backwards in turn.

shown, kinds = 6, ("kept", "fresh every sweep", "there and back")
orders = {kind: [] for kind in kinds}
for kind in kinds:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        order = rng.permutation(d)
        D, X, course = D0, X0, []
        for _ in range(shown):
            D, X = mdl.KSVD(schedule=order[:, None])(Y, D, X)
            course.append(excess(D, X))
            if kind == "fresh every sweep":
                order = rng.permutation(d)
            elif kind == "there and back":
                order = order[::-1]
        orders[kind].append(course)

# %%
# Pale: the twenty orders. Strong: their mean.

figure, ax = plt.subplots(figsize=(7.6, 4.2))
for kind, colour, marker, shift in zip(kinds, (BLUE, GREEN, ORANGE), "osD", (-0.1, 0, 0.1), strict=True):
    results = np.array(orders[kind])
    x = np.arange(1, shown + 1) + shift
    ax.semilogy(x, results.T, marker, color=colour, alpha=0.25, ms=4)
    ax.semilogy(x, results.mean(axis=0), marker + "-", color=colour, ms=6, label=kind)
ax.set(xlabel="sweeps, one atom at a time", ylabel="(f − minimum) / ‖Y‖²", xticks=range(1, shown + 1))
ax.set_title("Twenty orders, used in three ways")
ax.legend(title="the order is")
means = {kind: np.mean(orders[kind], axis=0) for kind in kinds}
for kind in kinds:
    print(f"{kind:18s} mean excess after {shown} sweeps: {means[kind][-1]:.1e}")

# %%
# *Which* order it is matters little: within a kind the dots lie close together. What matters is how long an
# atom waits. In a kept order every atom waits for all others to move before it moves again. In a fresh
# order some come last in one sweep and first in the next, when nothing has changed for them; forwards and
# backwards that always happens. With all atoms at once there is no order, and no atom waits.

# %%
# Exercise
# --------
#
# When do blocks lose nothing against all atoms at once? Make signals that use three atoms each, all
# from one of eight groups of four. Compare blocks that are the groups with random blocks of four. (A
# schedule may be a list of index arrays.)
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# Blocks lose nothing where no signal uses atoms of two of them. Then f is a sum of functions of one group
# each, and one sweep over the groups is the whole problem. Random blocks of the same size divide the
# groups. If your atoms form groups, use them as blocks.

rng = np.random.default_rng(0)
groups = np.arange(d).reshape(8, 4)
mask = np.zeros((d, 400), dtype=bool)
for column in mask.T:
    column[rng.choice(groups[rng.integers(8)], 3, replace=False)] = True
Y_groups = whole.manifold.random_point(rng=2) @ (mask * rng.standard_normal(mask.shape))
Y_groups += 0.05 * rng.standard_normal(Y_groups.shape)

problem = mdl.update_problem(Y_groups, mask, mu=0.01)
after = {}
for name, schedule in {"groups": list(groups), "random blocks": Blocks(4), "all": AllAtoms()}.items():
    update = mdl.SimCO(optimizer=region, schedule=schedule, mu=0.01)
    D, _ = update(Y_groups, D0, problem.codes(D0), rng=3)
    after[name] = problem.cost(D) / problem.scale
    print(f"one sweep, {name:14s} f / ‖Y‖² = {after[name]:.4f}")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
#
# * K-SVD, SimCO and all block methods are one method with different sets of atoms.
# * With one atom the minimum is a singular vector, and every optimizer finds it: the other stationary
#   points are maxima and saddles.
# * Atoms that appear in the same signals should move together. Larger sets need fewer sweeps.
# * One at a time needs an order. Any order is good, if it is kept.

ends = np.array([abs(path[-1] @ u1) for path in paths])
assert ends.min() > 0.999  # every random start ends at the leading singular vector, up to its sign
assert abs(unlucky[-1] @ u2) > 0.999  # the malicious one at a pass
assert max(gaps.values()) < 1e-6 and max(map(abs, values.values())) < 1e-12  # any optimizer is an SVD
assert sweep_gap < 1e-8  # a sweep of them is K-SVD
assert abs((u * leading).sum()) > 1 - 1e-9 and np.allclose(shrunk, 1 / 1.5, rtol=1e-4)  # ridge or not
third = [courses[size][3, 1] for size in (1, 4, 16)]
assert third[0] > third[1] > third[2]  # larger sets go further
assert courses[32][1, 1] < 1e-8  # and all atoms together all the way
assert np.allclose(courses[1][:, 1], courses["K-SVD"][:, 1], rtol=1e-4)  # a trust region or an SVD, again
assert means["kept"][-1] < 0.7 * means["fresh every sweep"][-1]  # atoms should wait for the others
assert means["fresh every sweep"][-1] < 0.7 * means["there and back"][-1]
assert np.isclose(after["groups"], after["all"], rtol=1e-3) and after["random blocks"] > 2 * after["all"]

plt.show()
