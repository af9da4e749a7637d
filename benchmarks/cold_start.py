"""How long does the first call take, before anything is compiled? CPU seconds with an empty cache.

    python benchmarks/cold_start.py                       # all four, about a minute
    python benchmarks/cold_start.py learn_dictionary      # one of them
    PYTHONPATH=/another/tree python benchmarks/cold_start.py

Each runs in a process of its own with a cache folder of its own, and everything counts: starting Python,
imports, compiling and the call itself. CPU seconds (user and system) do not depend on what else the machine
is doing. The problem sizes are small, so that nearly all of the time is compiling; `demo` is the whole
demonstration.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

DATA = """
import manifold_dl as mdl
from manifold_dl.datasets import synthetic
true, X, Y = synthetic(16, 32, 300, sparsity=4, rng=0)
"""

LEARN_DICTIONARY = f"""{DATA}
mdl.learn_dictionary(Y, 32, coder=mdl.OMP(sparsity=4), max_iter=2, rng=0)
"""

UPDATE_PROBLEM = f"""{DATA}
from pymanopt.optimizers import TrustRegions
problem = mdl.update_problem(Y, X, mu=0.1)
TrustRegions(max_iterations=5, verbosity=0).run(problem, initial_point=problem.manifold.random_point(rng=1))
"""

RECOVER = f"""{DATA}
mdl.learn_dictionary(Y, 32, **mdl.presets.recover(4), rng=0)
"""


class FirstCall(NamedTuple):
    """A command of Python, and the CPU seconds that it may take."""

    arguments: list[str]
    bound: float


FIRST_CALLS = {
    "learn_dictionary": FirstCall(["-c", LEARN_DICTIONARY], 10),
    "update_problem, trust region": FirstCall(["-c", UPDATE_PROBLEM], 6),
    "presets.recover": FirstCall(["-c", RECOVER], 14),
    "demo": FirstCall(["-m", "manifold_dl", "demo", "--quiet", "--out", "demo.png"], 20),
}


def cpu_seconds(arguments: list[str], cache: str) -> float:
    """User and system time of one run of Python, with that folder as Numba's cache."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "MPLBACKEND": "agg"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, *arguments], env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of the names of the calls to measure; all by default")
    wanted = parser.parse_args().names
    console = Console()
    table = Table("first call", "CPU s, empty cache", "at most", "holds", "CPU s, second run")
    for name, call in FIRST_CALLS.items():
        if wanted and not any(part in name for part in wanted):
            continue
        with tempfile.TemporaryDirectory() as cache, console.status(f"{name} ..."):
            first, second = cpu_seconds(call.arguments, cache), cpu_seconds(call.arguments, cache)
        holds = "[green]yes" if first <= call.bound else "[red]no"
        table.add_row(name, f"{first:.1f}", f"{call.bound:g}", holds, f"{second:.1f}")
    console.print(table)
    console.print(f"[dim]{package_folder()}")


def package_folder() -> Path:
    """Where the children import the package from."""
    code = "import manifold_dl; print(manifold_dl.__file__)"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, check=True, text=True, capture_output=True
        )
    return Path(done.stdout.strip()).parent


if __name__ == "__main__":
    main()
