"""Where the signals are and what runs the computation: blocks, rounds over them, sums over a fixed tree.

`protocol.py` is the seam that the mathematics is written against. Two engines run it: `threads.py` on one
machine, `dask.py` (with `cluster.py`, `rounds.py` and `worker.py`) on a cluster. `opening.py` turns what
users give into signals: `sources.py` and `units.py` prepare arrays, `files.py` and `dask_arrays.py` make
`blocked.py` of what is not in memory. Codes of Dask arrays are Dask arrays again (`dask_codes.py`).
"""

from manifold_dl.engines.cluster import ClusterError
from manifold_dl.engines.dask import Dask
from manifold_dl.engines.protocol import BlockMap, Engine
from manifold_dl.engines.threads import Threads

__all__ = ["BlockMap", "ClusterError", "Dask", "Engine", "Threads"]
