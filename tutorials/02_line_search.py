"""
Line search along a geodesic
============================

You know the descent direction; how long should the step be? A descent has to decide this at every step. We
draw the function of one variable behind the question, watch three searches probe it, number every probe, and
count what each of them costs. One of the counts may surprise you.

You need NumPy, and gradients and geodesics on a sphere from :ref:`sphx_glr_tutorials_01_sphere.py`.
"""

# %%
# Once around the sphere
# ----------------------
#
# Take the cloud of the first tutorial, :math:`f(x) = \|Y\|^2 - \|Y^\top x\|^2`, a point :math:`x` on the
# sphere, and a direction :math:`d` downhill. The geodesic from :math:`x` along :math:`d` is a great circle,
# and on it the function
#
# .. math:: \varphi(t) = f(\exp_x(t\,d))
#
# depends on a single number :math:`t`, here an angle. What does it look like once around the sphere?

import matplotlib.pyplot as plt
import numpy as np
from pymanopt.optimizers import ConjugateGradient, SteepestDescent
from pymanopt.optimizers.line_search import BackTrackingLineSearcher

import manifold_dl as mdl
from manifold_dl.line_search import SearchRecord, trace
from manifold_dl.plotting import plot_convergence, plot_line_search, plot_sphere_path

plt.style.use(mdl.plotting.STYLE)

axes_of_cloud = np.linalg.qr([[0.80, 0.53, 0.12], [0.10, 0.07, -0.88], [0.60, -0.72, 0.0]])[0]
Y = axes_of_cloud @ np.diag([3.0, 1.7, 0.6]) @ np.random.default_rng(3).standard_normal((3, 200))
Y /= np.linalg.norm(Y)


def f(x):
    return 1 - np.sum((Y.T @ x) ** 2)


x = np.array([0.12, -0.81, 0.57]) / np.linalg.norm([0.12, -0.81, 0.57])
gradient = -2 * Y @ (Y.T @ x)
downhill = -(gradient - x * (x @ gradient))
d = downhill / np.linalg.norm(downhill)  # of length 1, so that t is an angle


def phi(t):
    return f(x * np.cos(t) + d * np.sin(t))


# %%
# The path on the sphere, dimmed where it is behind, and the cost along it:

turn = np.linspace(0, 2 * np.pi, 361)
circle = np.array([x * np.cos(t) + d * np.sin(t) for t in turn])
values = np.array([phi(t) for t in turn])

figure = plt.figure(figsize=(10.4, 4.2))
grid = figure.add_gridspec(1, 2, width_ratios=(1, 1.5))
ball = figure.add_subplot(grid[0], projection="3d")
plot_sphere_path(circle, ax=ball, cost=f, view=(24, -35), marker="none", ends=False, color="#D55E00")
plot_sphere_path([x], ax=ball, color="white")
ball.set_title("Around the world ...")
wave = figure.add_subplot(grid[1])
wave.plot(turn, values, color="#D55E00")
wave.set(title="... the cost goes up and down twice", xlabel="t", ylabel="φ(t)")
wave.set_xticks(np.pi * np.arange(5) / 2, ["0", "π/2", "π", "3π/2", "2π"])

# %%
# A perfect wave! It is one: :math:`f` is quadratic in :math:`x`, and the squares and products of cosine and
# sine are waves of double frequency. So :math:`\varphi(t) = a + b \cos 2t + c \sin 2t`, and three numbers
# determine it: two values and the slope at 0. For a single atom the best step has a formula, and there is
# nothing to search for.

slope = -np.linalg.norm(downhill)
a, b, c = (phi(0) + phi(np.pi / 2)) / 2, (phi(0) - phi(np.pi / 2)) / 2, slope / 2
t_best = np.arctan2(-c, -b) / 2
print(f"the formula: t = {t_best:.6f}; the lowest of 361 points: t = {turn[values[:181].argmin()]:.6f}")

