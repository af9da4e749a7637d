"""Measure the parts of a study, one by one or in several processes.

Every part runs with one thread of BLAS, in this process or in a worker, so the numbers are the same for any
number of processes. Called by `running.run`.
"""

import multiprocessing
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manifold_dl._validation import each_warning_once
from manifold_dl.experiments.study import Parameters, Part, Study

Finding = dict[str, Any]  # "rows", "seconds" and, for some studies, "pictures": as JSON stores them


def measure_parts(
    study: Study, parameters: Parameters, seed: int, parts: Sequence[tuple[int, Part]], jobs: int
) -> Generator[tuple[int, Finding], None, None]:
    """Yield the index and the finding of every part, in the order in which they are finished.

    Parameters
    ----------
    study : Study
        Its `measure` is called; with ``alone=True``, never in parallel.
    parameters : mapping
        From `study.parameters`.
    seed : int
        Passed to `measure`.
    parts : sequence of (int, dict)
        Indices and coordinates of the parts.
    jobs : int
        The largest number of processes.

    Yields
    ------
    index : int
    finding : dict
    """
    if study.alone or jobs == 1 or len(parts) < 2:
        for i, part in parts:
            yield i, _measure(study.measure, study.pictures, parameters, seed, part)
        return
    before = set(multiprocessing.active_children())
    # Spawned processes, because a forked one would copy the state of threads that do not exist in it.
    # Ctrl-C is sent to all of them; the workers ignore it and the parent ends them.
    pool = ProcessPoolExecutor(
        min(jobs, len(parts)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
    try:
        with _ctrl_c_delayed():
            futures = {
                pool.submit(_measure, study.measure, study.pictures, parameters, seed, part): i
                for i, part in parts
            }
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _ctrl_c_delayed() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block; processes started in it inherit that, while they load."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _measure(measure: Any, with_pictures: bool, parameters: Parameters, seed: int, part: Part) -> Finding:
    begin = time.perf_counter()
    # BLAS would use every processor in every process, and round differently. Small studies have few signals.
    with threadpool_limits(1), each_warning_once("few signals", "unused atoms", "dependent atoms"):
        found = measure(parameters, seed, **part)
    rows, pictures = found if with_pictures else (found, {})
    finding = {"rows": [_plain(row) for row in rows], "seconds": round(time.perf_counter() - begin, 3)}
    if with_pictures:
        finding["pictures"] = {name: picture.tolist() for name, picture in pictures.items()}
    return finding


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Replace NumPy's numbers by Python's, which JSON can store."""
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in row.items()}
