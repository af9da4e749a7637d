"""
An optimizer of your own
========================

From a point of a manifold to a better one: here by gradient steps whose length is the one that Barzilai and
Borwein read off the last step, with backtracking so that no step goes up.
"""
# ruff: noqa: E402 - every part of the page brings the names that it needs

# %%
# The whole of it. An optimizer has a method `run`, which is given a Pymanopt problem and where to begin, and
# returns an object with the attribute `point`. All geometry is the manifold's: `retraction` moves,
# `transport` carries a vector to the new point, where alone it can be compared with others.

# begin: component
from dataclasses import dataclass
from types import SimpleNamespace


@dataclass
class BarzilaiBorwein:
    max_iterations: int = 200
    min_gradient_norm: float = 1e-6

    def run(self, problem, *, initial_point):
        manifold, x = problem.manifold, initial_point
        cost, gradient, t = problem.cost(x), problem.riemannian_gradient(x), 1.0
        for _ in range(self.max_iterations):
            norm = manifold.norm(x, gradient)
            if not norm > self.min_gradient_norm:
                break
            new_x = manifold.retraction(x, -t * gradient)
            while not problem.cost(new_x) <= cost - 1e-4 * t * norm**2 and t * norm > 1e-15:
                t /= 2
                new_x = manifold.retraction(x, -t * gradient)
            if not problem.cost(new_x) < cost:
                break
            new_gradient = problem.riemannian_gradient(new_x)
            step, before = (manifold.transport(x, new_x, v) for v in (-t * gradient, gradient))
            curvature = manifold.inner_product(new_x, step, new_gradient - before)
            t = manifold.inner_product(new_x, step, step) / curvature if curvature > 0 else 2 * t
            x, cost, gradient = new_x, problem.cost(new_x), new_gradient
        return SimpleNamespace(point=x)


# end: component

# %%
# On problems whose minimum is known, with one atom and several, on four manifolds:

# begin: check
from manifold_dl.diagnostics import check_optimizer

print(check_optimizer(BarzilaiBorwein()))
# end: check

# %%
# It runs wherever Pymanopt's optimizers do: on a problem of your own, or in an update.

# begin: use
import manifold_dl as mdl

_, X, Y = mdl.datasets.synthetic(16, 24, 300, sparsity=3, snr_db=20, rng=0)
problem = mdl.update_problem(Y, X, mu=0.1)
start = problem.manifold.random_point(1)
values = {}
for optimizer in (BarzilaiBorwein(), mdl.LBFGS(verbosity=0)):
    point = optimizer.run(problem, initial_point=start).point
    values[type(optimizer).__name__] = problem.cost(point)
print(f"from {problem.cost(start):.0f} to", {name: round(value, 4) for name, value in values.items()})

D, X = mdl.SimCO(BarzilaiBorwein(max_iterations=5), mu=0.1)(Y, start, X)
# end: use

# %%
# What was shown: it ends where another optimizer does, and five of its steps are an update.

assert abs(values["BarzilaiBorwein"] - values["LBFGS"]) <= 1e-6 * values["LBFGS"]
assert problem.cost(D) < 0.5 * problem.cost(start)
