"""Which kernels are used, and how they are compiled: with `numba_private.py` the only user of Numba.

The compiled kernels are used where Numba is installed; an import that fails for any other reason is an error
and is raised, because plain NumPy gives the same results but takes up to two hundred times as long. Kernels
are compiled at their first call and kept on disk.
"""

import gc
import sys
from collections.abc import Callable
from functools import lru_cache, update_wrapper
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from manifold_dl.kernels import cache

__all__ = [
    "NUMBA_INSTALLED",
    "compiled",
    "compiled_in_order",
    "compiled_reordering",
    "internal",
    "internal_in_order",
    "internal_reordering",
]

NUMBA_INSTALLED = find_spec("numba") is not None
_is_safe = lru_cache(cache.is_safe)  # one answer for all kernels of a folder

# What is compiled together, and how many seconds that takes with an empty cache (`benchmarks/cold_start.py`).
GROUPS = {
    "manifold_dl.kernels.reduced": "the dictionary update (about 6 s)",
    "manifold_dl.kernels.coding": "sparse coding (about 4 s)",
}


def _jit(**options: Any) -> Callable[[Callable], Any]:
    """A decorator that compiles with Numba, or that leaves a function as it is where Numba is missing."""
    if not NUMBA_INSTALLED:
        return lambda function: function
    from numba import njit

    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}

    def decorate(function: Callable) -> Any:
        try:
            dispatcher = njit(cache=True, **options)(function)
        except RuntimeError:  # compile in every process
            cache.warn_once("there is no folder where compiled kernels can be stored")
            return njit(**options)(function)
        if dispatcher is function:  # NUMBA_DISABLE_JIT leaves it Python, to be stepped through
            return function
        folder = Path(dispatcher.stats.cache_path)
        if not _is_safe(folder):
            return njit(**options)(function)
        _drop_outdated(folder)
        return cache.storing(dispatcher)

    return decorate


class Internal:
    """A function that compiled code alone calls. For Python it stays the function that it is.

    Machine code is made of it without a way to be called from Python, and is not kept on disk, because it
    becomes part of the kernels that call it: both together would take a fifth of the seconds of a first call.
    """

    def __init__(self, function: Callable, dispatcher: Any) -> None:
        self.function, self.dispatcher = function, dispatcher
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def _internal(**options: Any) -> Callable[[Callable], Any]:
    """A decorator for functions that compiled code alone calls."""
    if not NUMBA_INSTALLED:
        return lambda function: function
    from numba import njit

    wrappers = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    options = {"nogil": True, "error_model": "numpy", **wrappers, **options}
    jit = njit(**options)

    def decorate(function: Callable) -> Any:
        dispatcher = jit(function)
        return function if dispatcher is function else Internal(function, dispatcher)

    return decorate


def _let_numba_call_internal_functions() -> None:
    from numba import types
    from numba.extending import typeof_impl

    @typeof_impl.register(Internal)
    def typeof_internal(value: Internal, context: Any) -> Any:
        return types.Dispatcher(value.dispatcher)


@lru_cache(maxsize=1)
def _stamp() -> str:
    """Size and time of every kernel source, as one text."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return "\n".join(f"{file.name} {file.stat().st_mtime_ns} {file.stat().st_size}" for file in sources)


@lru_cache
def _drop_outdated(folder: Path) -> None:
    """Remove machine code that was compiled from other sources than today's.

    Kernels are compiled into each other, but Numba's cache on disk looks for changes in the file of the
    outermost one alone. So all of our sources count as one, by a file beside the cache.
    """
    stamp = folder / "manifold_dl.sources"
    try:
        if stamp.exists() and stamp.read_text() == _stamp():
            return
        for file in [*folder.glob("*.nbi"), *folder.glob("*.nbc")]:
            file.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text(_stamp())
    except OSError:  # a folder without write permission holds nothing that could become outdated
        pass


# Sums may be reordered so that they vectorise, but NaN and infinity keep their meaning. Kernels that call
# each other become one: else LLVM leaves some calls, for which the process that compiles finds other machine
# code than those that read the cache, with other last bits.
_REDUCED = {"forceinline": True, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}
compiled = _jit(**_REDUCED)

# The pursuits: a·b + c may be one instruction, and nothing else is left to the compiler.
compiled_in_order = _jit(fastmath={"contract"})

# Their inner products: sums may be reordered too, so that they vectorise.
compiled_reordering = _jit(fastmath={"contract", "reassoc"})

# The same for functions that compiled code alone calls. An integer argument must have one type everywhere
# (np.int64(0), not 0): for a constant Numba compiles the function once more.
internal = _internal(**_REDUCED)
internal_in_order = _internal(fastmath={"contract"})
internal_reordering = _internal(fastmath={"contract", "reassoc"})


def _call_new_objects_old() -> None:
    """Move all objects to the oldest generation of the garbage collection, without a pass over them.

    The next small collection would else begin with what a kernel has left. Objects that someone has frozen
    stay frozen.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _watch_compilation() -> None:
    """Say what is being compiled, once per group of kernels, and pause the garbage collection meanwhile.

    Numba makes some hundred thousand objects per kernel and keeps most of them, so collections find little
    and take a tenth of the time.
    """
    from numba.core import event

    class CompilationListener(event.Listener):
        announced: ClassVar[set[str]] = set()
        depth = 0  # of kernels that are compiled for each other; Numba's lock admits one thread
        collects_garbage = True

        def on_start(self, happening: Any) -> None:
            module = happening.data["dispatcher"].py_func.__module__ or ""  # code made by exec has none
            group = next((name for name in GROUPS if module.startswith(name)), None)
            if group is not None and group not in self.announced:
                self.announced.add(group)
                text = f"manifold_dl: compiling {GROUPS[group]}, once; later runs read it from disk ..."
                print(text, file=sys.stderr)
            if group is not None or self.depth > 0:
                self.depth += 1
            if self.depth == 1:
                self.collects_garbage = gc.isenabled()
                gc.disable()

        def on_end(self, happening: Any) -> None:
            if self.depth == 1 and self.collects_garbage:
                _call_new_objects_old()
                gc.enable()
            self.depth = max(0, self.depth - 1)

    event.register("numba:compile", CompilationListener())


if NUMBA_INSTALLED:
    _let_numba_call_internal_functions()
    _watch_compilation()
else:
    print("manifold_dl: Numba is not installed; the slower kernels in plain NumPy are used.", file=sys.stderr)
