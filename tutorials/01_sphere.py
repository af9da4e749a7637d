"""
A function on a sphere
======================

Gradient descent moves downhill. But what if it may not leave the surface of a ball? Then three things
change: which way is down, how to take a step, and what "straight on" means. The sphere is the simplest
*manifold*: a curved space that looks flat from close up. We draw all three ideas on it, and end with a
descent that stays on the sphere.

You need to know NumPy, and nothing about manifolds.
"""

# %%
# A direction that explains a cloud
# ---------------------------------
#
# Here are 200 points :math:`y_j` in space. Which straight line through the origin passes closest to all of
# them? A line is given by its direction, a vector :math:`x` of length 1. The squared distance of
# :math:`y_j` to the line is :math:`\|y_j\|^2 - (x^\top y_j)^2`, by Pythagoras, and so we look for the
# direction that makes the sum
#
# .. math:: f(x) = \sum_j [\, \|y_j\|^2 - (x^\top y_j)^2 \,] = \|Y\|^2 - \|Y^\top x\|^2, \;\; \|x\| = 1
#
# as small as it can be. The points are the columns of :math:`Y`. We scale them so that :math:`\|Y\|^2 = 1`:
# then :math:`f(x)` is the fraction of the cloud that the line does *not* explain.

import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from pymanopt.optimizers import SteepestDescent

import manifold_dl as mdl
from manifold_dl.plotting import plot_convergence, plot_sphere_path

plt.style.use(mdl.plotting.STYLE)
rng = np.random.default_rng(3)

axes_of_cloud = np.linalg.qr([[0.80, 0.53, 0.12], [0.10, 0.07, -0.88], [0.60, -0.72, 0.0]])[0]
Y = axes_of_cloud @ np.diag([3.0, 1.7, 0.6]) @ rng.standard_normal((3, 200))
Y /= np.linalg.norm(Y)


def f(x):
    return 1 - np.sum((Y.T @ x) ** 2)


# %%
# All directions together are the unit sphere, and :math:`f` is a function on it. Let us look at it before
# we compute anything. Dark is low, and along each white line :math:`f` stays the same.

VIEW = (24, -35)  # where we look from: elevation and azimuth, in degrees
figure = plt.figure(figsize=(9.6, 4.4))
cloud = figure.add_subplot(1, 2, 1, projection="3d")
cloud.scatter(*Y, s=9, color="#0072B2", alpha=0.6)
cloud.set(title="A cloud from the side, and ...", xlim=(-0.13, 0.13), ylim=(-0.13, 0.13), zlim=(-0.13, 0.13))
cloud.set(xticklabels=[], yticklabels=[], zticklabels=[])
cloud.set_box_aspect((1, 1, 1), zoom=1.1)
cloud.view_init(10, -80)
ball = figure.add_subplot(1, 2, 2, projection="3d")
plot_sphere_path(cost=f, view=VIEW, ax=ball)
ball.set_title("... f, for every direction")

# %%
# The dark valley is where we want to go. There is a second one on the far side, and it is just as deep: a
# line has two directions, :math:`x` and :math:`-x`. The yellow hill is the direction that explains least.

# %%
# What goes wrong without geometry
# --------------------------------
#
# Gradient descent needs :math:`\nabla f(x) = -2\,Y Y^\top x`. Let us take a few steps as in flat space.


def gradient(x):
    return -2 * Y @ (Y.T @ x)


start = np.array([0.12, -0.81, 0.57])
start /= np.linalg.norm(start)

x = start
for step in range(7):
    print(f"step {step}:  ‖x‖ = {np.linalg.norm(x):6.2f}   f = {f(x):8.2f}")
    x = x - 0.7 * gradient(x)

# %%
# The fraction that is left unexplained becomes negative! The formula for :math:`f` means something on the
# sphere only, and the descent has left it at once, because longer vectors give smaller numbers. We could
# divide :math:`x` by its length afterwards. But let us understand what we are doing.

