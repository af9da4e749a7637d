"""
The dictionary update, and why the codes follow
===============================================

Signals are made of a few *atoms* each. To learn the atoms one has to choose two things at once: the
dictionary D that holds them, and the codes X that say how much of each atom is in each signal. The
obvious way is to take turns. This tutorial shows how slow that is, in the plane first and in 480
dimensions after that, and what to do instead: let X *follow* D, so that only D is left to choose.

You need NumPy, and what a gradient on a sphere is: :ref:`sphx_glr_tutorials_01_sphere.py`.
"""

# %%
# Pymanopt brings the optimizers, this package the problem that they solve.

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from scipy.optimize import minimize_scalar

import manifold_dl as mdl

plt.style.use(mdl.plotting.STYLE)
BLUE, ORANGE, GREEN, INK = "#0072B2", "#D55E00", "#009E73", "#202020"

# %%
# A circle and a line
# -------------------
#
# Take one signal y in the plane. It holds an unknown unit atom d(θ) = (cos θ, sin θ) exactly once, and
# an unknown amount x of an atom that we know, the horizontal e₁. The dictionary has one unknown, the
# angle θ, and the codes have one, x. We want both from
#
# .. math:: F(\theta, x) = \| y - d(\theta) - x\, e_1 \|^2 .
#
# There is a picture for that. The points :math:`d(\theta)` form a circle, the points :math:`y - x e_1`
# a horizontal line, and F is the squared distance from a point of the one to a point of the other. We
# look for a place where circle and line meet.


def atom(theta):
    return np.array([np.cos(theta), np.sin(theta)])


meeting = np.radians(70)
y = atom(meeting) + 1.0 * np.array([1, 0])


def F(theta, x):
    return (y[0] - np.cos(theta) - x) ** 2 + (y[1] - np.sin(theta)) ** 2


# %%
# Taking turns is now something that one can do with a ruler. With θ fixed, the best x brings us to the
# point of the line straight above d(θ). With x fixed, the best θ brings us to the point of the circle
# nearest to that.


def best_code(theta):
    return y[0] - np.cos(theta)


def best_angle(x):
    return np.arctan2(y[1], y[0] - x)


start, turns = np.radians(20), 40
angles, codes = [start], [best_code(start)]
for _ in range(turns):
    angles.append(best_angle(codes[-1]))
    codes.append(best_code(angles[-1]))

# %%
# Here is the path drawn with the ruler, and beside it the same path on a map of F.

figure, (plane, valley) = plt.subplots(1, 2, figsize=(10.4, 4.6))
arc = np.radians(np.linspace(-5, 120, 200))
plane.plot(*atom(arc), color=INK)
plane.axhline(y[1], color=INK)
path = [point for a in angles for point in (atom(a), (np.cos(a), y[1]))]
plane.plot(*np.array(path).T, ".-", color=ORANGE, lw=1, ms=5)
plane.plot(*atom(meeting), "o", ms=13, mec=GREEN, mfc="none", mew=2)
plane.annotate("start", atom(start), (8, -3), textcoords="offset points", color=ORANGE)
plane.annotate("they meet", atom(meeting), (-4, 14), textcoords="offset points", ha="center", color=GREEN)
plane.set(xlim=(-0.35, 1.25), ylim=(0.1, 1.2), aspect="equal")
plane.set(
    xlabel="first coordinate", ylabel="second coordinate", title="The circle of atoms, the line of codes"
)

theta, x = np.meshgrid(np.radians(np.linspace(10, 125, 200)), np.linspace(0.25, 1.8, 200))
levels = 0.5 ** np.arange(14, -1, -1) * 2
valley.contour(np.degrees(theta), x, F(theta, x), levels=levels, cmap="Greys_r", linewidths=0.7)
stairs = np.array(
    [(a, c) for k in range(turns) for a, c in ((angles[k], codes[k]), (angles[k + 1], codes[k]))]
)
valley.plot(np.degrees(stairs[:, 0]), stairs[:, 1], ".-", color=ORANGE, lw=1, ms=5, label="taking turns")
floor = np.linspace(start, meeting, 100)
valley.plot(np.degrees(floor), best_code(floor), color=BLUE, lw=5, alpha=0.45, label="following: one search")
valley.plot(np.degrees(meeting), best_code(meeting), "o", ms=13, mec=GREEN, mfc="none", mew=2)
valley.set(xlabel="the atom: θ in degrees", ylabel="the code: x", title="The same path in the valley of F")
valley.legend(loc="upper left")

