"""This package beside others: the same data and start, one thread each, CPU seconds after a warm-up.

    python benchmarks/peers.py --task coding
    python benchmarks/peers.py --task all --seed 1
    python benchmarks/peers.py --task patches --adapter my_library.py --only my_library

Every library runs in a process of its own; libraries that are not installed are skipped with a note (`pip
install -e ".[bench,images]"`). Quality is measured with one and the same coder. Results are JSON lines in
benchmarks/results/peers; `--page` writes the tables of
docs/benchmarks.md from them. An adapter is
a Python file of ten lines (see benchmarks/adapters/dictlearn.py and benchmarks/comparison/adapters.py).
"""

import argparse
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from comparison import page, results
from comparison.adapters import standard_adapters
from comparison.processes import Library
from comparison.tasks import NAMES
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def options_from_command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--task", choices=[*NAMES, "all"], help="what to measure")
    parser.add_argument(
        "--page", action="store_true", help="write docs/benchmarks.md, after measuring if asked to"
    )
    parser.add_argument("--seed", type=int, default=0, help="which draws; each seed has a file of its own")
    parser.add_argument("--draws", type=int, help="how many (rounds, for coding)")
    parser.add_argument("--quick", action="store_true", help="a small part, to see that everything runs")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names of adapters")
    parser.add_argument("--adapter", type=Path, action="append", default=[], help="a file of your own")
    parser.add_argument("--limit", type=float, help="CPU seconds of one measurement, at most")
    parser.add_argument("--out", type=Path, default=results.FOLDER, help="the folder of the results")
    options = parser.parse_args()
    if not (options.task or options.page):
        parser.error("give --task, --page or both")
    return options


def main() -> None:
    options, console = options_from_command_line(), Console()
    for name in NAMES if options.task == "all" else filter(None, [options.task]):
        task = importlib.import_module(f"comparison.tasks.{name}")
        chosen = argparse.Namespace(**vars(options))
        chosen.draws = options.draws or (1 if options.quick else task.DRAWS)
        rows = run(name, task, chosen, console)
        for table in task.tables(rows):
            console.print(table.rich())
    if options.page:
        page.write(options.out)


def run(name: str, task: ModuleType, options: argparse.Namespace, console: Console) -> list[results.Row]:
    """Measure all cells of a task, the libraries taking turns; the rows of the file afterwards."""
    folder = options.out / "quick" if options.quick else options.out
    file, limit = results.path(name, options.seed, folder), options.limit or task.LIMIT
    folder.mkdir(parents=True, exist_ok=True)
    paths = (*standard_adapters(), *options.adapter)
    paths = [path for path in paths if any(part in path.stem for part in options.only)]
    with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
        libraries = start_libraries(name, paths, log, console)
        settings = {"seed": options.seed, "draws": options.draws, "limit": limit}
        versions = {library.hello["library"]: library.hello["version"] for library in libraries}
        results.begin(file, name, settings | {"versions": versions})
        try:
            measure_all(task, libraries, task.cells(options), limit, file, console)
        finally:
            for library in libraries:
                library.stop()
    results.compact(file)
    return results.read(file)[1]


def start_libraries(task: str, paths: list[Path], log: Any, console: Console) -> list[Library]:
    """The libraries that are installed; a note for each of the others."""
    libraries = [Library(task, path, log) for path in paths]
    for library in libraries:
        if "missing" in library.hello:
            console.print(f"[dim]{library.adapter.stem} is skipped: {library.hello['missing']}")
    for library in libraries:
        if "library" not in library.hello:
            library.stop()
    return [library for library in libraries if "library" in library.hello]


def measure_all(
    task: ModuleType,
    libraries: list[Library],
    cells: list[results.Row],
    limit: float,
    file: Path,
    console: Console,
) -> None:
    """One line of the file for every library, method and cell."""
    too_slow = set()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"{task.__name__.rpartition('.')[2]} ...", total=len(cells))
        for cell in cells:
            for library in libraries:
                for method in library.methods(cell):
                    key = (library.adapter, method, str(task.group(cell)))
                    if key in too_slow:
                        continue
                    progress.update(bar, description=f"{method} ...")
                    if cell.get("fresh"):
                        library.start()
                    found = library.measure(method, cell, limit)
                    if "failure" in found:
                        console.print(f"[dim]{method}, {cell}: {found['failure']}")
                    if "failure" in found or found["seconds"] > limit / 2:
                        too_slow.add(key)
                    row = {"method": method, "library": library.hello["library"], "cell": cell, **found}
                    results.append(file, row)
            progress.advance(bar)


if __name__ == "__main__":
    main()