# %%
# Which way is down? The tangent space
# ------------------------------------
#
# At a point :math:`x` of the sphere, the directions in which you can move are those at right angles to
# :math:`x`: together they are a plane, the **tangent space** at :math:`x`. The gradient points out of it,
# partly. The part along :math:`x` would lead off the sphere, so we take it away:
#
# .. math:: \operatorname{grad} f(x) = \nabla f(x) - x\,(x^\top \nabla f(x)).
#
# What remains is the **Riemannian gradient**: of all directions in which one can move, it is that of
# steepest ascent.


def project(x, v):
    return v - x * (x @ v)


downhill = -project(start, gradient(start))
print(f"along x: {start @ downhill:.1e}")

# %%
# In the picture the plane touches the sphere at :math:`x`. The white arrow is :math:`-\nabla f(x)`; the red
# one is its shadow in the plane, :math:`-\operatorname{grad} f(x)`, and crosses the level line at a right
# angle.

ax = plot_sphere_path([start], cost=f, view=(6, -25), color="black")
ax.figure.set_size_inches(5.6, 5.2)
ahead = downhill / np.linalg.norm(downhill)
aside = np.cross(start, ahead)
square = start + 0.48 * np.array([ahead + aside, ahead - aside, -ahead - aside, -ahead + aside])
plane = Poly3DCollection([square], facecolor="#E69F00", edgecolor="black", alpha=0.3, zorder=5)
ax.add_collection(plane)
for vector, colour in ((-gradient(start), "white"), (downhill, "#D55E00")):
    for width, ink in ((4.5, "black"), (2.5, colour)):
        ax.quiver(*start, *vector, color=ink, linewidth=width, arrow_length_ratio=0.15, zorder=6)
for artist in ax.collections:
    artist.set(clip_on=False, in_layout=False)
ax.set_title("The tangent space at x, and the gradient in it", pad=18)

# %%
# Does the projected gradient really say how :math:`f` changes on the sphere? Move by a tiny :math:`t` to
# either side, in some direction :math:`v` of the tangent space (and divide by the length, to be on the
# sphere again). The slope that we measure should be the inner product of the gradient with :math:`v`.

v = project(start, rng.standard_normal(3))
t = 1e-6
ahead_of_x, behind_x = start + t * v, start - t * v
measured = (f(ahead_of_x / np.linalg.norm(ahead_of_x)) - f(behind_x / np.linalg.norm(behind_x))) / (2 * t)
predicted = -downhill @ v
print(f"measured slope {measured:.8f}, predicted by the gradient {predicted:.8f}")

# %%
# How to take a step: retraction and geodesic
# -------------------------------------------
#
# A step along the tangent ends beside the sphere. There are two ways to correct that.
#
# * A **retraction** leaves the sphere and is scaled back: :math:`(x + v) / \|x + v\|`.
# * The **geodesic** never leaves. It is the straightest path there is on the sphere, the great circle that
#   an aeroplane flies. After the length :math:`\theta = \|v\|` it is at
#   :math:`\exp_x(v) = x \cos\theta + v \sin\theta / \theta`, the *exponential map*.


def retract(x, v):
    return (x + v) / np.linalg.norm(x + v)


def exp(x, v):
    theta = np.linalg.norm(v)
    return x * np.cos(theta) + v * np.sinc(theta / np.pi)  # np.sinc(s) is sin(πs)/(πs), and 1 at 0


# %%
# Cut the sphere along the plane of :math:`x` and :math:`v`, and you see a circle. A step of length
# :math:`t` turns the geodesic by the angle :math:`t`, and the retraction by the angle whose tangent is
# :math:`t`. That is less, but for small steps only by :math:`t - \arctan t \approx t^3/3`. Descent takes
# many steps and corrects itself at each of them, so the cheaper one will often do.

