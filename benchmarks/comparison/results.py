"""JSON lines of results, one file per task and seed: benchmarks/results/peers/coding-0.jsonl.

Every run begins with a line {"run": ...} (date, machine, versions, options); the measurements of it follow, a
line each. A later run of the same task and seed adds to the file. Its rows replace all that earlier runs have
of the same methods: what a table says of a method comes from one run.
"""

import json
import os
import platform
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "results" / "peers"
MEASURED = ("seconds", "failure", "version", "library")  # and what a task names in QUALITIES
Row = dict[str, Any]


def path(task: str, seed: int, folder: Path = FOLDER) -> Path:
    """Where a run keeps its results."""
    return folder / f"{task}-{seed}.jsonl"


def machine() -> Row:
    """What the times depend on: processor, cores, Python and its basic libraries."""
    names = ("numpy", "scipy", "numba")
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in names},
    }


def processor() -> str:
    """The model of the processor, without its address."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def begin(file: Path, task: str, options: Row) -> None:
    """Note that a run begins."""
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    append(file, {"run": {"task": task, "date": date, **machine(), **options}})


def append(file: Path, content: Row) -> None:
    """One more line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(content, ensure_ascii=False) + "\n")


def read(file: Path) -> tuple[list[Row], list[Row]]:
    """The runs of a file, and its rows."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line["run"] for line in lines if "run" in line], [line for line in lines if "run" not in line]


def compact(file: Path) -> None:
    """Drop the rows of methods that a later run has measured again, and runs of which no row is left."""
    lines = file.read_text(encoding="utf-8").splitlines()
    run, newest, runs = 0, {}, []
    for line in lines:
        content = json.loads(line)
        run += "run" in content
        runs.append((run, content))
        if "run" not in content:
            newest[content["method"]] = run
    used = set(newest.values())
    kept = [
        line
        for line, (run, content) in zip(lines, runs, strict=True)
        if (run in used if "run" in content else newest[content["method"]] == run)
    ]
    file.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def tables(task: str, folder: Path = FOLDER) -> Iterator[tuple[int, list[Row], list[Row]]]:
    """Seed, runs and rows of every file of a task."""
    for file in sorted(folder.glob(f"{task}-*.jsonl")):
        yield (int(file.stem.rpartition("-")[2]), *read(file))


def values(rows: Iterable[Row], quality: str, **cell: Any) -> list[float]:
    """The numbers of the rows whose cells have these entries; rows that failed have none."""
    return [
        row[quality]
        for row in rows
        if row.get(quality) is not None
        and all(
            (row["method"] if key == "method" else row["cell"].get(key)) == want for key, want in cell.items()
        )
    ]
