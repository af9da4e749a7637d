"""What Pymanopt lacks: `LBFGS` for any manifold, and K-SVD's closed form for a single atom.

Both are Pymanopt optimizers like its own: handed to an update rule, or run on a problem directly.
"""

from manifold_dl.optimizers.lbfgs import LBFGS
from manifold_dl.optimizers.running import OptimizerRun
from manifold_dl.optimizers.singular import LeadingSingularVector

__all__ = [
    "LBFGS",
    "LeadingSingularVector",
    "OptimizerRun",
]
