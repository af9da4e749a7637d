"""What an experiment is, and how it is run: in parts, over processes, resumable.

An experiment is cut into parts (one draw of the signals, say), each measured by a pure function of the
parameters, the part and the seed. So the numbers depend neither on how many processes share the parts nor
on whether the run was interrupted. What is measured goes to a file of its own at once; when the last
part is done, `NAME.csv`, `NAME.json`, `NAME.png` and `NAME.svg` take its place; and `NAME.npz`, where there
are pictures to show beside the numbers.
"""

import json
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from manifold_dl.experiments.tables import as_csv, read_csv
from manifold_dl.plotting import style


class Claim(NamedTuple):
    """A sentence about the results, what was measured, and whether that bears it out."""

    says: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Study:
    """One experiment.

    Parameters
    ----------
    name, title : str
    full : mapping
        Parameters of the full run, by name. ``trials``, if it is there, is what ``--trials`` sets.
    quick : mapping
        What is different in the quick run.
    parts : callable parameters → list of dicts
        The pieces that are measured independently of each other, by their coordinates.
    measure : callable (parameters, seed, **part) → list of rows
        A pure function; the rows are dicts with the same keys throughout.
    draw : callable table → figure
        From the columns of the table alone.
    claims : callable table → list of `Claim`
        What the paper says, or we say, and whether the table bears it out.
    alone : bool
        Whether times are measured, so that nothing else may run beside a part.
    pictures : bool
        Whether `measure` returns ``rows, pictures``, the latter a dict of name → 8-bit array, and `draw`
        takes the pictures of all parts as a second argument.
    """

    name: str
    title: str
    full: Mapping[str, Any]
    quick: Mapping[str, Any]
    parts: Callable
    measure: Callable = field(repr=False)
    draw: Callable = field(repr=False)
    claims: Callable = field(repr=False, default=lambda table: [])
    alone: bool = False
    pictures: bool = False

    def parameters(self, quick=False, trials=None):
        """The parameters of a run, in plain lists and numbers."""
        chosen = {**self.full, **(self.quick if quick else {})}
        if trials is not None:
            if "trials" not in chosen:
                raise ValueError(f"{self.name} is one example, not an average over trials.")
            chosen["trials"] = trials
        return json.loads(json.dumps(chosen))


