"""
A regularizer of your own
=========================

You know something about your atoms that the signals do not determine well enough: they should be smooth, or
local, or unlike each other. A regularizer says it. In this tutorial you write one in four lines, let a
check find the mistake that everybody makes when differentiating by hand, and watch picture atoms shrink to
small spots.

You need NumPy, and a rough idea of the dictionary update
(:ref:`sphx_glr_tutorials_03_dictionary_update.py`). The short version, for looking things up, is the page
on adding a regularizer in one file.
"""

# %%

import autograd.numpy as anp
import matplotlib.pyplot as plt
import numpy as np
from pymanopt.optimizers import SteepestDescent
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

import manifold_dl as mdl
from manifold_dl.diagnostics import CheckFailed, check_gradient, check_hessian, check_regularizer
from manifold_dl.regularizers import regularizer

plt.style.use(mdl.plotting.STYLE)
BLUE, VERMILION = "#0072B2", "#D55E00"

# %%
# Patches of a photograph
# -----------------------
# The signals are patches of 8×8 pixels, with their mean taken off. Patches of the sky have no structure, so
# we keep the half with more contrast. A dictionary of 64 atoms, four of them per patch, is learned in a
# second.

side, n_atoms = 8, 64
picture = load_sample_image("china.jpg").mean(axis=2) / 255
rows = extract_patches_2d(picture, (side, side), max_patches=3000, random_state=0).reshape(3000, -1)
Y = (rows - rows.mean(axis=1, keepdims=True)).T
contrast = np.linalg.norm(Y, axis=0)
Y = Y[:, contrast > np.median(contrast)]
energy = np.sum(Y**2)  # ‖Y‖²


def learn(*regularizers):
    update = mdl.SimCO(mu=0.05, regularizers=regularizers, threads=1)
    return mdl.learn_dictionary(
        Y, n_atoms, coder=mdl.OMP(sparsity=4), update=update, init="random", max_iter=15, rng=0, threads=1
    )


plain = learn()
print(plain)

# %%
# The aim: atoms in one place
# ---------------------------
# We should like atoms that are *local*: each with its energy in one spot of the patch, like a receptive
# field. How to say that in a formula? Take the squares :math:`d_p^2` of an atom's pixels. They are not
# negative, and their sum is 1, for atoms are unit vectors. So they are a distribution of mass over the
# patch, which has a centre and a variance:
#
# .. math:: c = \sum_p d_p^2\, p, \qquad R(d) = \sum_p d_p^2\, \|p\|^2 - \|c\|^2 ,
#
# where :math:`p` runs over the places of the pixels. :math:`R` is the mean square distance of the mass from
# its centre. It is zero for a single pixel and large for a texture that fills the patch. Summed over the
# atoms it is our penalty; and it is smooth, a polynomial. That is all that a regularizer needs.
#
# In code it is the formula again. Write ``anp`` for ``np``, so that autograd can differentiate it, and put
# the decorator on top:

places = np.indices((side, side)).reshape(2, -1) - (side - 1) / 2  # 2×64, the middle of the patch is (0, 0)
squared_distance = np.sum(places**2, axis=0)[:, None]


@regularizer
def spread(D):
    mass = D**2
    centre = places @ mass
    return anp.sum(squared_distance * mass) - anp.sum(centre**2)


# %%
# Try it before you trust it. Two atoms whose spread is known: a single pixel, and a flat patch, whose
# variance is that of a uniform distribution on 8×8 places, :math:`2 (8^2 - 1)/12 = 10.5`.

pixel, flat = np.zeros((64, 1)), np.full((64, 1), 1 / 8)
pixel[19] = 1.0
print(f"one pixel {spread.value(pixel):g}, flat patch {spread.value(flat):g}")
print(f"the atoms learned above: {spread.value(plain.dictionary) / n_atoms:.1f} on average")

# %%
# Is it right?
# ------------
# An optimizer needs more than values. Autograd has derived the gradient and the Hessian product from our
# four lines, and :func:`~manifold_dl.diagnostics.check_regularizer` checks whether they agree:

print(check_regularizer(spread, m=64))

# %%
# The two lines with a *slope* are the most important ones. When you take a small step :math:`t` and predict
# the new value with the gradient, the prediction is wrong by about :math:`t^2`. On logarithmic axes that is
# a line of slope 2. If the gradient is wrong, the error is of size :math:`t`: slope 1. No tolerance has to
# be chosen.
#
# A common mistake
# ----------------
# Some prefer to differentiate by hand, and for a large dictionary it can be faster. Here is an attempt.
# Nothing is inherited; an object with ``value`` and ``gradient`` will do. Can you spot the mistake?


