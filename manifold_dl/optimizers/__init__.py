"""What Pymanopt lacks: `LBFGS` for any manifold, and K-SVD's closed form for a single atom.

Both are Pymanopt optimizers like its own: pass them to an update rule, or run them on a problem directly.
`running.py` runs any optimizer inside an update rule.
"""

from pymanopt.optimizers import (
    ConjugateGradient,
    NelderMead,
    ParticleSwarm,
    SteepestDescent,
    TrustRegions,
)

from manifold_dl.components.registry import register
from manifold_dl.optimizers.lbfgs import LBFGS
from manifold_dl.optimizers.running import OptimizerRun
from manifold_dl.optimizers.singular import LeadingSingularVector

__all__ = [
    "LBFGS",
    "LeadingSingularVector",
    "OptimizerRun",
]

register("optimizers", LBFGS, LeadingSingularVector)
register("optimizers", ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions)
