"""Whether the compiled kernels are used: decided here, once, by whether Numba is installed.

An import that fails for any other reason is an error and is raised: the kernels in plain NumPy give the same
answers, but a dictionary update takes up to two hundred times as long with them.
"""

import sys
from importlib.util import find_spec

__all__ = ["NUMBA_INSTALLED"]

NUMBA_INSTALLED = find_spec("numba") is not None

if not NUMBA_INSTALLED:
    print("manifold_dl: Numba is not installed; the slower kernels in plain NumPy are used.", file=sys.stderr)
