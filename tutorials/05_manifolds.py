"""
Swapping manifolds
==================

A manifold says where a dictionary may move. Swap it, and the signals, the objective and the solver stay
as they are: one argument changes. This tutorial tries five of them and shows each time what changes and
what does not: why norms are fixed, when signs matter, how atoms of pictures can leave the brightness
out, and how more knowledge about the atoms makes fewer signals suffice.

You need NumPy, and an idea of the dictionary update: :ref:`sphx_glr_tutorials_03_dictionary_update.py`.
"""

# %%
# One argument
# ------------
#
# Every argument ``manifold=`` of this package takes a *factory*: anything that is called with (m,
# k) and returns a manifold of m×k matrices, an atom in every column. Here are five, for 16 atoms of
# length 16. The dimension is the number of ways in which a dictionary can move.

import matplotlib.pyplot as plt
import numpy as np
import scipy.fft
from pymanopt.optimizers import TrustRegions
from sklearn.datasets import load_digits, load_sample_image

import manifold_dl as mdl
from manifold_dl.manifolds import Euclidean, Lines, NonNegative, Orthonormal, Spheres, ZeroMean

plt.style.use(mdl.plotting.STYLE)
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7A7A7A"

m = 16
_, X, _ = mdl.datasets.synthetic(m, m, 200, sparsity=3, rng=0)
support = X.astype(bool)
Y = Orthonormal(m, m).random_point(rng=1) @ X + 0.05 * np.random.default_rng(2).standard_normal((m, 200))

print(f"{'':12s} dimension   error   norms of atoms   largest mean   largest product of two")
for factory in (Euclidean, Spheres, Lines, ZeroMean, Orthonormal):
    problem = mdl.update_problem(Y, support, manifold=factory)
    start = problem.manifold.random_point(rng=3)
    D = TrustRegions(max_iterations=30, verbosity=0).run(problem, initial_point=start).point
    error, norms = problem.cost(D) / problem.scale, np.linalg.norm(D, axis=0)
    mean, product = np.abs(D.mean(axis=0)).max(), np.abs(D.T @ D - np.diag(norms**2)).max()
    row = f"{factory.__name__:12s} {problem.manifold.dim:9d} {error:7.4f}"
    print(f"{row}   {norms.min():5.2f} to {norms.max():5.2f} {mean:14.2f} {product:24.2f}")

# %%
# The same signals, the same solver. Spheres and lines give the same numbers. Euclidean space has 16
# dimensions more, and gains nothing by them but norms of any size. Here the true atoms are
# orthonormal, so that manifold fits well with half the freedom; and they have means, so
# ``ZeroMean`` cannot fit. Let us look at them one by one.

# %%
# Euclidean: why norms are fixed
# ------------------------------
#
# Make an atom twice as long and halve its codes: DX is the same. So without a ridge f does not depend on
# norms at all, and the 16 additional dimensions gain nothing. With a ridge it is worse:
#
# .. math:: f(D) = \sum_j \min_x \|y_j - D_{\Omega_j} x\|^2 + \mu \|x\|^2
#
# penalizes the codes. The penalty can be made small by atoms that grow, while their codes shrink.

rounds = 40
history = {}
for factory in (Euclidean, Spheres):
    update = mdl.SimCO(manifold=factory, mu=0.1)
    problem = mdl.update_problem(Y, support, manifold=factory, mu=0.1)
    D = Spheres(m, m).random_point(rng=3)
    X = problem.codes(D)
    history[factory.__name__] = []
    for _ in range(rounds):
        D, X = update(Y, D, X)
        norms = np.linalg.norm(D, axis=0)
        history[factory.__name__].append([problem.cost(D) / problem.scale, norms.mean(), abs(X).sum()])

figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4))
for (name, columns), colour in zip(history.items(), (ORANGE, BLUE), strict=True):
    for ax, column in zip(axes, np.transpose(columns), strict=True):
        ax.semilogy(np.arange(1, rounds + 1), column, color=colour, lw=2, label=name)
for ax, title in zip(axes, ("objective f / ‖Y‖²", "mean norm of an atom", "Σ |x|, all codes"), strict=True):
    ax.set(title=title, xlabel="updates")
