"""manifold_dl: dictionary learning by optimisation on manifolds."""
