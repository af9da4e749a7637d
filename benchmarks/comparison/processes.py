"""Processes of the libraries, as the one that compares sees them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1]
ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "SPAMS_NUM_THREADS"),
    "1",
)


def environment(**more: str) -> dict[str, str]:
    """That of a process with one thread, which finds this package."""
    path = os.pathsep.join([str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": path, "MPLBACKEND": "agg", **more}


class Library:
    """One library in a process of its own, which is started again if it ends."""

    def __init__(self, task: str, adapter: Path, log: Any) -> None:
        self.command = [sys.executable, "-m", "comparison.worker", task, str(adapter)]
        self.adapter, self.log = adapter, log
        self.process: subprocess.Popen[str] | None = None
        self.hello = self.start()

    def start(self) -> dict[str, Any]:
        """Begin a new process; what it says of its library."""
        self.stop()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            encoding="utf-8",
            env=environment(),
        )
        return self._read() or {"missing": f"{self.adapter.name} ended without an answer"}

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def methods(self, cell: dict[str, Any]) -> list[str]:
        """The rows that the adapter has for a cell."""
        return (self._ask({"methods": cell}) or {}).get("methods", [])

    def measure(self, method: str, cell: dict[str, Any], limit: float) -> dict[str, Any]:
        """One measurement; a process that ended is started again, and the reason noted."""
        answer = self._ask({"method": method, "cell": cell, "limit": limit})
        if answer is not None:
            return answer
        assert self.process is not None
        by_limit = self.process.wait() == -24  # SIGXCPU
        self.start()
        return {"failure": f"more than {limit:g} s" if by_limit else "the process ended"}

    def _ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        assert self.process is not None and self.process.stdin is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self._read()

    def _read(self) -> dict[str, Any] | None:
        assert self.process is not None and self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None
