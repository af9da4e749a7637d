"""A mark for plain Python functions that compiled code may call, too.

They stay what they are: read, stepped through and run without Numba. Where a compiled function calls one, it
is compiled into it.
"""

try:
    from numba.extending import register_jitable as compilable
except ImportError:  # no Numba on this platform

    def compilable(function):
        return function


__all__ = ["compilable"]
