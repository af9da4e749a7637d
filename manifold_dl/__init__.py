"""manifold_dl: dictionary learning by optimisation on manifolds, built on Pymanopt.

The public names are listed in `__init__.pyi`, which editors, type checkers and this module read. Each is
imported at its first use, so that ``manifold-dl --help`` imports no compiler. The version stands here.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