# %%
# Many atoms, many circles
# ------------------------
#
# A dictionary has many atoms, and in a step along a geodesic *each* of them moves on a great circle of its
# own, at its own speed. Codes follow them. What does φ look like now? We take 32 atoms in 16 dimensions, a
# few steps into a descent (:ref:`sphx_glr_tutorials_03_dictionary_update.py` explains the problem; here it
# is just a function :math:`f(D)`).

D_true, X_true, signals = mdl.datasets.synthetic(16, 32, 200, sparsity=4, rng=0)
signals = signals + 0.05 * np.random.default_rng(1).standard_normal(signals.shape)
support = X_true.astype(bool)

problem = mdl.update_problem(signals, support, mu=0.1)
D_start = problem.manifold.random_point(rng=1)
few_steps = SteepestDescent(line_searcher=mdl.WolfeSearch(), max_iterations=3, verbosity=0)
D = few_steps.run(problem, initial_point=D_start).point

direction = -problem.riemannian_gradient(D)
norm = problem.manifold.norm(D, direction)
f0, slope0 = problem.cost(D), -(norm**2)  # φ(0) and φ′(0)
phi_D = problem.restrict(D, direction)

# %%
# The last line makes :math:`\varphi` a cheap function. It computes the inner products of atoms, directions
# and signals once; after that a value, with its slope if one likes, costs the same whatever the length of
# the signals.

lengths = np.linspace(0, 60, 601)
figure, ax = plt.subplots(figsize=(7.4, 3.4))
ax.plot(lengths, [phi_D(s / norm) for s in lengths])
ax.axvspan(0, 4, color="#56B4E9", alpha=0.16, linewidth=0)
ax.annotate("we look for this valley", (4, 130), (12, 128), arrowprops={"arrowstyle": "->"}, va="center")
ax.set(title="32 circles at once: φ has many valleys", xlabel="length of the step", ylabel="φ")

# %%
# Hills and valleys without end, none of them an exact wave. No formula any more. But a search need not see
# all this: the first valley will do.

# %%
# Golden section: values are enough
# ---------------------------------
#
# If three points have their lowest in the middle, there is a minimum between the outer two: a **bracket**.
# Put a fourth point inside, drop one of the outer ones, and the bracket is shorter. Where to put it? At the
# golden ratio, 0.618: then one of the old points is in the right place again, and every shortening needs
# one new value only.

ratio = (np.sqrt(5) - 1) / 2


