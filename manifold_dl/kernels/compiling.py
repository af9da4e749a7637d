"""How the kernels are compiled, and who says so."""

import sys

from numba import njit
from numba.core import event

# Sums may be reordered so that they vectorise, but NaN and infinity keep their meaning.
compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})

# Part of every compiled function that calls it: that one alone is compiled.
compiled_into_callers = njit(nogil=True, error_model="numpy", inline="always")

# Sums in the order they are written in: where compiled code must find what Python does.
compiled_to_the_letter = njit(nogil=True, cache=True, error_model="numpy")


class _SayOnce(event.Listener):
    """The first compilation takes seconds: say so, once. Later runs read the kernels from disk."""

    said = False

    def on_start(self, happening):
        module = happening.data["dispatcher"].py_func.__module__ or ""  # code made by exec has none
        if not self.said and module.startswith("manifold_dl."):
            self.said = True
            print("manifold_dl: compiling kernels (once; they are kept on disk) ...", file=sys.stderr)

    def on_end(self, happening):
        pass


event.register("numba:compile", _SayOnce())