axes[1].legend()
print({name: f"f / ‖Y‖² = {columns[-1][0]:.4f} in the end" for name, columns in history.items()})

# %%
# In Euclidean space the objective falls to about 0.01, and that is not a success. It is the error without a
# ridge, from the table above: the dictionary has evaded the penalty. Nor does it converge. The norms grow
# without bound, since the lowest value is at infinity. On the spheres the ridge means something, and
# descent ends after a few updates.

# %%
# Lines: when signs matter
# ------------------------
#
# An atom and its negative are the same atom to us, for the codes absorb the sign. So f has every
# minimum twice, on opposite sides of the sphere, and with 16 atoms :math:`2^{16}` times. Does it
# matter? Not to a descent, which ends at the nearest. But it does as soon as two dictionaries are
# compared or averaged.
#
# Say two people learn a dictionary, each from one half of the signals.

rng = np.random.default_rng(4)
D_true, X, Y = mdl.datasets.synthetic(m, 24, 300, sparsity=3, snr_db=15, rng=5)
spheres, lines = Spheres(m, 24), Lines(m, 24)
rough = spheres.retraction(D_true, 0.1 * rng.standard_normal(D_true.shape))
halves = []
for half in (slice(0, 150), slice(150, 300)):
    problem = mdl.update_problem(Y[:, half], X[:, half].astype(bool), mu=1e-3)
    start = rough * rng.choice([-1, 1], 24)  # with random signs
    halves.append(TrustRegions(verbosity=0).run(problem, initial_point=start).point)


def degrees_off(D):
    """The mean angle between the lines of D and of the truth."""
    return np.degrees(np.arccos(np.clip(np.abs(np.sum(D * D_true, axis=0)), 0, 1))).mean()


means = {"Spheres": spheres.pair_mean(*halves), "Lines": lines.pair_mean(*halves)}
print("each of the two is off by", [f"{degrees_off(D):.1f}°" for D in halves])
for name, manifold in (("Spheres", spheres), ("Lines", lines)):
    print(
        f"{name:8s} distance {manifold.dist(*halves):5.2f} radians, their mean is off by "
        f"{degrees_off(means[name]):4.1f}°"
    )

# %%
# :class:`~manifold_dl.manifolds.Lines` has the two close to each other, and their mean is better than
# either, as a mean should be. On the spheres half of the atoms have met their own negatives on the other
# side. The geodesic between the two dictionaries shows it:

figure, (circle, way) = plt.subplots(1, 2, figsize=(10.4, 3.8))
theta = np.linspace(0, 2 * np.pi, 361)
pair = np.array([[2.0, 1.6, 1.0], [1.0, 1.1, 0.2]])  # three signals in the plane, one atom
f = np.sum(pair**2) - np.sum((np.array([np.cos(theta), np.sin(theta)]).T @ pair) ** 2, axis=1)
circle.plot(np.degrees(theta), f, color=GREY)
for k in (f[:180].argmin(), 180 + f[180:].argmin()):
    circle.plot(np.degrees(theta[k]), f[k], "o", color=BLUE, ms=9)
circle.set(xticks=range(0, 361, 90), xlabel="angle of the atom (degrees)", ylabel="f")
circle.set_title("One atom in the plane: one line, two minima")

problem = mdl.update_problem(Y, X.astype(bool), mu=1e-3)
t = np.linspace(0, 1, 61)
for manifold, colour in ((spheres, ORANGE), (lines, BLUE)):
    step = manifold.log(*halves)
    costs = [problem.cost(manifold.exp(halves[0], s * step)) / problem.scale for s in t]
    way.plot(t, costs, color=colour, lw=2, label=type(manifold).__name__)
way.set(xlabel="from the first dictionary (0) to the second (1)", ylabel="f / ‖Y‖²", ylim=(0, None))
way.set_title("The geodesic from one half to the other")
way.legend()

# %%
# On the spheres a high maximum lies between them, only because of the signs. Everything local is
# *unchanged*: gradients, geodesics and Hessians of the two are the same, and so is a descent.

