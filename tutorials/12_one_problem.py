"""
Learning as one problem
=======================

Usually dictionary learning alternates: find sparse codes for the dictionary, then a dictionary for the codes.
Does it have to? If the codes are those of the *lasso*, they are determined by the dictionary, and all of
learning is a single function of it. Then any optimizer on the spheres can minimise it.

You need NumPy and the dictionary update (:ref:`sphx_glr_tutorials_03_dictionary_update.py`).
"""

# %%

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

import manifold_dl as mdl

plt.style.use(mdl.plotting.STYLE)
m, d, n, S = 8, 12, 150, 2
D_true, X_true, Y = mdl.datasets.synthetic(m, d, n, sparsity=S, snr_db=30, rng=0)
spheres = mdl.manifolds.Spheres(m, d)
start = spheres.random_point(rng=1)

# %%
# Codes that follow without a support
# -----------------------------------
# For a dictionary :math:`D` the lasso gives every signal its own sparse code. The value of that minimum,
# added over the signals, is our function:
#
# .. math:: f_\alpha(D) = \sum_j \min_x \tfrac12 \|y_j - D x\|^2 + \alpha \|x\|_1 .
#
# A larger :math:`\alpha` means fewer atoms in a code.

problems = {alpha: mdl.lasso_problem(Y, d, alpha=alpha) for alpha in (0.5, 0.1, 0.02)}
for alpha, problem in problems.items():
    print(f"α = {alpha}: {problem.codes(start).nnz / n:.1f} atoms in a code, f = {problem.cost(start):.2f}")

# %%
# The gradient is simple
# ----------------------
# The codes depend on :math:`D` in a complicated way. But they are *optimal*, so to first order their change
# does not matter, and the gradient is the one for fixed codes, :math:`-\sum_j r_j x_j^T`. Let us compare it
# with a difference quotient.

problem = problems[0.1]
X = problem.codes(start)
by_hand = -(Y - start @ X) @ X.T
direction = spheres.random_tangent_vector(start, rng=2)
ahead, behind = (problem.cost(spheres.exp(start, t * direction)) for t in (1e-5, -1e-5))
slope, predicted = (ahead - behind) / 2e-5, np.sum(by_hand * direction)
print(f"difference quotient {slope:.6f}, gradient {predicted:.6f}")

# %%
# Any optimizer
# -------------
# It is a Pymanopt problem, with a preconditioner and a Hessian besides. Here are four optimizers from the
# same start. Every problem records the points that were accepted.

searcher, limits = mdl.WolfeSearch(), {"verbosity": 0, "max_iterations": 100}
optimizers = {
    "steepest descent": SteepestDescent(line_searcher=searcher, **limits),
    "conjugate gradients": ConjugateGradient(line_searcher=searcher, **limits),
    "L-BFGS": mdl.LBFGS(**limits),
    "trust region": TrustRegions(**limits),
}
records = {}
for name, optimizer in optimizers.items():
    problem = mdl.lasso_problem(Y, d, alpha=0.1)
    optimizer.run(problem, initial_point=start)
    records[name] = [iterate.value for iterate in problem.record]

figure, ax = plt.subplots(figsize=(7, 3.8))
for name, values in records.items():
    ax.plot(values, **mdl.plotting.method_style(name) | {"marker": ""}, label=name)
ax.set(xscale="symlog", xlabel="iterations", ylabel="f", title="One start, four optimizers")
ax.legend()

# %%
# None of them ever rises, although the supports of the codes change all the time. They end in local minima,
# which need not be the same: a function of many pieces has many of them.
#
# Which α?
# --------
# The penalty shrinks the codes, and a large one moves the minimum away from the true atoms. A small one has
# less of this bias. But from a random start a code with a small penalty uses nearly all atoms it can, so it
# may be better to begin with a large one and reduce it in stages, each time from where we are. We measure
# both, with the same number of steps, from twelve starts.


