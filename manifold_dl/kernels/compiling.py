"""How the kernels are compiled, and who says so."""

import sys
from contextlib import suppress
from pathlib import Path

from numba import njit
from numba.core import cgutils, event
from numba.extending import intrinsic

# Kernels are compiled into each other, and searches with them, but Numba's cache on disk looks for changes in
# the file of the outermost alone. So all of these count as one.
_SOURCES = sorted(
    file for folder in ("kernels", "line_search") for file in Path(__file__).parents[1].glob(f"{folder}/*.py")
)
STAMP = tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in _SOURCES)


def _with_all_sources(jit):
    def decorate(function):
        dispatcher = jit(function)
        with suppress(AttributeError):  # with another Numba, editing a kernel may take a look at __pycache__
            dispatcher._cache._cache_file._source_stamp = STAMP
        return dispatcher

    return decorate


# Sums may be reordered so that they vectorise, but NaN and infinity keep their meaning. Kernels that call
# each other become one: else LLVM leaves some calls, for which the process that compiles finds other machine
# code than those that read the cache, with other last bits.
compiled = _with_all_sources(
    njit(
        nogil=True,
        cache=True,
        error_model="numpy",
        forceinline=True,
        fastmath={"reassoc", "contract", "nsz", "arcp"},
    )
)

# Part of every compiled function that calls it: that one alone is compiled.
compiled_into_callers = njit(nogil=True, error_model="numpy", inline="always")

# The pursuits: a·b + c may be one instruction, and nothing else is left to the compiler.
compiled_in_order = _with_all_sources(
    njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
)

# Their inner products: sums may be reordered too, so that they vectorise.
compiled_reordering = _with_all_sources(
    njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
)

# Sums in the order they are written in: where compiled code must find what Python does.
compiled_to_the_letter = _with_all_sources(njit(nogil=True, cache=True, error_model="numpy"))


@intrinsic
def borrowed(typingctx, array):
    """The same array, uncounted: for compiled generators, which never give back what they were handed."""

    def without_owner(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), without_owner


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