# %%
# ZeroMean: pictures and their brightness
# ---------------------------------------
#
# Patches of a photograph differ in brightness more than in anything else. It is common to represent the
# brightness apart, by a constant atom, and the structure by atoms without mean. A factory and a
# schedule say exactly that: the first atom is constant and not in the schedule, so it never moves; the
# others move on :class:`~manifold_dl.manifolds.ZeroMean`. We compare with the spheres, with and without
# a constant atom. All three start at the same patches, and each patch may use four atoms.

grey = load_sample_image("china.jpg").mean(axis=2) / 255
windows = np.lib.stride_tricks.sliding_window_view(grey, (8, 8)).reshape(-1, 64)
patches = windows[np.random.default_rng(0).choice(len(windows), 3000, replace=False)].T

d = 64
start = Spheres(64, d).closest(patches[:, :d])
start[:, 0] = 1 / 8  # constant, of norm 1
others = [np.arange(1, d)]
updates = {
    "Spheres, all atoms": mdl.SimCO(mu=0.05),
    "Spheres + constant": mdl.SimCO(mu=0.05, schedule=others),
    "ZeroMean + constant": mdl.SimCO(mu=0.05, schedule=others, manifold=ZeroMean),
}
coder = mdl.OMP(sparsity=4)
learned = {
    name: mdl.learn_dictionary(
        patches, d, coder=coder, update=update, init=start, max_iter=10, replace=None, rng=0
    ).dictionary
    for name, update in updates.items()
}

# %%
# Now add light: the same patches, all brighter by 0.3. The structure has not changed. Have the codes?

structure = np.linalg.norm(patches - patches.mean(axis=0)) ** 2
unmoved, errors = {}, {}
for name, D in learned.items():
    dark, bright = coder.encode(patches, D), coder.encode(patches + 0.3, D)
    same = (dark.toarray()[1:] != 0) == (bright.toarray()[1:] != 0)  # which atoms, but for the first
    unmoved[name] = same.all(axis=0).mean()
    errors[name] = np.linalg.norm(patches - D @ dark) ** 2 / structure
    print(
        f"{name:20s} error {errors[name]:.2f}   same atoms in the light: {unmoved[name]:4.0%} of the patches"
    )

figure, axes = plt.subplots(1, 3, figsize=(10.4, 4.2))
for ax, (name, D) in zip(axes, learned.items(), strict=True):
    mdl.plotting.plot_atoms(D, ax=ax)
    ax.images[0].set_clim(-1, 1)
    ax.set_title(f"{name}\nunmoved by the light: {unmoved[name]:.0%}")

# %%
# Left, every atom carries brightness (zero is middle grey), and more light needs other atoms. In the middle
# there is a constant atom, but the others keep some of the brightness they began with. On the right it is
# impossible by construction: the atoms are orthogonal to the constant one, and do not depend on brightness.
# What the geometry excludes needs no penalty.

# %%
# Orthonormal: knowing more, needing less
# ---------------------------------------
#
# If the atoms are known to be orthonormal (a *transform*), a dictionary has fewer ways to move: 120
# instead of 240 for m = 16. Every signal of sparsity S gives m − S = 13 equations for the atoms
# (:ref:`sphx_glr_tutorials_09_counting_bound.py`). So on the spheres no method can do with fewer than
# 240/13 ≈ 18.5 signals, and with orthonormal atoms the bound is 120/13 ≈ 9.2. Let us hide the cosine
# transform, the one in every JPEG, in 18 signals: just too few for the spheres.

cosines = scipy.fft.idct(np.eye(m), axis=0, norm="ortho")
_, X, _ = mdl.datasets.synthetic(m, m, 18, sparsity=3, rng=1)
Y = cosines @ X
recovered = {}
for factory in (Spheres, Orthonormal):
    D = factory(m, m).random_point(rng=10)
    for mu in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0):  # a ridge that is reduced: see tutorial 7
        problem = mdl.update_problem(Y, X.astype(bool), manifold=factory, mu=mu)
        solver = TrustRegions(max_iterations=60, min_gradient_norm=1e-10 * problem.scale, verbosity=0)
        D = solver.run(problem, initial_point=D).point
    fraction = mdl.metrics.recovery(D, cosines)
    recovered[factory.__name__] = fraction, problem.cost(D) / problem.scale, D
    print(f"{factory.__name__:12s} error {recovered[factory.__name__][1]:.0e}, atoms found: {fraction:.0%}")

