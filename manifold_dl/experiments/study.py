"""What an experiment is, and how it is run: in parts, over processes, resumable.

An experiment is cut into parts (one draw of the signals, say), each measured by a function that depends on
the parameters, the part and the seed alone. So the numbers, but for the times that `table1` and `solvers`
measure, depend neither on how many processes share the parts nor on whether the run was interrupted. What is
measured goes to a file of its own at once; when the last part is done, `NAME.csv`, `NAME.json`, `NAME.png`
and `NAME.svg` take its place; and `NAME.npz`, where there are pictures to show beside the numbers.
"""

import json
import multiprocessing
import os
import platform
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from manifold_dl.experiments.files import alone_in, whole_file
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
        A pure function, but for the times where times are measured, and of a module, so that other processes
        can import it; the rows are dicts with the same keys throughout.
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
                raise ValueError(f"{self.name} has no trials to set.")
            chosen["trials"] = trials
        return json.loads(json.dumps(chosen))


def run(study, folder, *, parameters=None, seed=0, jobs=1, progress=None, force=False):
    """Measure, or go on measuring, and write table, record and figure; returns the table's columns.

    The record, `NAME.json`, has parameters, seed, versions and timings. Its `seconds` are the sum over the
    parts, in whichever process they were measured; the clock on the wall shows less where there are several.

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
        Begin anew where there are results, or unfinished ones of other parameters. An unfinished run of the
        same parameters is gone on with, for it may be this one, interrupted.
    """
    parameters = study.parameters() if parameters is None else parameters
    setting = {"experiment": study.name, "parameters": parameters, "seed": seed}
    csv, record, journal = (folder / f"{study.name}.{end}" for end in ("csv", "json", "partial.jsonl"))
    with alone_in(folder, study.name):
        try:
            done = _read_journal(journal, setting)
        except ValueError:
            if not force:
                raise
            done = None
        if done is None and not force and csv.exists() and record.exists():
            text = record.read_text(encoding="utf-8", errors="replace")
            _require_same(_parsed(text, record), setting, record)
            return redraw(study, folder)
        in_order = _measure_the_rest(study, setting, journal, done or {}, jobs, progress)
        # No record of an older run may stand beside the new table. Until the last line the journal is there,
        # complete, and whatever is missing is written by the next run.
        record.unlink(missing_ok=True)
        _write(csv, as_csv([row for found in in_order for row in found["rows"]]))
        if study.pictures:
            _write_pictures(csv.with_suffix(".npz"), [found["pictures"] for found in in_order])
        seconds = round(sum(found["seconds"] for found in in_order), 2)
        facts = {**setting, "timings": {"parts": len(in_order), "seconds": seconds}, "versions": _versions()}
        _write(record, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
        table = redraw(study, folder)
        journal.unlink(missing_ok=True)
    return table


def redraw(study, folder):
    """Draw the figure again, from the table (and the pictures) alone."""
    path, *of_pictures = sources(study, folder)
    for source in (path, *of_pictures):
        if not source.exists():
            raise ValueError(
                f"there is no {source} to draw {study.name} from; run it without --plot-only first."
            )
    import matplotlib.pyplot as plt

    table = read_csv(path)
    pictures = [_read_pictures(source) for source in of_pictures]
    # The backend is the caller's own; nothing of the figure is to be seen on a screen before it is closed.
    with plt.ioff(), style():
        figure = study.draw(table, *pictures)
        try:
            for end, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
                with whole_file(path.with_suffix(f".{end}")) as file:
                    figure.savefig(file, format=end, metadata=metadata)
        finally:
            plt.close(figure)
    return table


def sources(study, folder):
    """The files that the figure is drawn from: the table, and the pictures where there are some."""
    return [folder / f"{study.name}.{end}" for end in ("csv", *(["npz"] if study.pictures else []))]


def _measure_the_rest(study, setting, journal, done, jobs, progress):
    """The findings of all parts, in order: those done already and those measured now, kept in the journal."""
    parameters, seed = setting["parameters"], setting["seed"]
    parts = study.parts(parameters)
    tell = progress or (lambda done, total: None)
    tell(len(done), len(parts))
    # Written anew from what could be read, so that nothing is appended to half a line.
    kept = [setting, *({"part": i, **found} for i, found in done.items())]
    _write(journal, "".join(json.dumps(entry) + "\n" for entry in kept))
    open_parts = [(i, part) for i, part in enumerate(parts) if i not in done]
    with (
        open(journal, "a", encoding="utf-8") as file,
        closing(_measure_all(study, parameters, seed, open_parts, jobs)) as measured,
    ):
        for i, found in measured:
            done[i] = found
            file.write(json.dumps({"part": i, **found}) + "\n")
            file.flush()
            tell(len(done), len(parts))
    return [done[i] for i in range(len(parts))]


def _measure_all(study, parameters, seed, parts, jobs):
    """Index and findings of every part, as they are finished."""
    task = (study.measure, study.pictures, parameters, seed)
    if study.alone or jobs == 1 or len(parts) < 2:
        for i, part in parts:
            yield i, _measure(*task, part)
        return
    # Fresh processes, not forked ones: a fork would copy the state of threads that do not exist in it.
    # Ctrl-C goes to all of them, but it is for the parent to answer.
    pool = ProcessPoolExecutor(
        min(jobs, len(parts)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
    try:
        with _ctrl_c_later():
            futures = {pool.submit(_measure, *task, part): i for i, part in parts}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _ctrl_c_later():
    """Ctrl-C waits for the end of the block; processes started in it never see one, even while they load."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _measure(measure, with_pictures, parameters, seed, part):
    """What was found in a part, as it is kept in JSON."""
    begin = time.perf_counter()
    with threadpool_limits(1):  # BLAS would use every processor in every process, and round differently
        found = measure(parameters, seed, **part)
    rows, pictures = found if with_pictures else (found, {})
    seconds = round(time.perf_counter() - begin, 3)
    pictures = {name: picture.tolist() for name, picture in pictures.items()}
    return {"rows": _plain(rows), "seconds": seconds, **({"pictures": pictures} if with_pictures else {})}


def _plain(rows):
    return [{key: getattr(value, "item", lambda v=value: v)() for key, value in row.items()} for row in rows]


def _read_journal(path, setting):
    """The parts that are done, {index: findings}, or None; a last line that was cut off is done again."""
    if not path.exists():
        return None
    first, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if not lines:
        return None
    _require_same(_parsed(first, path), setting, path)
    entries = [_parsed(line, path, needed={"part", "rows", "seconds"}) for line in lines[:-1]]
    return {entry.pop("part"): entry for entry in entries}


def _parsed(text, path, needed=frozenset()):
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not needed <= found.keys():
        raise ValueError(f"{path} is damaged; choose another folder with --out, or begin anew with --force.")
    return found


def _require_same(found, setting, path):
    different = [key for key in setting if found.get(key) != setting[key]]
    if different:
        raise ValueError(
            f"{path} belongs to a run with other {' and '.join(different)}; "
            "choose another folder with --out, or begin anew with --force."
        )


def _write(path, text):
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def _write_pictures(path, pictures_of_parts):
    pictures = {
        name: np.array(picture, np.uint8) for part in pictures_of_parts for name, picture in part.items()
    }
    with whole_file(path) as file:
        np.savez_compressed(file, **pictures)


def _read_pictures(path):
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def _versions():
    found = {
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
