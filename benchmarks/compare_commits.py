"""Is this tree as fast as another commit? Both run in turns, and only ratios count.

    python benchmarks/compare_commits.py BASE               # against a commit, branch or tag
    python benchmarks/compare_commits.py BASE --rounds 9
    python benchmarks/compare_commits.py BASE --only step   # names that contain a word

BASE is checked out into a temporary folder. Two processes stay alive, one for each tree, and make every
call in turns, so that both see the same state of the machine. Times are CPU seconds on one thread. A ratio
is new / old in one round; the table shows the median over the rounds and the quartiles. Memory is that of
fresh processes. The calls stand in `measured_calls.py`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

REPOSITORY = Path(__file__).resolve().parents[1]
MEASURED = Path(__file__).with_name("measured_calls.py")

# What is measured, and the largest ratio that is accepted.
BOUNDS = {
    "step_wolfe": 1.05,
    "step_golden": 1.05,
    "step_wolfe_in_run": 1.05,
    "step_golden_in_run": 1.05,
    "hessian_product": 1.05,
    "omp": 1.05,
    "lasso": 1.05,
    "ksvd_sweep": 1.05,
    "cg_step": 1.8,
    "recover": 1.3,
}
MEMORY_BOUND = 1.0


class Tree:
    """One version of the package, and a process that measures it."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        self.process = subprocess.Popen(
            [sys.executable, str(MEASURED), "serve"],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, name: str) -> float:
        """CPU seconds of one call."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(name, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{name} failed in {self.environment['PYTHONPATH']}; its error is above.")
        return json.loads(answer)

    def memory(self) -> dict[str, int]:
        """Peak memory of one SimCO step in a fresh process, in bytes."""
        command = [sys.executable, str(MEASURED), "memory"]
        done = subprocess.run(command, env=self.environment, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout)

    def close(self) -> None:
        self.process.communicate()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A temporary folder with the files of a commit."""
    git = ["git", "-C", str(REPOSITORY), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def compare(name: str, old: Tree, new: Tree, rounds: int) -> np.ndarray:
    """CPU seconds of a call, a row (old, new) for every round; the first calls compile and do not count."""
    old.seconds(name), new.seconds(name)
    rows = []
    for turn in range(rounds):
        if turn % 2:  # the order alternates
            after, before = new.seconds(name), old.seconds(name)
        else:
            before, after = old.seconds(name), new.seconds(name)
        rows.append((before, after))
    return np.array(rows)


def time_row(name: str, seconds: np.ndarray) -> list[str]:
    """A line of the table: ratios with their scatter, and the median times."""
    low, middle, high = np.quantile(seconds[:, 1] / seconds[:, 0], [0.25, 0.5, 0.75])
    before, after = 1e3 * np.median(seconds, axis=0)
    times = f"{before:.3g} → {after:.3g} ms"
    return [name, *verdict(middle, BOUNDS[name]), f"{low:.3f} to {high:.3f}", times]


def memory_rows(old: Tree, new: Tree) -> Iterator[list[str]]:
    before, after = old.memory(), new.memory()
    for kind, label in (("arrays", "peak memory of a step, arrays"), ("resident", "the same, process")):
        sizes = f"{before[kind] / 2**20:.1f} → {after[kind] / 2**20:.1f} MiB"
        yield [label, *verdict(after[kind] / before[kind], MEMORY_BOUND), "–", sizes]


def verdict(ratio: float, bound: float) -> tuple[str, str, str]:
    holds = round(ratio, 2) <= bound
    return f"{ratio:.3f}", f"{bound:g}", "[green]yes" if holds else "[red]no"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", help="a commit, a branch or a tag")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--only", default="", help="measure the calls whose names contain this, and no memory"
    )
    arguments = parser.parse_args()
    console = Console(width=118)
    table = Table("call", "new / old", "at most", "holds", "quartiles", "medians, old → new")
    names = [name for name in BOUNDS if arguments.only in name]
    with checked_out(arguments.base) as base, ExitStack() as stack:
        old, new = Tree(base), Tree(REPOSITORY)
        stack.callback(old.close)
        stack.callback(new.close)
        for name in track(names, "measuring ...", console=console, transient=True):
            table.add_row(*time_row(name, compare(name, old, new, arguments.rounds)))
        if not arguments.only:
            for row in memory_rows(old, new):
                table.add_row(*row)
    console.print(table)
    console.print(f"[dim]64×256, n = 65,000; cg_step and recover: 16×32, n = 300. {arguments.rounds} rounds.")


if __name__ == "__main__":
    main()