figure, axes = plt.subplots(2, 6, figsize=(10.4, 3.4), sharex=True, sharey=True)
for row, (name, (_, _, D)) in zip(axes, recovered.items(), strict=True):
    for k, ax in enumerate(row):
        sign = np.sign(D[:, k] @ cosines[:, k])
        ax.plot(cosines[:, k], color=GREY, lw=5, alpha=0.4)
        ax.plot(sign * D[:, k], "o-", color=BLUE if name == "Orthonormal" else ORANGE, ms=3)
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)
title = "Six of the sixteen cosines: hidden (grey) and learned (dots)"
figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="normal")

# %%
# Both fit the signals to rounding. But on the spheres a whole surface of dictionaries fits 18 signals
# exactly, and the one that was found has about a third of its atoms right. The orthonormal one is
# exact.

# %%
# Exercise
# --------
#
# scikit-learn brings 1,797 handwritten digits of 8×8 pixels (``load_digits``). A pixel is an amount of
# ink, which is never negative. Learn 36 atoms with four to a digit, on
# :class:`~manifold_dl.manifolds.Spheres` and on :class:`~manifold_dl.manifolds.NonNegative`, and draw
# them. Which do you find easier to read? What does the constraint cost?
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# On the spheres ink comes in both signs: a digit may be white or black, with a halo of the other. On
# ``NonNegative`` atoms are made of ink, in strokes and whole digits. (Codes may still be negative: that
# depends on the coder.) It costs little error.

digits = load_digits().data.T / 16
inks = {}
figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.8))
for ax, factory in zip(axes, (Spheres, NonNegative), strict=True):
    result = mdl.learn_dictionary(
        digits,
        36,
        coder=coder,
        # A strong solver: roots, which NonNegative moves, take longer to turn than atoms.
        update=mdl.SimCO(TrustRegions(max_iterations=6, verbosity=0), manifold=factory, mu=0.05),
        max_iter=12,
        init="random",
        rng=0,
    )
    error = np.linalg.norm(digits - result.dictionary @ result.codes) ** 2 / np.linalg.norm(digits) ** 2
    inks[factory.__name__] = result.dictionary, error
    mdl.plotting.plot_atoms(result.dictionary, ax=ax)
    ax.images[0].set_clim(-1, 1)
    ax.set_title(f"{factory.__name__}: error {error:.1%}")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
#
# * A manifold is one argument. Signals, supports, objective and solver do not change.
# * Norms are fixed because a ridge without fixed norms has no minimum.
# * f does not depend on signs. Use lines where dictionaries are compared.
# * What is known of the atoms belongs into the geometry: it holds exactly, costs no penalty, and fewer
#   signals suffice.

euclidean, sphere = np.array(history["Euclidean"]), np.array(history["Spheres"])
assert euclidean[-1, 1] > 2 * euclidean[0, 1] and sphere[-1, 1] < 1 + 1e-9  # norms grow, or are fixed
assert euclidean[-1, 0] < 0.5 * sphere[-1, 0]  # ... which evades the ridge
assert spheres.dist(*halves) > 3 * lines.dist(*halves)  # the sign is most of the distance
assert degrees_off(means["Lines"]) < min(map(degrees_off, halves))  # a mean that is better than either
assert degrees_off(means["Spheres"]) > 3 * degrees_off(means["Lines"])  # and one that is not
assert unmoved["ZeroMean + constant"] > 0.99 and unmoved["Spheres, all atoms"] < 0.8  # brightness is apart
assert np.abs(learned["ZeroMean + constant"][:, 1:].mean(axis=0)).max() < 1e-12
assert recovered["Orthonormal"][0] == 1.0 and recovered["Spheres"][0] < 0.8  # 18 signals suffice for one
assert recovered["Spheres"][1] < 1e-12  # though the other fits as well
assert inks["NonNegative"][0].min() >= 0 and inks["NonNegative"][1] < 1.3 * inks["Spheres"][1]

plt.show()
