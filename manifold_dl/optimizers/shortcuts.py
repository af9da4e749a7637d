"""Optimizers configured for one update stage: a few steps between two sparse codings.

`default_optimizer` is what `SimCO` uses. The others have short names, `SHORTCUTS`, that the command line and
the arguments of Python functions accept: ``SimCO(optimizer="trust-region")``.
"""

from typing import Any

from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.optimizers.lbfgs import LBFGS

STEPS = 5  # per stage, unless given


def default_optimizer(steps: int = STEPS, line_searcher: Any = None) -> ConjugateGradient:
    """Return a conjugate-gradient method for a few steps along geodesics: see the measurements in `SimCO`.

    Polak and Ribière's β resets a direction that did not help, so that a less accurate line search suffices.
    Its first trial step grows with the number of atoms: the first step from a random dictionary turns each by
    about a radian.

    Parameters
    ----------
    steps : int
        The number of steps.
    line_searcher : object, optional
        A Pymanopt line searcher, by default `WolfeSearch(curvature=0.3, first_step=None)`.

    Returns
    -------
    pymanopt.optimizers.ConjugateGradient
    """
    if line_searcher is None:
        line_searcher = WolfeSearch(curvature=0.3, first_step=None)
    # Pymanopt makes max_iterations − 1 steps.
    return ConjugateGradient(
        "PolakRibiere", line_searcher=line_searcher, max_iterations=steps + 1, verbosity=0
    )


def lbfgs(line_searcher: Any = None) -> LBFGS:
    """Return `LBFGS` with the number of steps of one stage."""
    return LBFGS(line_searcher=line_searcher, max_iterations=STEPS)


def trust_region() -> TrustRegions:
    """Return a trust-region method with three outer iterations."""
    return TrustRegions(kappa=0.3, max_iterations=3)


def golden() -> SteepestDescent:
    """Return steepest descent with one step and golden section, as in the paper."""
    return SteepestDescent(line_searcher=GoldenSection(), max_iterations=1)


SHORTCUTS = {
    "cg": default_optimizer,
    "lbfgs": lbfgs,
    "trust-region": trust_region,
    "golden": golden,
}