# %%
# On the left the path bounces between circle and line, into a narrowing wedge. On the right are the
# level lines of the same F, which has a valley (and a second minimum: the line meets the circle twice).
# Every turn moves parallel to an axis, the valley is oblique, so the steps shrink. They shrink by the
# same factor every time:

errors = np.degrees(meeting - np.array(angles))
print("degrees off, every tenth turn:", errors[::10].round(4))
print(f"factor per turn: {errors[-1] / errors[-2]:.3f}")

# %%
# The remedy: x is not a variable
# -------------------------------
#
# For every θ the best x has a closed form. So put it in. What is left is a function of θ alone, the
# floor of the valley, and here it is the squared distance of d(θ) from the line:
#
# .. math:: f(\theta) = \min_x F(\theta, x) = (y_2 - \sin\theta)^2 .
#
# One search along θ finds its minimum, while x follows by itself. That is the blue curve above. Removing
# variables that have a closed form is called *variable projection*.


def f(theta):
    return F(theta, best_code(theta))


found = minimize_scalar(f, bounds=(start, np.radians(90)), method="bounded", options={"xatol": 1e-10}).x
print(f"following: {np.degrees(found):.6f}° after one search;  {turns} turns: {np.degrees(angles[-1]):.2f}°")

figure, ax = plt.subplots(figsize=(7.6, 4.4))
grid = np.radians(np.linspace(10, 92, 300))
for k in range(4):
    ax.plot(np.degrees(grid), F(grid, codes[k]), color=ORANGE, lw=1, alpha=0.6)
    run = np.linspace(angles[k], angles[k + 1], 30)
    ax.plot(np.degrees(run), F(run, codes[k]), color=ORANGE, lw=3)
    drop = [F(angles[k + 1], codes[k]), f(angles[k + 1])]
    ax.plot(np.degrees([angles[k + 1]] * 2), drop, "o-", color=ORANGE, lw=3, ms=4)
ax.plot(np.degrees(grid), f(grid), color=BLUE, lw=2.5, zorder=1)
ax.text(np.degrees(start) - 1.5, f(start), "start", ha="right", va="center")
ax.text(18, 0.14, "f: x follows", color=BLUE, ha="center")
ax.text(70, 0.4, "F(·, x), with the x of each turn", color=ORANGE, ha="right")
ax.set(xlabel="θ in degrees", ylabel="value", ylim=(-0.01, 0.45), xlim=(8, 92))
ax.set_title("f is the lower envelope of all F(·, x)")

# %%
# Look at this picture closely. Each orange curve holds x at one value. It *touches* the blue one where x is
# optimal, with the same slope, and lies above it elsewhere. Taking turns moves to the minimum of the orange
# curve, then down to the blue one, which is a point of the next orange curve. Each of them has a larger
# curvature than f, so each minimum is too near. Remember for later: **same slope, other curvature**.

# %%
# The same with thirty-two atoms
# ------------------------------
#
# Now a real problem. Y = DX has n = 150 signals of length m = 16 as columns, D has d = 32 unit atoms, and
# every column of X has S = 4 numbers that are not zero. *Where* they are, the support, is known in this
# tutorial: a sparse coder has found it. To make it interesting our atoms resemble each other, as those of
# real signals do.

m, d, n, S = 16, 32, 150, 4
spheres = mdl.manifolds.Spheres(m, d)
D_random, X_true, _ = mdl.datasets.synthetic(m, d, n, sparsity=S, rng=0)
D_true = spheres.closest(D_random + 1.5 / np.sqrt(m))  # every atom gets the same push
Y, support = D_true @ X_true, X_true.astype(bool)

mean_cosine = (D_true.T @ D_true)[~np.eye(d, dtype=bool)].mean()
print(f"mean cosine of two atoms: {mean_cosine:.2f}")

shown = 60
figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.0), width_ratios=[shown, d, shown])
for ax, matrix in zip(axes, (Y[:, :shown], D_true, X_true.toarray()[:, :shown]), strict=True):
    limit = np.abs(matrix).max()
    ax.imshow(matrix, cmap="RdBu", vmin=-limit, vmax=limit)
    ax.set(xticks=[], yticks=[])
axes[0].set_title(f"Y (the first {shown} signals): known")
axes[1].set_title("= D: wanted")
axes[2].set_title("× X: places known, numbers wanted")

