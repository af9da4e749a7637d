"""CPU seconds of a call, after smaller ones that import and compile."""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

limit = float("inf")  # CPU seconds of a timed call: the process ends when it takes longer
AGAIN = 4
_warm: set[tuple[Any, ...]] = set()


def cpu_seconds(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """User and system seconds of all threads of this process, and the result.

    A call in which Numba compiled something that no warm-up had needed is made again, as a whole.
    """
    for _ in range(AGAIN):
        with _compilations() as compiled:
            begin = time.process_time()
            _end_at(begin + limit)
            result = function(*arguments)
            seconds = time.process_time() - begin
            _end_at(float("inf"))
        if not compiled:
            return seconds, result
    raise RuntimeError(f"Numba compiles in every one of {AGAIN} calls: {', '.join(compiled)}")


@contextmanager
def _compilations() -> Iterator[list[str]]:
    """The names of what Numba compiles inside, of any library; reading its cache is no compilation."""
    names: list[str] = []
    if "numba" not in sys.modules:
        yield names
        return
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        yield names
    names += [happening.data["dispatcher"].py_func.__name__ for _, happening in recorder.buffer]


def _end_at(seconds: float) -> None:
    """Let the system end this process when it has used so many seconds."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = resource.RLIM_INFINITY if seconds == float("inf") else int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def after_warm_up(function: Callable[..., Any], problem: Any, *small: Any) -> tuple[float, Any]:
    """The same; for a function and a precision the small problems are solved before, each once."""
    for one in small:
        warm_up(function, one, str(problem.signals.dtype))
    return cpu_seconds(function, problem)


def warm_up(function: Callable[..., Any], small: Any, dtype: str) -> None:
    """Call it once with a problem of this kind, the first time."""
    key = (id(function), dtype, small.kind)
    if key in _warm:
        return
    _warm.add(key)
    with suppress(Exception):  # a library may not like a small problem: what counts is the one measured
        function(small)
