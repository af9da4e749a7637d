"""How far to go along a geodesic: the line searches of the dictionary update.

`GoldenSection` is Algorithm 2 of the paper, probe for probe. `WolfeSearch` finds the same minimum in a few
probes, because it also uses the slope φ′(t). Both are Pymanopt line searchers, for any of its manifolds and
problems: pass one to `SteepestDescent` or `ConjugateGradient` as `line_searcher=`. `trace` records what they
do.

Both minimise φ(t) = f(R(x, t d)) over t > 0, where R is the exponential map on the spheres and the retraction
on any other manifold, as in Pymanopt's own searchers. Both promise the same: the point returned is never
worse than x, and the result is ``(0.0, x)`` when the direction is zero or does not descend, or when nothing
better is found. A probe whose value is not a finite number counts as +∞.

`searchers.py` calls `minimize.py`, which drives an algorithm (`golden.py`, `wolfe.py`: generators of t) along
a curve (`curve.py`).
"""

from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher

from manifold_dl.components.registry import register
from manifold_dl.line_search.searchers import GoldenSection, WolfeSearch
from manifold_dl.line_search.trace import SearchRecord, trace

__all__ = ["GoldenSection", "SearchRecord", "WolfeSearch", "trace"]

register("line_searchers", GoldenSection, WolfeSearch, AdaptiveLineSearcher, BackTrackingLineSearcher)