# %%
# For a given D the best codes are n small least-squares problems, one for each signal. So X is
# projected out just like x was:
#
# .. math::
#
#    f(D) = \sum_{j=1}^{n} \; \min_x \; \|y_j - D_{\Omega_j} x\|^2 ,
#
# where :math:`D_{\Omega_j}` holds the atoms that signal j uses. What is left to choose is D, a point on
# a product of 32 spheres. :func:`~manifold_dl.update_problem` makes a Pymanopt problem of it. (With
# ``mu=`` it adds a ridge on the codes, which is the subject of
# :ref:`sphx_glr_tutorials_07_ill_conditioned.py`.)

following = mdl.update_problem(Y, support)
direction = spheres.random_tangent_vector(D_true, rng=1)
D_start = spheres.exp(D_true, 0.6 * np.sqrt(d) * direction)  # atoms are off by 0.6 radians, or 34°

print(f"{spheres.dim} unknowns instead of {spheres.dim + support.nnz}")
print(f"f(start) / ‖Y‖² = {following.cost(D_start) / following.scale:.2f}")
print(f"f(truth) / ‖Y‖² = {following.cost(D_true) / following.scale:.0e}")

# %%
# Same slope, other curvature: move from the start downhill along a geodesic, with codes that stay and
# with codes that follow.

staying = mdl.update_problem(Y, following.codes(D_start), codes="fixed")
downhill = -following.riemannian_gradient(D_start)
downhill /= spheres.norm(D_start, downhill)
restrictions = {
    "codes stay": (staying.restrict(D_start, downhill), ORANGE),
    "codes follow": (following.restrict(D_start, downhill), BLUE),
}

figure, ax = plt.subplots(figsize=(7.6, 4.2))
t = np.linspace(0, 4, 201)
for name, (phi, colour) in restrictions.items():
    values = np.array([phi(s) for s in t]) / phi(0)
    ax.plot(t, values, color=colour, lw=2.5, label=name)
    ax.plot(t[values.argmin()], values.min(), "o", color=colour, ms=8)
slopes = [phi.derivative(0) / phi(0) for phi, _ in restrictions.values()]
ax.plot(t[:70], 1 + slopes[0] * t[:70], ":", color=INK, label="the tangent of both")
ax.set(
    xlabel="length of the way t (radians, over all atoms)", ylabel="f, relative to the start", ylim=(0, 1.3)
)
ax.set_title("Codes that follow reach further, and lower")
ax.legend()
print("slopes at the start:", np.round(slopes, 6))

# %%
# That the slopes agree is the *envelope theorem*. At the best codes F does not change with X to first
# order, so the gradient of f is the one that belongs to constant codes, :math:`-2 (Y - DX) X^T`.
# Following changes nothing in the gradient. It changes the curvature.

# %%
# The race
# --------
#
# Taking turns, at its strongest, solves both halves exactly: D by least squares (this is
# :class:`~manifold_dl.MOD`, the method of optimal directions), then X by least squares. Against it we
# set three optimizers on f: steepest descent, conjugate gradients, and a trust region with the exact
# Hessian of f, codes and all.

rounds, D = 150, D_start
history = {"taking turns": [following.cost(D)]}
for _ in range(rounds):
    D, _ = mdl.MOD()(Y, D, following.codes(D))
    history["taking turns"].append(following.cost(D))
D_turns = D

settings = {"min_gradient_norm": 1e-12, "min_step_size": 0, "verbosity": 0}
optimizers = {
    "following, steepest descent": SteepestDescent(mdl.WolfeSearch(), max_iterations=rounds, **settings),
    "following, conjugate gradients": ConjugateGradient(
        line_searcher=mdl.WolfeSearch(), max_iterations=rounds, **settings
    ),
    "following, trust region": TrustRegions(max_iterations=rounds, **settings),
}
for name, optimizer in optimizers.items():
    problem = mdl.update_problem(Y, support)
    optimizer.run(problem, initial_point=D_start)
    history[name] = [iterate.value for iterate in problem.record]

# %%
# For comparison also the other half of the question: steepest descent that does *not* follow. It moves to
# the lowest point for constant codes, and only then solves for the codes.

one_step = SteepestDescent(mdl.WolfeSearch(), max_iterations=1, **settings)
D, values = D_start, [following.cost(D_start)]
for _ in range(rounds):
    problem = mdl.update_problem(Y, following.codes(D), codes="fixed")
    D = one_step.run(problem, initial_point=D).point
    values.append(following.cost(D))