def run(study, folder, *, parameters=None, seed=0, jobs=1, progress=None, force=False):
    """Measure, or go on measuring, and write table, record and figure; returns the table's columns.

    Parameters
    ----------
    study : Study
    folder : Path
        Where `NAME.csv` and the others go.
    parameters : dict, optional
        From `study.parameters(...)`; the full ones by default.
    jobs : int
        Processes. Studies that measure time run their parts one by one whatever it says.
    progress : callable (done, total), optional
    force : bool
        Begin anew where results of other parameters, or unfinished ones, are in the way.
    """
    parameters = study.parameters() if parameters is None else parameters
    setting = {"experiment": study.name, "parameters": parameters, "seed": seed}
    csv, record, journal = (folder / f"{study.name}.{end}" for end in ("csv", "json", "partial.jsonl"))
    if force:
        journal.unlink(missing_ok=True)
    elif csv.exists() and record.exists():
        _require_same(json.loads(record.read_text(encoding="utf-8")), setting, record)
        return redraw(study, folder)
    parts = study.parts(parameters)
    done = _read_journal(journal, setting)
    open_parts = [i for i in range(len(parts)) if i not in done]
    tell = progress or (lambda done, total: None)
    tell(len(done), len(parts))
    # Written anew from what could be read, so that nothing is appended to half a line.
    kept = [setting, *({"part": i, **found} for i, found in done.items())]
    _write(journal, "".join(json.dumps(entry) + "\n" for entry in kept))
    with open(journal, "a", encoding="utf-8") as file:
        measured = _measure_all(study, parameters, seed, [(i, parts[i]) for i in open_parts], jobs)
        for i, found in measured:
            done[i] = found
            file.write(json.dumps({"part": i, **found}) + "\n")
            file.flush()
            tell(len(done), len(parts))
    in_order = [done[i] for i in range(len(parts))]
    _write(csv, as_csv([row for found in in_order for row in found["rows"]]))
    if study.pictures:
        _write_pictures(csv.with_suffix(".npz"), [found["pictures"] for found in in_order])
    measured_in = {"parts": len(parts), "seconds": round(sum(found["seconds"] for found in in_order), 2)}
    facts = {**setting, "timings": measured_in, "versions": _versions()}
    _write(record, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    table = redraw(study, folder)
    journal.unlink()
    return table


def redraw(study, folder):
    """Draw the figure again, from the table (and the pictures) alone."""
    path = folder / f"{study.name}.csv"
    sources = [path, *([path.with_suffix(".npz")] if study.pictures else [])]
    for source in sources:
        if not source.exists():
            raise ValueError(
                f"there is no {source} to draw {study.name} from; run it without --plot-only first."
            )
    import matplotlib.pyplot

    table = read_csv(path)
    pictures = [_read_pictures(source) for source in sources[1:]]
    with matplotlib.rc_context({"backend": "Agg"}), style():
        figure = study.draw(table, *pictures)
        for end, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            part = path.with_name(f".{study.name}.part.{end}")
            figure.savefig(part, metadata=metadata)
            os.replace(part, path.with_suffix(f".{end}"))
        matplotlib.pyplot.close(figure)
    return table


def _measure_all(study, parameters, seed, parts, jobs):
    """Index and findings of every part, as they are finished."""
    if study.alone or jobs == 1 or len(parts) < 2:
        for i, part in parts:
            yield i, _measure(study.name, parameters, seed, part)
        return
    # Fresh processes, not forked ones: a fork would copy the state of threads that do not exist in it.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(parts)), mp_context=context)
    try:
        futures = {pool.submit(_measure, study.name, parameters, seed, part): i for i, part in parts}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _measure(name, parameters, seed, part):
    """What was found in a part, as it is kept in JSON."""
    from manifold_dl.experiments import find

    study, begin = find(name), time.perf_counter()
    with threadpool_limits(1):  # BLAS would use every processor in every process, and round differently
        found = study.measure(parameters, seed, **part)
    rows, pictures = found if study.pictures else (found, {})
    seconds = round(time.perf_counter() - begin, 3)
    pictures = {name: picture.tolist() for name, picture in pictures.items()}
    return {"rows": _plain(rows), "seconds": seconds, **({"pictures": pictures} if study.pictures else {})}


def _plain(rows):
    return [{key: getattr(value, "item", lambda v=value: v)() for key, value in row.items()} for row in rows]


def _read_journal(path, setting):
    """The parts that are done, {index: findings}; a line that was cut off is done again."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    if not lines:
        return {}
    _require_same(json.loads(lines[0]), setting, path)
    entries = [json.loads(line) for line in lines[1:]]
    return {entry.pop("part"): entry for entry in entries}


def _require_same(found, setting, path):
    different = [key for key in setting if found.get(key) != setting[key]]
    if different:
        raise ValueError(
            f"{path} belongs to a run with other {' and '.join(different)}; "
            "choose another folder with --out, or begin anew with --force."
        )


def _write(path, text):
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8", newline="\n")
    os.replace(part, path)


def _write_pictures(path, pictures_of_parts):
    pictures = {
        name: np.array(picture, np.uint8) for part in pictures_of_parts for name, picture in part.items()
    }
    part = path.with_name(f".{path.name}.part")
    with open(part, "wb") as file:
        np.savez_compressed(file, **pictures)
    os.replace(part, path)


def _read_pictures(path):
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def _versions():
    packages = ("manifold-dl", "numpy", "scipy", "pymanopt", "numba", "matplotlib")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        **{package: version(package) for package in packages},
    }
