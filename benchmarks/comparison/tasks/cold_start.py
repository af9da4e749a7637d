"""The first call in a new process: CPU seconds with nothing compiled yet, then with what is kept on disk.

Starting Python, imports and the call itself count. Everybody learns from 300 signals of length 16; ours
has the calls of `cold_start.py`, too.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from cold_start import FIRST_CALLS, cpu_seconds

from comparison import adapters
from comparison.processes import environment
from comparison.results import Row, values
from comparison.tables import Table, in_order, number

DRAWS, LIMIT = 1, 200.0
CODE = """
import sys
from pathlib import Path
from comparison import adapters, problems
adapter = adapters.load(Path(sys.argv[1]))
getattr(adapter, "PATCHES")[sys.argv[2]](problems.mixed_signals(16, 32, 300, 4, 0))
"""


def cells(options: Any) -> list[Row]:
    return [{"draw": draw} for draw in range(options.seed, options.seed + options.draws)]


def methods(adapter: ModuleType, cell: Row) -> dict[str, Any]:
    learning = {name: [CODE, adapter.__file__, name] for name in adapters.functions(adapter, "PATCHES")}
    own = FIRST_CALLS if adapter.DISTRIBUTION == "manifold-dl" else {}
    return learning | {f"manifold_dl: {name}": call for name, call in own.items()}


def group(cell: Row) -> Any:
    return None


def measure(call: Any, cell: Row) -> Row:
    with tempfile.TemporaryDirectory() as cache:
        if isinstance(call, list):
            first, second = _seconds(call, cache), _seconds(call, cache)
            return {"seconds": first, "second": second}
        first, second = cpu_seconds(call.arguments, cache), cpu_seconds(call.arguments, cache)
        return {"seconds": first, "second": second, "bound": call.bound}


def _seconds(arguments: list[str], cache: str) -> float:
    """User and system seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", *arguments],
        env=environment(NUMBA_CACHE_DIR=cache),
        cwd=Path(cache),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tables(rows: list[Row]) -> list[Table]:
    lines = [
        [
            name,
            *(number(min(values(rows, q, method=name), default=None), ".1f") for q in ("seconds", "second")),
        ]
        for name in in_order(row["method"] for row in rows)
    ]
    return [Table("First call in a new process", ["call", "CPU seconds", "second process"], lines)]