x, v = np.array([0.0, 1.0]), np.array([0.9, 0.0])
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2))
angle = np.linspace(-0.6, 1.6, 200)
left.plot(np.sin(angle), np.cos(angle), color="#7A7A7A")
left.annotate("", x + v, x, arrowprops={"arrowstyle": "->", "linewidth": 2, "color": "#D55E00"})
left.plot(*np.transpose([[0, 0], x + v]), ":", color="#0072B2")
left.plot(*np.transpose([exp(x, s * v) for s in np.linspace(0, 1, 50)]), color="#009E73", linewidth=3.5)
for point, name, colour in ((x, "x", "black"), (x + v, "x + v", "#D55E00")):
    left.annotate(name, point, (0, 8), textcoords="offset points", ha="center", color=colour)
for point, name, colour in ((retract(x, v), "retraction", "#0072B2"), (exp(x, v), "geodesic", "#009E73")):
    left.plot(*point, "o", color=colour, markersize=8)
    left.annotate(name, point, (9, -3), textcoords="offset points", color=colour)
left.set(title="Two ways to stay on the circle", aspect="equal", xlim=(-0.6, 1.35), ylim=(-0.05, 1.2))
left.set_axis_off()

lengths = np.logspace(-2, 0.2, 30)
gaps = [np.linalg.norm(exp(x, t * v / 0.9) - retract(x, t * v / 0.9)) for t in lengths]
right.loglog(lengths, gaps, "o", color="#0072B2", label="measured")
right.loglog(lengths, lengths**3 / 3, color="#7A7A7A", label="t³ / 3")
right.set(title="How far they are apart", xlabel="length t of the step", ylabel="distance")
right.legend()

# %%
# Steepest descent on the sphere
# ------------------------------
#
# Now we have everything: project the gradient, and follow the geodesic downhill. Three lines. How long
# should a step be? We try three lengths, and draw the three paths.


def descend(x, step, n_steps=40):
    path = [x]
    for _ in range(n_steps):
        x = exp(x, -step * project(x, gradient(x)))
        path.append(x)
    return np.array(path)


steps = {"step 0.1": 0.1, "step 0.7": 0.7, "step 1.6": 1.6}
paths = {name: descend(start, step) for name, step in steps.items()}

# %%
# We know where the minimum is from linear algebra: the direction that explains most of a cloud is its
# leading singular vector. So we can measure how far above the minimum we are.

U, sigma, _ = np.linalg.svd(Y)
U *= np.sign(U[0])  # a singular vector and its negative are equally good: take those that point our way
best, lowest = U[:, 0], 1 - sigma[0] ** 2

figure = plt.figure(figsize=(10.4, 4.6))
ball = figure.add_subplot(1, 2, 1, projection="3d")
looks = {"step 0.1": ("black", "o"), "step 0.7": ("#D55E00", "s"), "step 1.6": ("#56B4E9", "^")}
for name, path in paths.items():
    colour, marker = looks[name]
    plot_sphere_path(path, ax=ball, cost=f, view=VIEW, color=colour, marker=marker, linewidth=1.4)
ball.set_title("Three paths from one start")
curves = figure.add_subplot(1, 2, 2)
for name, path in paths.items():
    colour, marker = looks[name]
    values = [f(x) for x in path]
    plot_convergence(values, ax=curves, label=name, minimum=lowest, color=colour, marker=marker)
curves.set(title="f above its minimum", ylim=(1e-13, 2))  # below that there is only rounding

# %%
# Short steps are slow. The middle ones reach the limit of the computer's digits, and every step divides the
# error by a constant factor: a straight line on this axis. Long ones jump across the valley, back and
# forth. No step length is right for all functions: how to choose one is what
# :ref:`sphx_glr_tutorials_02_line_search.py` is about.

found = paths["step 0.7"][-1]
print(f"angle to the leading singular vector: {np.degrees(np.arccos(min(1, abs(found @ best)))):.6f} degrees")
print(f"length of the vector after {len(paths['step 0.7']) - 1} steps: {np.linalg.norm(found):.15f}")

# %%
# You have just updated a dictionary
# ----------------------------------
#
# A *dictionary* is a matrix whose columns are unit vectors, its *atoms*, and signals are made of a few of
# them. Take a dictionary with a single atom that all signals use. How well can it explain them? As well as
# the line that it spans: that is our :math:`f`. So :func:`~manifold_dl.update_problem` builds the same
# function on the same sphere (:class:`manifold_dl.manifolds.Spheres`; a point is a 3×1 matrix now), and any
# optimizer of Pymanopt can run on it.

