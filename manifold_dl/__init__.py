"""manifold_dl: dictionary learning by optimisation on manifolds, built on Pymanopt."""

from manifold_dl import manifolds, regularizers
from manifold_dl.problem import update_problem

__all__ = ["manifolds", "regularizers", "update_problem"]
__version__ = "0.1.0"
