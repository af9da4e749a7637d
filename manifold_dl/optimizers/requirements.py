"""Which methods of a manifold each optimizer calls, so that a missing one is reported before a run starts."""

from typing import Any

from pymanopt.optimizers import ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions

from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.optimizers.lbfgs import LBFGS

_SLOPE = ("euclidean_to_riemannian_gradient", "retraction")
_NEEDS = {
    SteepestDescent: _SLOPE,
    ConjugateGradient: (*_SLOPE, "transport"),
    LBFGS: (*_SLOPE, "transport"),
    TrustRegions: (*_SLOPE, "euclidean_to_riemannian_hessian", "to_tangent_space"),
    NelderMead: ("dist", "log", "pair_mean", "retraction"),
    ParticleSwarm: ("log", "transport", "retraction"),
}


def require_methods(optimizer: Any, feasible: FeasibleSet) -> None:
    """Refuse an optimizer that calls methods which the manifold does not have.

    Parameters
    ----------
    optimizer : object
        A Pymanopt optimizer, `LBFGS`, or any other: for one of unknown class nothing is required.
    feasible : FeasibleSet
        The manifold, which can list its missing methods.

    Examples
    --------
    >>> from manifold_dl.manifolds import feasible_set
    >>> from pymanopt.manifolds import Stiefel
    >>> require_methods(TrustRegions(), feasible_set(Stiefel, 4, 2))
    >>> require_methods(NelderMead(), feasible_set(Stiefel, 4, 2))
    Traceback (most recent call last):
    ...
    ValueError: NelderMead needs the methods dist, log and pair_mean, which Stiefel manifold St(4,2) does not
    have: use another optimizer, such as ConjugateGradient or TrustRegions.
    """
    lacking = feasible.missing_methods()
    if not lacking:
        return
    needed = next((names for cls, names in _NEEDS.items() if isinstance(optimizer, cls)), ())
    missing = [name for name in needed if name in lacking]
    if not missing:
        return
    *most, last = missing
    listed = f"methods {', '.join(most)} and {last}" if most else f"method {last}"
    remedy = "use another optimizer, such as ConjugateGradient or TrustRegions"
    if not isinstance(optimizer, NelderMead | ParticleSwarm):
        remedy = "add what is missing to the manifold, or use another one, such as Spheres"
    raise ValueError(
        f"{type(optimizer).__name__} needs the {listed}, which {feasible.manifold} does not have: {remedy}."
    )
