"""
How few signals suffice?
========================

A dictionary was used to make some signals, and you know which atoms went into which signal. How many
signals do you need to find the dictionary again, exactly? Here we count unknowns and equations, check the
count with a Hessian, find out what counting overlooks, and compare four methods close to the bound.

You need NumPy and the dictionary update of :ref:`sphx_glr_tutorials_03_dictionary_update.py`. Why a ridge
is reduced in stages is the subject of :ref:`sphx_glr_tutorials_07_ill_conditioned.py`.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from pymanopt.optimizers import SteepestDescent, TrustRegions

import manifold_dl as mdl

plt.style.use(mdl.plotting.STYLE)
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#7A7A7A"

# %%
# Unknowns and equations
# ----------------------
# We take a small case that can be solved many times in a few seconds: :math:`d = 10` atoms of length
# :math:`m = 8`, and :math:`S = 3` of them in each signal. The signals are exact, :math:`Y = D X`, and the
# support is known; the atoms and the codes are not.
#
# * An atom is a point on a sphere in 8 dimensions, and has :math:`m - 1 = 7` degrees of freedom. Together
#   they have :math:`d (m - 1) = 70`.
# * Each signal brings :math:`S = 3` unknown codes, and :math:`m = 8` equations. That determines its own
#   codes and leaves :math:`m - S = 5` equations for the atoms.
#
# So a dictionary cannot be determined unless :math:`n (m - S) \ge d (m - 1)`, that is
#
# .. math:: n \;\ge\; \frac{d\,(m - 1)}{m - S} .

m, d, S = 8, 10, 3
bound = d * (m - 1) / (m - S)
print(f"counting bound: n ≥ {bound:g}")

# %%
# A count is only a count
# -----------------------
# Equations may repeat each other, so the count could be too optimistic. Let us measure how many degrees of
# freedom are really left. At the true dictionary the objective of the update is zero. If we can leave it in
# some direction and the fit remains perfect, the objective does not even curve in that direction: the
# Hessian has an eigenvalue of zero. We build the Hessian from its exact products with 70 tangent vectors
# and count the zeros.


def draw(n, seed):
    """A dictionary, codes and n signals; the seed chooses everything."""
    return mdl.datasets.synthetic(m, d, n, sparsity=S, rng=[n, seed])


def tangent_basis(D):
    """d(m − 1) orthonormal directions, each of which moves a single atom."""
    basis = np.zeros((d, m - 1, m, d))
    for i in range(d):
        basis[i, :, :, i] = np.linalg.svd(D[:, [i]])[0][:, 1:].T  # perpendicular to the atom
    return basis.reshape(-1, m, d)


def free_directions(D, X, Y):
    """Directions in which the dictionary can go while the fit stays perfect, as columns of coefficients."""
    problem, basis = mdl.update_problem(Y, X.astype(bool), threads=1), tangent_basis(D)
    products = np.array([problem.riemannian_hessian(D, E) for E in basis])
    eigenvalues, vectors = np.linalg.eigh(np.einsum("amd,bmd->ab", basis, products))
    return vectors[:, eigenvalues < 1e-12 * eigenvalues[-1]]  # zero, up to rounding


# %%
# Five draws for every number of signals, and the count beside them:

numbers = [2, 5, 8, 11, 13, 14, 15, 16, 18, 20, 24, 30]
draws = 5
left_free = {n: [free_directions(*draw(n, seed)).shape[1] for seed in range(draws)] for n in numbers}

figure, ax = plt.subplots(figsize=(7, 4))
counted = np.maximum(0, d * (m - 1) - np.array(numbers) * (m - S))
ax.plot(numbers, counted, color=GREY, lw=2, label="counted: d(m − 1) − n(m − S)")
for n in numbers:
    ax.plot([n] * draws, left_free[n], "o", color=BLUE, alpha=0.5, ms=6)
ax.plot([], [], "o", color=BLUE, label=f"measured, {draws} draws for each n")
ax.axvline(bound, color="k", lw=1, ls=":")
ax.annotate("counting bound", (bound, 45), (4, 0), textcoords="offset points")
ax.set(xlabel="number of signals n", ylabel="free directions", title="What the signals leave open")
ax.legend()

# %%
# Far below the bound the count is right to the unit: every signal takes 5 directions away. But close to it,
# and above it, some draws keep a few free directions that counting does not show. They come from the random
# supports; but how?
#
# What counting does not show
# ---------------------------
# Pick one atom, :math:`d_k`, and *shift* all the others towards it a little, each by its own amount:
#
# .. math:: d_i \;\to\; d_i + c_i\, d_k .
#
# Which signals are represented as before?
#
# * A signal that uses atom :math:`k` is: with a little less of :math:`d_k` it is the same.
# * A signal :math:`j` that does not use atom :math:`k` is not, unless the shifts cancel:
#   :math:`\sum_i x_{ij} c_i = 0`.
#
# So there is one equation for every signal *without* atom :math:`k`, and there are :math:`d - 1` amounts.
# If those equations are fewer than :math:`d - 1`, or dependent, then some shift changes no signal, and no
# method can find the dictionary. In terms of the codes: take away row :math:`k` of :math:`X` and all
# signals that use it. What remains must have rank :math:`d - 1`.


def n_free_shifts(X):
    """For every atom k, how many shifts towards it change no signal; X is dense, d×n."""
    others = [np.delete(X[:, X[k] == 0], k, axis=0) for k in range(d)]
    return np.array([d - 1 - np.linalg.matrix_rank(rest) for rest in others])


above = [n for n in numbers if n >= bound]
predicted = {
    n: [int(n_free_shifts(draw(n, seed).codes.toarray()).sum()) for seed in range(draws)] for n in above
}
for n in above[:5]:
    print(f"n = {n}: measured {left_free[n]}, free shifts {predicted[n]}")

# %%
# Above the bound this explains every one of them. (In other draws there are rarer coincidences, too: try a
# few hundred.) Here is a single case to look at, a draw with one free direction. The Hessian's zero
# eigenvector shows which atoms it moves.

n_case, seed_case = 18, 1
D, X, Y = draw(n_case, seed_case)
(direction,) = free_directions(D, X, Y).T
moved = np.linalg.norm(direction.reshape(d, m - 1), axis=1)
shifted, towards = int(np.argmax(moved)), int(np.argmax(n_free_shifts(X.toarray())))
users, users_of_other = (np.flatnonzero(X.toarray()[k]) for k in (shifted, towards))
print(f"only atom {shifted} moves; its users are the signals {users}")
print(f"it can be shifted towards atom {towards}, whose users are {users_of_other}")

# %%
# On the left, how far each atom moves in the free direction. On the right the support, with the signals
# that use that atom framed.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=[1, 2.2], sharey=True)
left.barh(range(d), moved, color=[VERMILION if i == shifted else GREY for i in range(d)])
left.set(xlabel="how much it moves", ylabel="atom", title="The free direction", yticks=range(d))
shade = (X.toarray() != 0) * 0.35
shade[shifted] *= 2.8
shade[towards] *= 2
right.imshow(shade, cmap="Greys", vmin=0, vmax=1.1, aspect="auto")
for j in users:
    right.add_patch(plt.Rectangle((j - 0.5, -0.5), 1, d, fill=False, edgecolor=VERMILION, lw=1.5))
right.set(xlabel="signal", title=f"The support: signals that use {shifted} also use {towards}")
right.grid(False)

# %%
# All signals that use the one atom also use the other. So the first may be shifted towards the second by any
# amount. We can try it out, and not only for a tiny step:

problem = mdl.update_problem(Y, X.astype(bool), threads=1)
changed = D.copy()
changed[:, shifted] += 0.5 * D[:, towards]
changed[:, shifted] /= np.linalg.norm(changed[:, shifted])
turned = np.degrees(np.arccos(changed[:, shifted] @ D[:, shifted]))
print(f"atom {shifted} turned by {turned:.0f} degrees: error {problem.cost(changed) / problem.scale:.0e}")

# %%
# A perfect fit, with another atom. The fewer signals use an atom, the more easily that happens: two signals
# may well have a second atom in common, and for an atom that a *single* signal uses it is always so. At the
# other end, an atom :math:`k` that is used too much leaves fewer than :math:`d - 1` signals to keep the
# others from being shifted towards it.
#
# Four methods compared
# ---------------------
# Now let us look for the dictionary, with four methods. Each begins at the same random dictionary. MOD and
# K-SVD take turns with perfect sparse coding. In the last two the codes follow, and a ridge is reduced in
# four stages: by steepest descent, which is regularized SimCO; and by a trust region with the exact
# Hessian.

ridges = [1e-1, 1e-2, 1e-4, 0.0]


def take_turns(update, D, problem, Y):
    for _ in range(60):
        D, _ = update(Y, D, problem.codes(D))
    return D


def continuation(optimizer, D, Y, support):
    for mu in ridges:
        D = optimizer.run(mdl.update_problem(Y, support, mu=mu, threads=1), initial_point=D).point
    return D


descent = SteepestDescent(line_searcher=mdl.WolfeSearch(), max_iterations=30, verbosity=0)
region = TrustRegions(max_iterations=25, min_gradient_norm=1e-9, verbosity=0)
methods = {
    "MOD": lambda D, p, Y: take_turns(mdl.MOD(), D, p, Y),
    "K-SVD": lambda D, p, Y: take_turns(mdl.KSVD(threads=1), D, p, Y),
    "regularized SimCO": lambda D, p, Y: continuation(descent, D, Y, p.support),
    "trust region": lambda D, p, Y: continuation(region, D, Y, p.support),
}

# %%
# A dictionary counts as found when every atom is within one degree of the true one. For each run we also
# keep the error, and whether the draw is *solvable*, by which we mean that it leaves no direction free.
# Then the truth is isolated: no other dictionary in its neighbourhood fits. (Far away there might be one;
# a Hessian cannot show that.) With a shift that changes no signal there is a continuum of perfect fits.

spheres, one_degree = mdl.manifolds.Spheres(m, d), np.cos(np.radians(1))
table = {name: [] for name in ("method", "n", "seed", "success", "error", "solvable")}


def attempt(method, n, seed, start):
    true, X, Y = draw(n, seed)
    problem = mdl.update_problem(Y, X.astype(bool), threads=1)
    D = methods[method](spheres.random_point(rng=[n, seed, start]), problem, Y)
    success = mdl.metrics.recovery(D, true, threshold=one_degree) == 1
    return success, problem.cost(D) / problem.scale


for n in (15, 18, 24, 36, 60):
    for seed in range(5):
        solvable = free_directions(*draw(n, seed)).size == 0
        for method in methods:
            entry = method, n, seed, *attempt(method, n, seed, start=1), solvable
            for column, value in zip(table.values(), entry, strict=True):
                column.append(value)
columns = {name: np.array(column) for name, column in table.items()}

# %%
# Here is the recovery curve, with the counting bound, and the fraction of draws that can be solved as an
# upper limit.

figure, ax = plt.subplots(figsize=(7.4, 4.4))
mdl.plotting.plot_recovery(columns, ax=ax, bound=bound)
mine = columns["method"] == "trust region"
counts = np.unique(columns["n"])
ceiling = [columns["solvable"][mine & (columns["n"] == n)].mean() for n in counts]
ax.plot(counts, ceiling, color=GREY, lw=5, alpha=0.35, zorder=0, label="can be solved at all")
ax.set(
    xscale="log",
    xlim=(12.5, 66),
    xticks=counts,
    xticklabels=counts,
    title="Which method finds the whole dictionary?",
)
ax.minorticks_off()
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))

# %%
# The trust region stays close to the upper limit: with 24 signals it finds every dictionary. K-SVD and
# regularized SimCO do so with 60, but hardly ever with 36, and MOD does not at any number in the picture.
# The signals would suffice; these methods do not reach the minimum.
#
# Two ways to fail
# ----------------
# An error of zero does not mean that the dictionary has been found, as we have seen. Let us put all runs
# with at most 24 signals into one picture:

few = columns["n"] <= 24
figure, ax = plt.subplots(figsize=(7.4, 3.6))
rng = np.random.default_rng(0)
looks = {
    (True, True): ("o", BLUE),
    (False, True): ("x", VERMILION),
    (False, False): ("s", GREY),
    (True, False): ("P", GREY),
}
words = {True: "found", False: "not found"}, {True: "solvable", False: "not solvable"}
for (success, solvable), (marker, colour) in looks.items():
    chosen = few & (columns["success"] == success) & (columns["solvable"] == solvable)
    if chosen.any():
        place = [list(methods).index(method) for method in columns["method"][chosen]]
        place = place + rng.uniform(-0.25, 0.25, len(place))
        label = f"{words[0][success]}, {words[1][solvable]}"
        ax.semilogy(
            place, columns["error"][chosen] + 1e-32, marker, color=colour, label=label, alpha=0.8, mfc="none"
        )
ax.axhline(1e-12, color="k", lw=1, ls=":")
ax.set_xticks(range(4), methods)
ax.set(ylabel="‖Y − DX‖² / ‖Y‖²", title="Fitted or not, found or not")
ax.legend(loc="lower left")

# %%
# Above the dotted line a run got stuck, or had too few steps: that is the optimizer's failure. Below it the
# fit is perfect. There, the squares are draws that cannot be solved: a perfect fit by another dictionary,
# which no method can avoid. But where the draw is solvable, every perfect fit that we have seen is the
# truth. The Hessian alone does not guarantee that: it says that the truth is isolated, not that it is
# unique.
#
# Restarts
# --------
# This is useful. The error is known, and whether a perfect fit is isolated can be computed from the Hessian
# at the fitted dictionary; neither needs the truth. So when a run got stuck, begin elsewhere, until the
# error vanishes. If one start succeeds with probability :math:`p`, then one of :math:`r` does with
# :math:`1 - (1-p)^r`.

again = mine & columns["solvable"] & (columns["error"] > 1e-12)
stuck = list(zip(columns["n"][again].tolist(), columns["seed"][again].tolist(), strict=True))
for n, seed in stuck:
    for start in range(2, 9):
        success, error = attempt("trust region", n, seed, start)
        if error < 1e-12:
            break
    print(f"n = {n}, draw {seed}: start {start} ends with error {error:.0e}; found: {success}")
print(f"{len(stuck)} solvable draws were stuck at the first start")

# %%
# Exercise
# --------
# Suppose that *you* may decide which atoms go into which signal. With random supports some atoms are in few
# signals, and others in many. Balance them instead: give every signal the three atoms that have been used
# least so far, and choose at random among equals. How does that change the fraction of draws in which every
# shift changes some signal?
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# Nearly all of them do, down to the counting bound itself: every atom is in about as many signals as any
# other, and with different other atoms. The criterion depends on the codes only, so no dictionary is needed
# to test it:


def balanced_codes(n, rng):
    X, used = np.zeros((d, n)), np.zeros(d)
    for j in range(n):
        chosen = np.lexsort((rng.random(d), used))[:S]  # by use, and by lot among equals
        X[chosen, j] = rng.standard_normal(S)
        used[chosen] += 1
    return X


rng, trials = np.random.default_rng(0), 60
fractions = {"random": [], "balanced": []}
for n in range(14, 31, 2):
    random = [n_free_shifts(draw(n, seed).codes.toarray()).any() for seed in range(trials)]
    balanced = [n_free_shifts(balanced_codes(n, rng)).any() for _ in range(trials)]
    fractions["random"].append(1 - np.mean(random))
    fractions["balanced"].append(1 - np.mean(balanced))

figure, ax = plt.subplots(figsize=(6.6, 3.6))
for (name, fraction), marker in zip(fractions.items(), "os", strict=True):
    ax.plot(range(14, 31, 2), fraction, f"{marker}-", label=f"{name} supports")
ax.axvline(bound, color="k", lw=1, ls=":")
ax.set(
    xlabel="number of signals n",
    ylabel="fraction of draws",
    title="Draws without a shift that changes no signal",
)
ax.legend()

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
# * Every signal brings m equations and S unknowns, so it takes at least d(m − 1)/(m − S) of them to
#   determine a dictionary: 14 here, 40 for the 16×32 dictionaries of the paper with S = 4.
# * That is necessary and not sufficient. With some supports atoms can be shifted towards another one without
#   changing any signal.
# * A regular Hessian means that the truth is isolated, not that it is unique. Still, in all draws tried
#   here a perfect fit of a solvable draw was the truth. Near the bound it takes second derivatives and a
#   ridge to get there, and now and then another start.

for n in numbers:
    assert min(left_free[n]) >= max(0, d * (m - 1) - n * (m - S))  # never fewer than the count
assert all(left_free[n] == predicted[n] for n in above)  # shifts explain all that counting overlooks
assert turned > 10 and problem.cost(changed) < 1e-20 * problem.scale  # a perfect fit by another dictionary

rate = {name: columns["success"][columns["method"] == name].mean() for name in methods}
assert rate["trust region"] > 1.2 * max(rate["MOD"], rate["K-SVD"])  # closer to the bound than both
at = lambda name, n: columns["success"][(columns["method"] == name) & (columns["n"] == n)].mean()
assert at("trust region", 24) == 1 and at("MOD", 60) < 1  # 24 signals suffice for the one, not 60 for another
assert max(at(name, 36) for name in ("K-SVD", "regularized SimCO")) < 0.5  # nor 36 for these
exact = columns["solvable"] & (columns["error"] < 1e-12)
assert columns["success"][exact].all()  # isolated and fitted: found, in all these draws
assert not columns["success"][
    ~columns["solvable"] & (columns["n"] < 24)
].all()  # not solvable: a matter of luck
assert fractions["balanced"][3] > fractions["random"][3] + 0.2  # balanced supports can be solved more often

plt.show()
