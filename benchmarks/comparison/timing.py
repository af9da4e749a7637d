"""CPU seconds of a call, after a smaller one that imports and compiles."""

import resource
import time
from collections.abc import Callable
from typing import Any

limit = float("inf")  # CPU seconds of a timed call: the process ends when it takes longer
_warm: set[tuple[Any, ...]] = set()


def cpu_seconds(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """User and system seconds of all threads of this process, and the result."""
    begin = time.process_time()
    _end_at(begin + limit)
    result = function(*arguments)
    seconds = time.process_time() - begin
    _end_at(float("inf"))
    return seconds, result


def _end_at(seconds: float) -> None:
    """Let the system end this process when it has used so many seconds."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = resource.RLIM_INFINITY if seconds == float("inf") else int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def after_warm_up(function: Callable[..., Any], problem: Any, *small: Any) -> tuple[float, Any]:
    """The same; the first time for a function and a precision, the small problems are solved before."""
    for one in small:
        warm_up(function, one, str(problem.signals.dtype))
    return cpu_seconds(function, problem)


def warm_up(function: Callable[..., Any], small: Any, dtype: str) -> None:
    """Call it once with a problem of this size, the first time."""
    size = small.n_patches if hasattr(small, "n_patches") else small.signals.shape
    if (id(function), dtype, size) not in _warm:
        _warm.add((id(function), dtype, size))
        function(small)