problem = mdl.update_problem(Y, np.ones((1, Y.shape[1]), dtype=bool))
D = start[:, None]
print(f"our f {f(start):.12f}, the problem's {problem.cost(D):.12f}")
print("same gradient:", np.allclose(problem.riemannian_gradient(D)[:, 0], -downhill))

descent = SteepestDescent(line_searcher=mdl.WolfeSearch(), verbosity=0)
result = descent.run(problem, initial_point=D)
print(f"{len(problem.record) - 1} steps to f = {result.cost:.12f}; the minimum is {lowest:.12f}")

# %%
# A line search chose each step, and a handful of steps sufficed. With 256 atoms in 64 dimensions one cannot
# draw the picture any more, but the code stays the same: project, step along geodesics, repeat.

# %%
# Exercise
# --------
#
# Start at a right angle to the best direction, :math:`x^\top u_1 = 0`, for example half way between the
# other two singular vectors. Where does the descent go? And what if you move the start by one part in a
# million million?
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# At right angles to :math:`u_1` the gradient is at right angles to :math:`u_1`, too. The descent never
# leaves that great circle. It ends on the pass between the two valleys, where the gradient vanishes: a
# **saddle point**. A tiny deviation is multiplied at every step, and after many steps near the saddle the
# path leaves it for a valley. On a computer rounding causes that deviation sooner or later; it is why
# saddles slow a descent down but rarely hold it.

on_ridge = (U[:, 1] + U[:, 2]) / np.sqrt(2)
pushed = descend(retract(on_ridge, 1e-12 * best), 0.3, n_steps=200)
values = np.array([f(x) for x in pushed])
saddle = 1 - sigma[1] ** 2

figure = plt.figure(figsize=(10.4, 4.6))
ball = figure.add_subplot(1, 2, 1, projection="3d")
plot_sphere_path(pushed, ax=ball, cost=f, view=(-8, -20), color="#D55E00")
ball.set_title("Along the ridge, a rest, and down")
curve = figure.add_subplot(1, 2, 2)
curve.plot(values, color="#D55E00")
for height, name in ((saddle, "the pass"), (lowest, "the valley")):
    curve.axhline(height, color="#7A7A7A", linestyle="--", linewidth=1)
    curve.annotate(name, (200, height), (0, 4), textcoords="offset points", ha="right")
curve.set(title="A plateau is not the end", xlabel="iterations", ylabel="f")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
#
# * On a manifold one moves in the **tangent space**: the Riemannian gradient is the gradient without the
#   part that leads off.
# * A **retraction** brings a step back, a **geodesic** never leaves; they differ by :math:`t^3/3`.
# * Project, step, repeat: that is steepest descent on the sphere, and it keeps every point on it.
# * The update of a one-atom dictionary is this very problem, and its solution is the leading singular vector.

assert abs(start @ downhill) < 1e-12  # the Riemannian gradient is tangent
assert abs(measured - predicted) < 1e-7  # and gives the slope on the sphere
assert np.allclose(gaps[:10], lengths[:10] ** 3 / 3, rtol=0.02)  # retraction and geodesic: t³/3
assert all(np.allclose(np.linalg.norm(path, axis=1), 1) for path in paths.values())  # no path left the sphere
assert abs(found @ best) > 1 - 1e-9  # the path ends at the leading singular vector, up to its sign
assert f(paths["step 0.1"][-1]) - lowest > 1e-6 > f(found) - lowest  # short steps are slow
assert f(paths["step 1.6"][-1]) - lowest > 1e-3  # long ones jump back and forth
assert np.isclose(problem.cost(D), f(start))  # one atom, one sphere: the same function
assert np.isclose(result.cost, lowest, rtol=1e-6)
assert np.all(abs(values[40:65] - saddle) < 1e-3)  # a long rest on the pass ...
assert values[-1] - lowest < 1e-3  # ... and then the valley

plt.show()
