"""Which atoms move together: the index sets I of the paper's Section II.

A schedule yields one sweep of index arrays. `AllAtoms` gives SimCO, `OneAtATime` gives K-SVD, and anything
between is a block method. The update rules call `sweep`, which validates the index sets of any schedule,
built-in or not, before the first atom moves.
"""

from manifold_dl.components.registry import register
from manifold_dl.schedules.index_sets import AllAtoms, Blocks, OneAtATime, Overlapping, RandomSubsets
from manifold_dl.schedules.protocol import Schedule
from manifold_dl.schedules.sweeps import sweep

__all__ = [
    "AllAtoms",
    "Blocks",
    "OneAtATime",
    "Overlapping",
    "RandomSubsets",
    "Schedule",
    "sweep",
]

register("schedules", AllAtoms, OneAtATime, Blocks, RandomSubsets, Overlapping)