class ByHand:
    def value(self, D):
        return spread(D)

    def gradient(self, D):
        centre = places @ D**2
        return 2 * D * (squared_distance - places.T @ centre)


# %%
# Descent does not show it either. Let us minimise the fit plus the penalty on a fixed support by
# steepest descent, once with autograd's gradient and once with that of the attempt.

start = mdl.manifolds.Spheres(64, n_atoms).random_point(rng=0)
support = mdl.OMP(sparsity=4).encode(Y, start)
weight = 3e-4 * energy


def update_problem(penalty):
    weighted = mdl.regularizers.Scaled(weight, penalty)
    return mdl.update_problem(Y, support, mu=0.05, regularizers=[weighted], threads=1)


problems = {"by autograd": update_problem(spread), "by hand": update_problem(ByHand())}
curves = {}
for name, problem in problems.items():
    descent = SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=40, verbosity=0)
    descent.run(problem, initial_point=start)
    curves[name] = np.array([iterate.value for iterate in problem.record]) / energy

# %%
# Both curves fall, smoothly and by nearly as much. (A line search accepts whatever goes down, and a
# direction that is off by some degrees still does.) The Taylor remainders are another matter.
# :func:`~manifold_dl.diagnostics.check_gradient` checks the whole problem, fit and penalty together, and
# the report that it returns or raises can be drawn:

reports = {"by autograd": check_gradient(problems["by autograd"], start)}
try:
    check_gradient(problems["by hand"], start)
except CheckFailed as failure:
    print(failure)
    reports["by hand"] = failure.report

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.9))
for (name, curve), colour, dash in zip(curves.items(), (BLUE, VERMILION), ("-", "--"), strict=True):
    left.plot(curve, dash, color=colour, label=name)
    report = reports[name]
    seen = report.t > 1e-6
    right.loglog(
        report.t[seen], report.remainders[seen], dash, color=colour, label=f"{name}: slope {report.slope:.2f}"
    )
left.set(xlabel="accepted steps", ylabel="objective / ‖Y‖²", title="What descent shows: nothing suspicious")
right.set(xlabel="step t", ylabel="|Taylor remainder|", title="What the check shows")
left.legend()
right.legend()

# %%
# One line gains two decades for every decade of :math:`t`, the other gains one. The mistake: the centre is
# made of squares, so its derivative brings a factor of 2, and :math:`\|c\|^2` has another one. Together
# they are 4, of which the common factor in front accounts for 2. With the missing 2 the same class passes:


class ByHandCorrected(ByHand):
    def gradient(self, D):
        centre = places @ D**2
        return 2 * D * (squared_distance - 2 * places.T @ centre)


report = check_regularizer(ByHandCorrected(), m=64)
print(next(fact for fact in report.passed if "slope" in fact))

# %%
# We stay with autograd. Its second derivatives are exact, too, so that even a trust region can use the
# penalty:

print(check_hessian(problems["by autograd"], start))

# %%
# Use it
# ------
# Every update takes a list of regularizers. How much should it weigh? The fit is measured in units of
# :math:`\|Y\|^2`, so a weight is best given as a fraction of that. Let us try a few.

weights = [0.0, 1e-4, 3e-4, 1e-3]
results = {0.0: plain}
for fraction in weights[1:]:
    results[fraction] = learn(fraction * energy * spread)


def centres_and_widths(D):
    mass = D**2
    centre = places @ mass
    return centre, np.sqrt(np.sum(squared_distance * mass, axis=0) - np.sum(centre**2, axis=0))


figure, axes = plt.subplots(2, 3, figsize=(9, 6.4))
for (above, below), fraction in zip(axes.T, (0.0, 3e-4, 1e-3), strict=True):
    D = results[fraction].dictionary
    used = np.asarray((results[fraction].codes ** 2).sum(axis=1)).ravel()
    mdl.plotting.plot_atoms(D[:, np.argsort(-used)], ax=above)
    above.set_title("no penalty" if fraction == 0 else f"weight {fraction:g} ‖Y‖²")
    (down, across), width = centres_and_widths(D)
    for x, y, r in zip(across, down, width, strict=True):
        below.add_patch(plt.Circle((x, y), r, fill=False, color=BLUE, lw=0.8, alpha=0.7))
    below.set(xlim=(-5, 5), ylim=(5, -5), aspect="equal", xlabel="pixels", ylabel="pixels")
axes[1, 0].set_title("Where they are, and how wide")

# %%
# Above are the atoms, the most used ones first; below, a circle for every atom around its centre of mass,
# with its spread as radius. Without the penalty all circles are large and sit near the middle, which means
# that the atoms fill the patch. With it most of them become small edges and dots, all over the patch.
#
# Do the atoms cover the patch, each in a place of its own? No: nothing in :math:`R` requires that. It is a
# sum over atoms, and no term depends on two of them. We count the different places of the 64 largest
# pixels:

