"""manifold_dl: dictionary learning by optimisation on manifolds, built on Pymanopt.

The public names stand in `__init__.pyi`, the one list that editors, type checkers and this module read. Each
is imported at its first use, so that ``manifold-dl --help`` does not wait for a compiler.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