def golden(phi, low, high, n_probes):
    inner = [low + (1 - ratio) * (high - low), low + ratio * (high - low)]
    values = [phi(s) for s in inner]
    for _ in range(n_probes - 2):
        if values[0] < values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = low + (1 - ratio) * (high - low)
            values[0] = phi(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + ratio * (high - low)
            values[1] = phi(inner[1])
    return (low + high) / 2, high - low


for n_probes in (5, 10, 20):
    t, width = golden(phi, 0, np.pi / 2, n_probes)
    print(f"{n_probes:3d} probes: t = {t:.6f} in a bracket of {width:.6f}; the formula says {t_best:.6f}")

# %%
# Sure, and slow: every digit costs :math:`\log 10 / \log 1.618 = 4.8` probes.
# :class:`~manifold_dl.GoldenSection` is the search of the SimCO paper (its Algorithm 2). It first looks for
# a bracket, by shrinking and stretching a first guess, and then shortens it.
# :func:`manifold_dl.line_search.trace` writes down every probe.

with trace() as searches:
    mdl.GoldenSection().search(problem.cost, problem.manifold, D, direction, f0, slope0)
by_golden = searches[0]

figure, (whole, close) = plt.subplots(1, 2, figsize=(10.4, 4.2))
plot_line_search(by_golden, ax=whole, phi=phi_D, length=True)
whole.set_title(f"Golden section: {len(by_golden.probes)} probes in order")
near = (0.97 * by_golden.t, 1.03 * by_golden.t)
plot_line_search(by_golden, ax=close, phi=phi_D, length=True, span=near)
close.set_title("The same, around the minimum")

# %%
# Armijo: good enough is good enough
# ----------------------------------
#
# Do we need the minimum? Armijo's rule does not. Try a step; if the cost does not fall by a small fraction
# of what the slope predicts, halve it and try again. This is Pymanopt's ``BackTrackingLineSearcher``. It
# keeps no record, so we write down its evaluations ourselves. Its first try has a length of 1 by default,
# which it would accept here at once; we begin with a longer step, to see it halved. (It follows the
# retraction, not the geodesic: far out, its curve is another one.)

costs = []


def watched(point):
    costs.append(problem.cost(point))
    return costs[-1]


first = 8.0
armijo = BackTrackingLineSearcher(initial_step_size=first)
accepted, _ = armijo.search(watched, problem.manifold, D, direction, f0, slope0)
tried = first / norm / 2.0 ** np.arange(len(costs))
probes = list(zip(tried.tolist(), costs, strict=True))
by_armijo = SearchRecord("BackTrackingLineSearcher", f0, slope0, norm, probes, tried[-1])


def along_retraction(t):
    return problem.cost(problem.manifold.retraction(D, t * direction))


# %%
# The derivative search: slopes, too
# ----------------------------------
#
# :class:`~manifold_dl.WolfeSearch` evaluates :math:`\varphi'(t)` with every value. Values and slopes at
# two points determine a cubic, and the minimum of the cubic is the next probe. It stops when little of the
# slope is left.

with trace() as searches:
    mdl.WolfeSearch().search(problem.cost, problem.manifold, D, direction, f0, slope0)
by_slope = searches[0]

figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2))
plot_line_search(by_armijo, ax=left, phi=along_retraction, length=True, armijo=1e-4)
left.set_title(f"Armijo from a length of {first:g}: {len(costs)} probes")
plot_line_search(by_slope, ax=right, phi=phi_D, length=True, span=(0, 1.7 / norm))
right.set_title(f"Derivative search: {len(by_slope.probes)} probes")

for search in (by_golden, by_armijo, by_slope):
    lowest = dict(search.probes)[search.t]
    print(f"{search.method:25s} {len(search.probes):3d} probes, down by {f0 - lowest:.3f}")

# %%
# Golden section and the derivative search find the same minimum, one of them in a few probes. Armijo
# accepts a point on the other side of the valley.

# %%
# The whole descent, counted
# --------------------------
#
# One search proves little. Now each of the three is used in a whole descent from the random start, first
# steepest descent, then conjugate gradients (which bend each direction so that it does not undo the last
# one). The problem counts all that it evaluates: values, gradients, and probes of a line search.

searchers = {
    "golden section": mdl.GoldenSection(),
    "Armijo": BackTrackingLineSearcher(),
    "derivative search": mdl.WolfeSearch(),
}


def run(optimizer, searcher):
    problem = mdl.update_problem(signals, support, mu=0.1)
    optimizer(line_searcher=searcher, max_iterations=120, verbosity=0).run(problem, initial_point=D_start)
    return problem.record


records = {
    optimizer: {name: run(optimizer, searcher) for name, searcher in searchers.items()}
    for optimizer in (SteepestDescent, ConjugateGradient)
}
minimum = min(record[-1].value for runs in records.values() for record in runs.values())

# %%
# How many steps and evaluations until :math:`f` is within a millionth of its minimum?


def steps_to_minimum(record):
    """Steps and evaluations until f is within a millionth of the minimum."""
    step = next(i for i, iterate in enumerate(record) if iterate.value < (1 + 1e-6) * minimum)
    return step, record[step].evaluations


counts = {}
for optimizer, runs in records.items():
    print(optimizer.__name__)
    for name, record in runs.items():
        steps, evaluations = counts[optimizer, name] = steps_to_minimum(record)
        print(f"   {name:18s} {steps:4d} steps {evaluations:6d} evaluations")