peaks = {w: len(np.unique(np.abs(results[w].dictionary).argmax(axis=0))) for w in weights}
for fraction, count in peaks.items():
    print(f"weight {fraction:g} ‖Y‖²: the {n_atoms} atoms have their largest pixels in {count} places")

# %%
# With the largest weight there are fewer than without any: dots of opposite sense and edges of different
# directions sit on top of each other. A penalty does what its formula says, not what we had in mind.
#
# And what does it cost? Radius and error in one picture:

widths = [np.mean(centres_and_widths(results[w].dictionary)[1]) for w in weights]
errors = [np.linalg.norm(Y - results[w].dictionary @ results[w].codes) ** 2 / energy for w in weights]

figure, ax = plt.subplots(figsize=(6, 3.8))
ax.plot(widths, errors, "o-", color=BLUE)
for fraction, x, y in zip(weights, widths, errors, strict=True):
    ax.annotate(f"{fraction:g}", (x, y), (6, 6), textcoords="offset points")
ax.set(xlabel="mean radius of the atoms (pixels)", ylabel="‖Y − DX‖² / ‖Y‖²", title="What locality costs")
ax.set_ylim(0, 1.15 * max(errors))

# %%
# The numbers at the points are the weights. The first part costs nothing: at 1e-4 the atoms are clearly
# smaller and the error is what it was, for there are many dictionaries that fit about as well, and the
# penalty chooses among them. Only where it leaves nothing but dots does the error rise.
#
# Penalties add and scale, yours and those of :mod:`manifold_dl.regularizers` alike, so they can be
# combined:

both = 3e-4 * spread + mdl.regularizers.Smoothness(1e-4, shape=(8, 8))
print(both)

# %%
# Exercise
# --------
# Arrange the 64 atoms on an 8×8 grid whose left and right, and top and bottom edges are glued together.
# Write a regularizer that makes *neighbouring atoms similar*, and learn with it. Neighbours may differ in
# sign, for the codes can turn it round. What do you expect to see?
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# The cosine of two neighbours is an inner product, and its square does not depend on the sign. ``anp.roll``
# brings every neighbour in place:


@regularizer
def disorder(D):
    grid = anp.reshape(D, (64, 8, 8))
    cosines = [anp.sum(grid * anp.roll(grid, 1, axis=axis), axis=0) for axis in (1, 2)]
    return sum(anp.sum(1 - cosine**2) for cosine in cosines)


check_regularizer(disorder, m=64, n_atoms=64)
ordered = learn(2e-3 * energy * disorder)

figure, axes = plt.subplots(1, 2, figsize=(8, 4.5))
for ax, result, title in zip(axes, (plain, ordered), ("no penalty", "neighbours alike"), strict=True):
    D = result.dictionary.copy()
    for i in range(1, 64):  # for the eye: every atom gets the sign of the one to its left, or above
        D[:, i] *= np.sign(D[:, i] @ D[:, i - 1 if i % 8 else i - 8])
    mdl.plotting.plot_atoms(D, ax=ax)
    ax.set_title(f"{title}: disorder {disorder.value(D) / 128:.2f}")

# %%
# A map: orientation and position change gradually from one atom to the next. Maps like this are known from
# the visual cortex, and here six lines of code drew one.
#
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
# * A regularizer is a smooth function of the dictionary. Written with ``autograd.numpy`` it is ready for
#   every optimizer.
# * A wrong gradient may still descend smoothly. The slope of a Taylor remainder shows that it is wrong.
# * Weights are fractions of ‖Y‖². A small weight of the right penalty costs nothing, because many
#   dictionaries fit about equally well.

assert np.isclose(spread.value(pixel), 0) and np.isclose(
    spread.value(flat), 10.5
)  # the formula is what we meant
assert curves["by hand"][-1] < 0.9 * curves["by hand"][0]  # wrong, and yet it descends,
assert np.all(np.diff(curves["by hand"]) < 0)  # at every step
assert reports["by hand"].slope < 1.2 and not reports["by hand"]  # the slope gives it away
assert reports["by autograd"].slope > 1.9  # and clears the right one
assert np.all(np.diff(widths) < 0)  # the heavier the penalty, the smaller the atoms
assert peaks[1e-3] <= peaks[0.0] < 0.75 * n_atoms  # small, but not each in a place of its own
assert widths[1] < 0.9 * widths[0] and errors[1] < 1.03 * errors[0]  # the first part is free
assert errors[-1] > 1.1 * errors[0]  # the last is not
assert disorder.value(ordered.dictionary) < 0.5 * disorder.value(plain.dictionary)  # the map is ordered

plt.show()
