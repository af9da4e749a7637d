"""
A line searcher of your own
===========================

How far to go along a direction: here by backtracking, which halves the step until the cost falls by at least
a tenth of what the slope promised.
"""
# ruff: noqa: E402 - every part of the page brings the names that it needs

# %%
# The whole of it. Pymanopt calls `search` with the cost, the manifold, a point x, a direction d, and the
# value and slope at x; it expects the length of the step and the new point. Written this way round, the
# comparison is also false where the cost is not a number, so that such a point is never accepted.

# begin: component
from dataclasses import dataclass


@dataclass
class Backtracking:
    first_step: float = 1.0
    max_halvings: int = 40

    def search(self, objective, manifold, x, d, f0, df0):
        norm = manifold.norm(x, d)
        if not (norm > 0 and df0 < 0):
            return 0.0, x
        t = self.first_step / norm
        for _ in range(self.max_halvings):
            new_x = manifold.retraction(x, t * d)
            if objective(new_x) <= f0 + 0.1 * t * df0:
                return t * norm, new_x
            t /= 2
        return 0.0, x


# end: component

# %%
# On a sphere and in flat space, with short and long directions, uphill, and where the cost is not a number:

# begin: check
from manifold_dl.diagnostics import check_line_searcher

print(check_line_searcher(Backtracking()))
# end: check

# %%
# Any Pymanopt optimizer that takes a line searcher takes this one. It may hold parameters but no data:
# optimizers copy it for every run.

# begin: use
from pymanopt.optimizers import SteepestDescent

import manifold_dl as mdl

_, X, Y = mdl.datasets.synthetic(16, 24, 300, sparsity=3, snr_db=20, rng=0)
problem = mdl.update_problem(Y, X, mu=0.1)
start = problem.manifold.random_point(1)
values = {}
for searcher in (Backtracking(), mdl.WolfeSearch()):
    descent = SteepestDescent(line_searcher=searcher, max_iterations=5, verbosity=0)
    values[type(searcher).__name__] = problem.cost(descent.run(problem, initial_point=start).point)
print(f"from {problem.cost(start):.0f} to", {name: round(value, 1) for name, value in values.items()})
# end: use

# %%
# What was shown: it descends; a search that also looks at the slope gets lower in as many steps.

assert values["WolfeSearch"] < values["Backtracking"] < 0.5 * problem.cost(start)
