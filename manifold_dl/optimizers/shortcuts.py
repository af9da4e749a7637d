"""Optimizers set up for one update stage: a few steps between two sparse codings.

`default_optimizer` is what `SimCO` uses. The others have short names, `SHORTCUTS`, that the command line and
the arguments of Python functions accept: ``SimCO(optimizer="trust-region")``.
"""

from typing import Any

from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

from manifold_dl.line_search import GoldenSection, WolfeSearch
from manifold_dl.optimizers.lbfgs import LBFGS

STEPS = 5  # of a stage, for optimizers that are not told otherwise


def default_optimizer(steps: int = STEPS, line_searcher: Any = None) -> ConjugateGradient:
    """So many conjugate-gradient steps along geodesics: see the measurements in `SimCO`.

    Polak and Ribière's β forgets a direction that did not help, so a laxer search will do. Its first probe
    grows with the number of atoms: the first step from a random dictionary turns each by about a radian.
    """
    if line_searcher is None:
        line_searcher = WolfeSearch(curvature=0.3, first_step=None)
    # Pymanopt makes one step less than it is allowed.
    return ConjugateGradient(
        "PolakRibiere", line_searcher=line_searcher, max_iterations=steps + 1, verbosity=0
    )


def lbfgs(line_searcher: Any = None) -> LBFGS:
    return LBFGS(line_searcher=line_searcher, max_iterations=STEPS)


def trust_region() -> TrustRegions:
    return TrustRegions(kappa=0.3, max_iterations=3)


def golden() -> SteepestDescent:
    """The paper's one step with golden section."""
    return SteepestDescent(line_searcher=GoldenSection(), max_iterations=1)


SHORTCUTS = {
    "cg": default_optimizer,
    "lbfgs": lbfgs,
    "trust-region": trust_region,
    "golden": golden,
}
