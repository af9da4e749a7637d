"""What Pymanopt lacks: `LBFGS` for any manifold, and K-SVD's closed form for a single atom.

Both are Pymanopt optimizers like its own: handed to an update rule, or run on a problem directly.
"""

from contextlib import contextmanager

from manifold_dl.optimizers.lbfgs import LBFGS
from manifold_dl.optimizers.singular import LeadingSingularVector

__all__ = ["LBFGS", "LeadingSingularVector", "quiet"]


@contextmanager
def quiet(optimizer):
    """Keep a Pymanopt optimizer from printing: its default prints every step, for thousands of stages."""
    before = getattr(optimizer, "_verbosity", None)
    if before is None:
        yield
        return
    optimizer._verbosity = 0
    try:
        yield
    finally:
        optimizer._verbosity = before
