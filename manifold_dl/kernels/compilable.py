"""A mark for plain Python functions that compiled code may call, too.

They stay what they are: read, stepped through and run without Numba. Where a compiled function calls one, it
is compiled into it.
"""

from manifold_dl.kernels.installed import NUMBA_INSTALLED

if NUMBA_INSTALLED:
    from numba.extending import register_jitable as compilable
else:

    def compilable(function):
        return function


__all__ = ["compilable"]
