"""Run a study: measure its parts, write table, record and figure, and draw again from the table.

What is measured goes to the journal (`journal.py`) at once. When the last part is done, `NAME.csv`,
`NAME.json`, `NAME.png` and `NAME.svg` replace it, and `NAME.npz` where pictures belong to the numbers. Called
by ``manifold-dl reproduce``.
"""

import json
import os
import platform
from collections.abc import Callable, Iterable
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from manifold_dl._files import atomic_file
from manifold_dl.experiments.files import exclusive, write_text
from manifold_dl.experiments.journal import parse, read_journal, require_same
from manifold_dl.experiments.processes import Finding, measure_parts
from manifold_dl.experiments.study import Study
from manifold_dl.experiments.tables import Table, as_csv, read_csv
from manifold_dl.plotting import style

Progress = Callable[[int, int], None]


def run(
    study: Study,
    folder: Path,
    *,
    parameters: dict[str, Any] | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
    force: bool = False,
) -> Table:
    """Measure, or continue measuring, and write table, record and figure.

    The record, `NAME.json`, has parameters, seed, versions and timings. Its `seconds` are the sum over the
    parts, in whichever process they were measured; with several processes the elapsed time is shorter.

    Parameters
    ----------
    study : Study
        What to run.
    folder : Path
        The folder for `NAME.csv` and the other files. It must exist.
    parameters : dict, optional
        From `study.parameters(...)`; those of the full run by default.
    seed : int
        Seed of everything random.
    jobs : int
        Processes. Studies that measure time run their parts one by one in any case.
    progress : callable, optional
        Called with the number of parts done and of all parts.
    force : bool
        Start again where there are results, or an unfinished run with other parameters. An unfinished run
        with the same parameters is continued in any case: it may be this one, interrupted.

    Returns
    -------
    dict of str → array
        The columns of the table.
    """
    parameters = study.parameters() if parameters is None else parameters
    setting = {"experiment": study.name, "parameters": parameters, "seed": seed}
    csv, record, journal = (folder / f"{study.name}.{end}" for end in ("csv", "json", "partial.jsonl"))
    with exclusive(folder, study.name):
        try:
            done = read_journal(journal, setting)
        except ValueError:
            if not force:
                raise
            done = None
        if done is None and not force and csv.exists() and record.exists():
            text = record.read_text(encoding="utf-8", errors="replace")
            require_same(parse(text, record), setting, record)
            return redraw(study, folder)
        findings = _measure_missing(study, setting, journal, done or {}, jobs, progress)
        # The record of an older run must not stand beside the new table. The complete journal stays until
        # the last line, so the next run writes whatever is missing.
        record.unlink(missing_ok=True)
        write_text(csv, as_csv([row for found in findings for row in found["rows"]]))
        if study.pictures:
            _write_pictures(csv.with_suffix(".npz"), [found["pictures"] for found in findings])
        seconds = round(sum(found["seconds"] for found in findings), 2)
        facts = {**setting, "timings": {"parts": len(findings), "seconds": seconds}, "versions": _versions()}
        write_text(record, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
        table = redraw(study, folder)
        journal.unlink(missing_ok=True)
    return table


def redraw(study: Study, folder: Path) -> Table:
    """Draw the figure again, from the table (and the pictures) alone.

    Parameters
    ----------
    study : Study
        What to draw.
    folder : Path
        The folder with `NAME.csv`, which receives `NAME.png` and `NAME.svg`.

    Returns
    -------
    dict of str → array
        The columns of the table.
    """
    path, *picture_files = sources(study, folder)
    for source in (path, *picture_files):
        if not source.exists():
            raise ValueError(
                f"there is no {source} to draw {study.name} from; run it without --plot-only first."
            )
    import matplotlib.pyplot as plt

    table = read_csv(path)
    pictures = [_read_pictures(source) for source in picture_files]
    # The caller's backend is used, without interactive mode, so that no window opens.
    with plt.ioff(), style():
        figure = study.draw(table, *pictures)
        metadata: tuple[tuple[str, Any], ...]
        metadata = (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None}))
        try:
            for end, entries in metadata:
                with atomic_file(path.with_suffix(f".{end}")) as file:
                    figure.savefig(file, format=end, metadata=entries)
        finally:
            plt.close(figure)
    return table


def sources(study: Study, folder: Path) -> list[Path]:
    """Return the files that the figure is drawn from: the table, and the pictures if there are any.

    Parameters
    ----------
    study : Study
        The study whose figure is meant.
    folder : Path
        The folder of its results.

    Returns
    -------
    list of Path
        Whether they exist is not checked.
    """
    return [folder / f"{study.name}.{end}" for end in ("csv", *(["npz"] if study.pictures else []))]


def _measure_missing(
    study: Study,
    setting: dict[str, Any],
    journal: Path,
    done: dict[int, Finding],
    jobs: int,
    progress: Progress | None,
) -> list[Finding]:
    """Return the findings of all parts, in order: the given ones, and those measured and recorded now."""
    parts = study.parts(setting["parameters"])
    if progress:
        progress(len(done), len(parts))
    # Rewritten from the entries that could be read, so that nothing is appended to an incomplete line.
    kept = [setting, *({"part": i, **found} for i, found in done.items())]
    write_text(journal, "".join(json.dumps(entry) + "\n" for entry in kept))
    missing = [(i, part) for i, part in enumerate(parts) if i not in done]
    with (
        open(journal, "a", encoding="utf-8") as file,
        closing(measure_parts(study, setting["parameters"], setting["seed"], missing, jobs)) as measured,
    ):
        for i, found in measured:
            done[i] = found
            file.write(json.dumps({"part": i, **found}) + "\n")
            file.flush()
            if progress:
                progress(len(done), len(parts))
    return [done[i] for i in range(len(parts))]


def _write_pictures(path: Path, pictures_of_parts: Iterable[dict[str, list]]) -> None:
    pictures: dict[str, Any] = {
        name: np.array(picture, np.uint8) for part in pictures_of_parts for name, picture in part.items()
    }
    with atomic_file(path) as file:
        np.savez_compressed(file, **pictures)


def _read_pictures(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def _versions() -> dict[str, Any]:
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }
    for package in ("manifold-dl", "numpy", "scipy", "pymanopt", "numba", "matplotlib", "scikit-image"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # scikit-image is needed for pictures only
            continue
    return found
