"""
The lab: from a page in the browser to Python, and back
=======================================================

Many questions about an algorithm are answered fastest by trying. ``manifold-dl lab`` opens a page on which
optimizers, line searchers, manifolds and regularizers are swapped with the mouse, while the objective, the
line search and the atoms are drawn. This short tutorial does in Python what the page does, and ends where
the page begins.

Start it with ``make lab``, or with ``pip install "manifold-dl[lab]"`` and ``manifold-dl lab``.
"""

import matplotlib.pyplot as plt
import numpy as np
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

import manifold_dl as mdl

# %%
# What a run is
# -------------
# The page draws signals, fixes the true support, and starts an optimizer at a random dictionary. These are
# the lines that it shows under *The same in Python*:

truth, codes, Y = mdl.datasets.synthetic(16, 32, 300, sparsity=4, rng=0)
support = codes != 0
start = mdl.manifolds.Spheres(16, 32).random_point(rng=101)

# %%
# Three optimizers
# ----------------
# On the page one chooses another optimizer and presses *Run* again; the earlier curve stays, pale.

optimizers = {
    "steepest descent": SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=50, verbosity=0),
    "conjugate gradients": ConjugateGradient(line_searcher=mdl.WolfeSearch(), max_iterations=50, verbosity=0),
    "trust region": TrustRegions(max_iterations=50, verbosity=0),
}
problems = {name: mdl.update_problem(Y, support) for name in optimizers}
ends = {
    name: optimizer.run(problems[name], initial_point=start).point for name, optimizer in optimizers.items()
}

# %%
# What it cost
# ------------
# A problem records every point that was accepted, with the evaluations until then. On the page this is the
# switch between iterations, evaluations and seconds.

figure, ax = plt.subplots(figsize=(13, 5))
for name, problem in problems.items():
    evaluations = [iterate.evaluations for iterate in problem.record]
    values = [iterate.value for iterate in problem.record]
    ax.semilogy(evaluations, values, label=name, color=mdl.plotting.method_style(name)["color"])
ax.set(xlabel="evaluations", ylabel="objective", title="The same signals, the same start")
ax.legend()

# %%
# When is it good enough?
# -----------------------
# The first mission of the page asks for 10⁻⁶ ‖Y‖² in fewer than 60 evaluations.


def evaluations_until(problem, fraction):
    """Evaluations until the objective is that fraction of ‖Y‖²; infinite if it never was."""
    reached = [it.evaluations for it in problem.record if it.value <= fraction * problem.scale]
    return reached[0] if reached else np.inf


needed = {name: evaluations_until(problem, 1e-6) for name, problem in problems.items()}
print(needed)

# %%
# One step, looked at closely
# ---------------------------
# Below the objective the page draws φ(t) of any step. Here is the first one of golden section.

with mdl.line_search.trace() as searches:
    first = SteepestDescent(line_searcher=mdl.GoldenSection(), max_iterations=1, verbosity=0)
    first.run(mdl.update_problem(Y, support), initial_point=start)
figure, ax = plt.subplots(figsize=(13, 5))
mdl.plotting.plot_line_search(searches[0], ax)

# %%
# A settings link
# ---------------
# All settings of the page are in its address, and an address can be given to the command. This one begins
# with five atoms on a sphere that can be turned::
#
#     manifold-dl lab "?m=3&d=5&n=100&sparsity=1"

# %%
# Exercise
# --------
# Open the page and complete the mission *Halve the coherence at less than 1 % error*. Then copy its code, or
# write it yourself: 30 signals, three ridges in turn, and a weight of 0.01 ‖Y‖².
#
# .. raw:: html
#
#    <details class="answer"><summary>Answer</summary>
#
# With so few signals many dictionaries fit, and the penalty chooses one of little coherence.

_, few_codes, few = mdl.datasets.synthetic(16, 32, 30, sparsity=4, rng=0)
results = {}
for name, regularizers in {
    "without": [],
    "with": [mdl.regularizers.Coherence(0.01 * np.sum(few**2))],
}.items():
    D = start
    for mu in (0.1, 0.01, 0.0):
        problem = mdl.update_problem(few, few_codes != 0, mu=mu, regularizers=regularizers)
        optimizer = mdl.LBFGS(line_searcher=mdl.WolfeSearch(), max_iterations=50, verbosity=0)
        D = optimizer.run(problem, initial_point=D).point
    error = np.linalg.norm(few - D @ problem.codes(D)) / np.linalg.norm(few)
    results[name] = mdl.metrics.coherence(D), error
print(results)

# %%
# .. raw:: html
#
#    </details>

# %%
# What we have seen
# -----------------
# * The page and a few lines of Python do the same.
# * Counted in evaluations, slopes and curvature pay: golden section needs hundreds, a trust region a few
#   dozen.
# * A regularizer chooses among dictionaries that fit equally well.

assert needed["trust region"] < 60  # the mission is done
assert needed["conjugate gradients"] < needed["steepest descent"]  # slopes and directions pay
assert mdl.metrics.recovery(ends["trust region"], truth) == 1.0  # all atoms are found
assert results["with"][0] < results["without"][0] / 2  # half the coherence
assert results["with"][1] < 0.01  # at less than 1 % error

plt.show()
