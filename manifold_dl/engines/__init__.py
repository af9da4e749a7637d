"""Where the signals are and what runs the computation: blocks, rounds over them, sums over a fixed tree.

`protocol.py` is the seam that the mathematics is written against, `threads.py` the engine of one machine,
`sources.py` and `units.py` prepare the signals.
"""

from manifold_dl.engines.protocol import BlockMap, Engine
from manifold_dl.engines.threads import Threads

__all__ = ["BlockMap", "Engine", "Threads"]