history["staying, steepest descent"] = values

# %%
# Can we predict how slow taking turns will be? On the circle f has cos² 70° = 0.12 of the curvature of
# the orange curves, near the minimum, and a turn left 1 − 0.12 = 0.88 of the error. Here it is the
# same, direction by direction: we compare the curvature of f with that of constant codes, whose Hessian
# takes a direction E to :math:`2 E X X^T`.
#
# There is one difference. The circle kept its atom at length 1. MOD solves for D *without* a constraint
# and normalises afterwards, so while it solves, the atoms are free to change their lengths, and that
# makes constant codes less stiff. Sort the directions into those that turn atoms, T, and those that
# only stretch them, R, and write the Hessian K of constant codes in four blocks. If the stretch is
# whatever suits the turn best, what is left of K for a turn is its *Schur complement*,
#
# .. math:: \min_R \; K[T + R,\, T + R] \;\; \text{has the matrix} \;\;
#           K_{TT} - K_{TR}\, K_{RR}^{-1} K_{RT} .
#
# (f itself does not depend on a stretch: codes that follow undo it.) A round multiplies the error by
# :math:`1 - \rho` in each direction, with ρ the ratio of the two curvatures. The smallest ρ determines the
# rate in the end: every round leaves :math:`1 - \rho` of the error, and :math:`(1-\rho)^2` of f.

turning, stretching = [], []
for i in range(d):
    for vector in scipy.linalg.null_space(D_true[:, [i]].T).T:
        turning.append(np.zeros((m, d)))
        turning[-1][:, i] = vector
    stretching.append(np.zeros((m, d)))
    stretching[-1][:, i] = D_true[:, i]


def products(directions, images):
    """The matrix of all inner products ⟨E, H[E']⟩."""
    return np.reshape(directions, (len(directions), -1)) @ np.reshape(images, (len(images), -1)).T


XX = (X_true @ X_true.T).toarray()
K_TT, K_TR, K_RR = (
    products(left, [2 * E @ XX for E in right])
    for left, right in ((turning, turning), (turning, stretching), (stretching, stretching))
)
stay = K_TT - K_TR @ np.linalg.solve(K_RR, K_TR.T)
follow = products(turning, [following.euclidean_hessian(D_true, E) for E in turning])
ratios = scipy.linalg.eigh(follow, stay, eigvals_only=True)
predicted = (1 - ratios[0]) ** 2
without_stretch = (1 - scipy.linalg.eigh(follow, K_TT, eigvals_only=True)[0]) ** 2

# %%
# The errors in other directions have to vanish before we see it, so we continue for another sixty
# rounds and look at the last thirty.

turns_taken = list(history["taking turns"])
D = D_turns
for _ in range(60):
    D, _ = mdl.MOD()(Y, D, following.codes(D))
    turns_taken.append(following.cost(D))
observed = (turns_taken[-1] / turns_taken[-31]) ** (1 / 30)
print(f"smallest ratio of curvatures: {ratios[0]:.4f}")
print(f"what a round leaves of f: {predicted:.4f} predicted, {observed:.4f} observed")
print(f"(it would be {without_stretch:.4f} if the atoms had to keep their lengths)")

# %%
# Left, the ratios of all 480 directions. Right, the race.

figure, (spectrum, race) = plt.subplots(1, 2, figsize=(10.4, 4.4), width_ratios=[2, 3])
spectrum.plot(np.arange(1, len(ratios) + 1), ratios, color=INK, lw=2)
spectrum.plot(1, ratios[0], "o", color=ORANGE, ms=8)
spectrum.annotate("determines the rate", (1, ratios[0]), (14, -4), textcoords="offset points", color=ORANGE)
spectrum.set(xlabel="direction, sorted", ylabel="curvature: codes follow / codes stay", ylim=(0, 1.05))
spectrum.set_title("What the codes take off")
places = {"taking turns": (52, 3e-9), "following, steepest descent": (62, 1e-3)}
places |= {"following, conjugate gradients": (76, 3e-21), "following, trust region": (14, 1e-28)}
places |= {"staying, steepest descent": (62, 0.1)}
for (name, values), colour in zip(history.items(), (ORANGE, "#66717D", GREEN, BLUE, "#CC79A7"), strict=True):
    dash = "--" if name.startswith("staying") else "-"
    race.semilogy(np.array(values) / following.scale, dash, color=colour, lw=2)
    race.text(*places[name], name, color=colour)
