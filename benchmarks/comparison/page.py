"""The tables of docs/benchmarks.md, written between their marks; the text around them stays as it is."""

import importlib
from pathlib import Path

from comparison import goals, results
from comparison.results import Row
from comparison.tables import Table
from comparison.tasks import NAMES

DOCS = Path(__file__).parents[2] / "docs"
Files = list[tuple[int, list[Row], list[Row]]]  # seed, runs and rows of every file of a task


def write(folder: Path = results.FOLDER) -> None:
    """Bring the page and its pictures up to date."""
    path = DOCS / "benchmarks.md"
    path.write_text(with_tables(path.read_text(encoding="utf-8"), folder), encoding="utf-8")
    for name in NAMES:
        task = importlib.import_module(f"comparison.tasks.{name}")
        if hasattr(task, "plot") and (files := list(results.tables(name, folder))):
            task.plot(files[0][2], DOCS / "figures" / f"peers-{name}.png")


def with_tables(page: str, folder: Path = results.FOLDER) -> str:
    """The text of the page with the tables of today's results."""
    found = {name: list(results.tables(name, folder)) for name in NAMES}
    page = between(page, "goals", goals_table(found).markdown())
    page = between(page, "versions", versions(found))
    for name, files in found.items():
        task = importlib.import_module(f"comparison.tasks.{name}")
        tables = task.tables(files[0][2]) if files else []
        text = "\n\n".join(table.markdown() for table in tables)
        page = between(page, name, text or f"Not measured yet: `python benchmarks/peers.py --task {name}`.")
    return page


def goals_table(found: dict[str, Files]) -> Table:
    """What was aimed at, and what the run of each seed measured."""
    seeds = sorted({seed for files in found.values() for seed, _, _ in files})
    runs = [{name: _rows(files, seed) for name, files in found.items()} for seed in seeds]
    lines = [
        [goal.words, goal.bound_words(), *(goal.verdict(goal.value(rows)) for rows in runs)]
        for goal in goals.GOALS
    ]
    return Table("", ["goal", "to reach", *(f"seed {seed}" for seed in seeds)], lines)


def _rows(files: Files, seed: int) -> list[Row]:
    return next((rows for number, _, rows in files if number == seed), [])


def versions(found: dict[str, Files]) -> str:
    """Machine, dates and versions, from the lines that the runs began with."""
    lines, machine = [], ""
    for name, files in found.items():
        for seed, runs, _ in files:
            for run in runs:
                libraries = ", ".join(f"{library} {version}" for library, version in run["versions"].items())
                lines.append([name, str(seed), run["date"], libraries])
                basis = ", ".join(f"{part} {run[part]}" for part in ("python", "numpy", "scipy", "numba"))
                machine = f"{run['processor']}, {run['cores']} cores, {run['system']}; {basis}."
    return Table(machine, ["task", "seed", "date (UTC)", "versions"], lines).markdown()


def between(page: str, name: str, text: str) -> str:
    """The page with this text between the marks of that name."""
    before, rest = page.split(f"<!-- {name} -->")
    after = rest.split(f"<!-- end of {name} -->")[1]
    body = f"\n\n{text.strip()}\n\n" if text.strip() else "\n\n"
    return f"{before}<!-- {name} -->{body}<!-- end of {name} -->{after}"