def descend(D, alphas, steps):
    """The dictionary after all of the penalties, with so many steps in total."""
    for alpha in alphas:
        each = steps // len(alphas)
        optimizer = ConjugateGradient(line_searcher=searcher, max_iterations=each, verbosity=0)
        D = optimizer.run(mdl.lasso_problem(Y, d, alpha=alpha), initial_point=D).point
    return D


stages = [0.5, 0.3, 0.1, 0.05, 0.02]
starts = [spheres.random_point(rng=seed) for seed in range(12)]


def mean_recovery(alphas):
    return np.mean([mdl.metrics.recovery(descend(D0, alphas, 200), D_true) for D0 in starts])


direct = [mean_recovery([alpha]) for alpha in stages]
staged = [mean_recovery(stages[: k + 1]) for k in range(len(stages))]

figure, ax = plt.subplots(figsize=(7, 3.8))
ax.plot(stages, direct, "o-", label="one penalty")
ax.plot(stages, staged, "s--", label="reduced in stages down to it")
ax.set(xscale="log", xlabel="α", ylabel="fraction of atoms found", ylim=(0, 1.05), title="Mean of 12 starts")
ax.set_xticks(stages, [str(alpha) for alpha in stages])
ax.minorticks_off()
ax.invert_xaxis()
ax.legend(loc="lower right")
print(f"α = {stages[-1]}: {direct[-1]:.0%} of the atoms directly, {staged[-1]:.0%} in stages")

# %%
# The bias is what matters. Stages sound reasonable, but on these signals they find fewer atoms: what a
# large penalty has decided is hard to undo. Measure before you believe.
#
# What is still missing of the atoms can be had, too: ``presets.recover`` exchanges atoms that are used
# little for random ones, keeps what lowers :math:`f_\alpha`, and ends with known sparsity.

found = mdl.learn_dictionary(Y, d, **mdl.presets.recover(sparsity=S), rng=0)
recovered = mdl.metrics.recovery(found.dictionary, D_true)
print(f"presets.recover: {recovered:.0%}")

# %%
# Exercise
# --------
# Two equal atoms can share a code in any ratio. Which problem has a gradient there, and which has not?
# Turn one of the two in some direction and in the opposite one, for the lasso and with ``mu=0.1``.
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# The lasso gives all the weight to the atom that has become better, whichever it is, so the slopes on both
# sides differ. With a ridge (the elastic net) codes are unique, the weight is divided equally, and the slopes
# agree.

equal = start.copy()
equal[:, 1] = equal[:, 0]
turn = np.zeros_like(equal)
turn[:, 0] = direction[:, 0] - equal[:, 0] * (equal[:, 0] @ direction[:, 0])
jumps = {}
for mu in (0.0, 0.1):
    problem = mdl.lasso_problem(Y, d, alpha=0.1, mu=mu)
    right, left = (
        (problem.cost(spheres.exp(equal, t * turn)) - problem.cost(equal)) / t for t in (1e-6, -1e-6)
    )
    jumps[mu] = abs(right - left)
print(f"the slopes differ by {jumps[0.0]:.3f} for the lasso, by {jumps[0.1]:.0e} for the elastic net")

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
# * With the codes of a lasso, dictionary learning is one function on a product of spheres.
# * Its gradient is that of fixed codes, because the codes are optimal.
# * Every optimizer of Pymanopt minimises it, without ever rising.
# * A large penalty is biased: a small one finds more of the true atoms.

assert np.isclose(slope, predicted, rtol=1e-4)  # the gradient of fixed codes
assert all(b <= a + 1e-9 for values in records.values() for a, b in pairwise(values))  # no optimizer rises
assert direct[-1] > direct[0] + 0.2 and staged[-1] > 0.8  # a large penalty is biased
assert recovered == 1.0  # exchanges of atoms find all
assert jumps[0.0] > 100 * jumps[0.1]  # only the elastic net is smooth at equal atoms

plt.show()