k = np.array([90, rounds])
line = turns_taken[90] / following.scale * predicted ** (k - 90)
race.semilogy(k, 0.02 * line, "--", color=INK, lw=1)
race.text(151, 2e-16, "dashed: the slope predicted", color=INK, ha="right")
race.set(xlabel="steps, or rounds of two turns", ylabel="f / ‖Y‖²", ylim=(1e-31, 30))
race.set_title("Five ways down the same valley")

# %%
# Two directions of three have a ratio above 0.8: there it matters little what the codes do. But in some the
# codes can undo nearly all that a move of the atoms does, and those make the valley. Taking turns goes down
# it at the predicted rate. The trust region uses the true curvature and is at rounding level within a dozen
# steps or so. (Its steps are more expensive than a round. We shall count.)
#
# And steepest descent? It is the slowest of all, and whether its codes follow or stay makes no visible
# difference: the two lines lie on each other. That is the envelope theorem again. Steepest descent uses
# slopes only, and the slopes are the same. Following helps methods that use curvature. Conjugate gradients
# estimate it, from step to step; the trust region has the exact Hessian. More of that in
# :ref:`sphx_glr_tutorials_04_solvers.py`.

# %%
# Exercise
# --------
#
# Back to circle and line. Draw the line at the height where it meets the circle at 30°, 60° or 85°. For
# which of them does taking turns do well? Find the factor per turn with a ruler, near the place where
# the two meet, before you unfold the answer.
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# Close up the circle is a straight line, too, at an angle of 90° − θ to the horizontal one. To drop
# from one line onto the other multiplies the distance to the crossing by the cosine of that angle, sin
# θ. A turn drops twice: the factor is sin²θ. Where the two meet steeply (30°) three quarters of the
# error go with every turn. At 85° they are nearly parallel, and a decimal digit takes some 300 turns.
# That is an atom whose movement the codes can undo.

factors = {}
for degrees in (30, 60, 85):
    height, a = np.sin(np.radians(degrees)), np.radians(degrees - 1)
    for _ in range(5):
        before, a = a, np.arctan2(height, np.cos(a))
    factors[degrees] = (np.radians(degrees) - a) / (np.radians(degrees) - before)
    digit = np.log(0.1) / np.log(np.sin(np.radians(degrees)) ** 2)
    print(f"{degrees}°: factor {factors[degrees]:.3f}, sin² = {height**2:.3f}: {digit:.0f} turns a digit")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
#
# * X has a closed form for every D, so it need not be a variable: variable projection leaves a problem
#   on the spheres.
# * f is the lower envelope of the objectives with constant codes: the same slope, and less curvature.
# * Taking turns converges at a rate that the ratio of the curvatures predicts. On a circle and a line
#   it is sin²θ.
# * Following helps optimizers that use curvature; for steepest descent it hardly matters.
#
# These lines would fail if it were not so.

assert abs(found - meeting) < 1e-6 and errors[-1] > 0.01  # one search against forty turns, in degrees
assert np.isclose(slopes[0], slopes[1])  # the envelope theorem
phi_stay, phi_follow = (phi for phi, _ in restrictions.values())
assert all(phi_follow(s) <= phi_stay(s) * (1 + 1e-9) for s in t)  # f is the lower envelope
assert ratios[0] > 0 and ratios[-1] < 1 + 1e-6  # codes that follow take curvature off, never all of it
assert np.mean(ratios > 0.8) > 0.6  # in most directions it matters little what the codes do
assert abs(predicted - observed) < 0.002  # the pace of taking turns is foretold, and ...
assert abs(without_stretch - observed) > 0.005  # ... it takes the lengths of the atoms to do so
final = {name: values[-1] / following.scale for name, values in history.items()}
assert len(history["following, trust region"]) < 40 and final["following, trust region"] < 1e-20
assert final["taking turns"] > 1e-16  # after 150 rounds
assert final["following, steepest descent"] > final["taking turns"]  # slopes alone do not help
follows, stays = (history[f"{codes}, steepest descent"][100] for codes in ("following", "staying"))
assert 0.2 < follows / stays < 5  # steepest descent hardly notices, where others are orders apart
assert final["following, conjugate gradients"] < 1e-20
assert all(np.isclose(factors[a], np.sin(np.radians(a)) ** 2, atol=0.02) for a in factors)

plt.show()
