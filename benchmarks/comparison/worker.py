"""The process of one library: reads requests, runs them, answers with JSON lines.

    python -m comparison.worker TASK ADAPTER

The request ``{"methods": cell}`` is answered with the names of the rows that the adapter has for a cell
of the task, ``{"method": name, "cell": cell, "limit": seconds}`` with what was measured. A call that
takes more than `limit` CPU seconds ends the process. What libraries print goes to the error output.
"""

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from comparison import adapters, timing
from comparison.tasks import NEEDS


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    name, path = sys.argv[1], Path(sys.argv[2])

    def answer(content: dict[str, Any]) -> None:
        print(json.dumps(content), file=answers, flush=True)

    try:
        adapter = adapters.load(path)
        hello = {"library": adapter.DISTRIBUTION, "version": adapters.version(adapter)}
    except ImportError as error:  # PackageNotFoundError is one
        answer({"missing": str(error)})
        return
    if not any(hasattr(adapter, part) for part in NEEDS[name]):
        answer({"nothing": True})
        return
    task = importlib.import_module(f"comparison.tasks.{name}")
    answer(hello)
    for line in sys.stdin:
        request = json.loads(line)
        if "methods" in request:
            answer({"methods": list(task.methods(adapter, request["methods"]))})
        else:
            answer(measure(task, adapter, **request))


def measure(
    task: ModuleType, adapter: ModuleType, method: str, cell: dict[str, Any], limit: float
) -> dict[str, Any]:
    """What the task finds, or the error of the library."""
    timing.limit = limit
    try:
        return task.measure(task.methods(adapter, cell)[method], cell)
    except Exception as error:  # of a library: it is noted, and the others go on
        traceback.print_exc()
        return {"failure": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