figure, axes = plt.subplots(1, 2, figsize=(10.4, 4.2), sharey=True)
for ax, (optimizer, runs) in zip(axes, records.items(), strict=True):
    plot_convergence(runs, ax=ax, x="evaluations", minimum=minimum)
    ax.set(title=optimizer.__name__, xscale="log", ylim=(1e-6, 1e3))

# %%
# Three lessons.
#
# * *The derivative is worth its cost.* It saves four of five evaluations of golden section, and takes the
#   same steps.
# * *With steepest descent the inexact search wins* here, in steps as well! Where :math:`\varphi' = 0`, the
#   new gradient stands at a right angle to the path that led there. So a descent that always goes to the
#   exact minimum has to turn by 90 degrees every time, and zigzags down the valley. A step that is a little
#   off is free to go elsewhere.
# * *Conjugate gradients need it exact.* Their new direction assumes that the old one has been minimised
#   along. They take far fewer steps than steepest descent, and with an accurate search fewer than with
#   Armijo's.
#
# Evaluations differ: golden section and the derivative search probe the cheap :math:`\varphi`, Armijo the
# whole :math:`f`. Within a search one more probe costs about a sixth of a value with its gradient
# (``benchmarks/update.py`` measures it). On a small problem like this one most of the time is spent in
# Python, and a probe is hardly cheaper than a value.

# %%
# Exercise
# --------
#
# The derivative search stops when :math:`|\varphi'(t)|` is below 5 % of :math:`|\varphi'(0)|`. Make it
# inexact: give it ``curvature=0.5``. What do you expect of steepest descent, and what of conjugate
# gradients?
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# Steepest descent gets better, in steps and in evaluations: less exact, less zigzag. For conjugate
# gradients it hardly matters here: what they save in probes they lose in steps. The default of 5 % is
# chosen for them.

inexact = {}
for optimizer in records:
    inexact[optimizer] = steps_to_minimum(run(optimizer, mdl.WolfeSearch(curvature=0.5)))
    exact = counts[optimizer, "derivative search"]
    print(f"{optimizer.__name__:18s} steps and evaluations: {exact} → {inexact[optimizer]}")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
#
# * Along a geodesic a function on a manifold becomes a function :math:`\varphi(t)` of one variable: a wave
#   for one atom, with many minima for many atoms.
# * Golden section needs values only, and about five of them for every digit. With slopes two or three
#   probes do.
# * An exact search is not always better: steepest descent is faster without, conjugate gradients are not.

assert np.allclose(values, a + b * np.cos(2 * turn) + c * np.sin(2 * turn))  # a wave
assert abs(golden(phi, 0, np.pi / 2, 20)[0] - t_best) < 1e-3  # golden section finds its minimum
assert len(by_golden.probes) > 3 * len(by_slope.probes)  # the derivative is worth its cost ...
down_golden, down_slope = (f0 - dict(search.probes)[search.t] for search in (by_golden, by_slope))
assert down_slope > 0.99 * down_golden  # ... and loses nothing
assert dict(by_armijo.probes)[by_armijo.t] < f0 and len(costs) > 1  # Armijo halved its step, and went down
assert np.isclose(accepted, by_armijo.t * norm)  # and what we wrote down is what it did
for optimizer in records:
    assert counts[optimizer, "golden section"][1] > 3 * counts[optimizer, "derivative search"][1]
assert counts[SteepestDescent, "Armijo"] < counts[SteepestDescent, "derivative search"]  # inexact wins ...
assert counts[ConjugateGradient, "Armijo"] > counts[ConjugateGradient, "derivative search"]  # ... or not
assert 2 * counts[ConjugateGradient, "golden section"][0] < counts[SteepestDescent, "golden section"][0]
assert inexact[SteepestDescent] < counts[SteepestDescent, "derivative search"]  # the answer

plt.show()
