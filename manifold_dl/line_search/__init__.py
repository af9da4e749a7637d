"""How far to go along a geodesic: the line searches of the dictionary update.

`GoldenSection` is Algorithm 2 of the paper, probe for probe. `WolfeSearch` finds the same minimum in a few
probes, because it also looks at the slope φ′(t). Both are Pymanopt line searchers, for any of its manifolds
and problems: hand one to `SteepestDescent` or `ConjugateGradient` as `line_searcher=`. `trace` records what
they do.

Both minimise φ(t) = f(R(x, t d)) over t > 0, where R is the exponential map on the spheres and the retraction
on any other manifold, as in Pymanopt's own searchers. Both promise the same: the point returned is never
worse than x, and they give up with ``(0.0, x)`` when the direction is zero or does not descend, or when
nothing better is found. A probe whose value is not a finite number counts as +∞.

The searches themselves know nothing of manifolds: `golden` and `cubic` hold generators of the t at which they
want to know φ. `path` goes on with them, in Python; `whole` does so in compiled code, for the φ of a
dictionary; `searchers` are their faces.

An objective may offer a cheaper φ. If it has an attribute `restrict`, then ``phi = objective.restrict(x, d)``
is asked for ``phi(t)`` and ``phi.derivative(t)``, unless it is None. The point found that way is checked once
with the objective itself, which is free where values are kept: the optimizer asks for the same one next. If φ
has a method `arrive`, it hears of that point first, by ``phi.arrive(t, point)``, and may tell the objective.
If it has a method `walk`, it may make the whole search by itself, and return the point and the objective
there; or None, if this time it cannot.
"""

from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher

from manifold_dl.components.registry import register

from .searchers import GoldenSection, WolfeSearch
from .trace import SearchRecord, trace

__all__ = ["GoldenSection", "SearchRecord", "WolfeSearch", "trace"]

register("line_searchers", GoldenSection, WolfeSearch, AdaptiveLineSearcher, BackTrackingLineSearcher)
