"""A record of every probe of every line search, for plots of φ(t) and for counting."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from manifold_dl.line_search.minimize import LineSearchResult


@dataclass
class SearchRecord:
    """One line search: where it began, what it probed, what it accepted.

    Attributes
    ----------
    method : str
        Class of the searcher.
    f0, slope : float
        φ(0) and φ′(0).
    norm : float
        Length of the direction: a step t is ``t * norm`` long.
    probes : list of (t, φ(t))
        In the order of evaluation.
    t : float
        The multiple of the direction that was accepted, 0 if none was.
    """

    method: str
    f0: float
    slope: float
    norm: float
    probes: list[tuple[float, float]]
    t: float


_records: ContextVar[list[SearchRecord] | None] = ContextVar("records of line searches", default=None)


@contextmanager
def trace() -> Iterator[list[SearchRecord]]:
    """Collect a `SearchRecord` for every line search made inside the `with` block.

    Optimizers copy their line searcher for every run, so nothing stored on it would be found again; the
    records belong to the block instead. Blocks may be nested (the innermost collects), and threads do not see
    each other's.

    Examples
    --------
    >>> import numpy as np
    >>> from pymanopt.manifolds import Euclidean
    >>> from manifold_dl.line_search import WolfeSearch
    >>> def parabola(x):
    ...     return (x[0] - 3) ** 2
    >>> with trace() as searches:
    ...     step, x = WolfeSearch().search(parabola, Euclidean(1), np.zeros(1), np.ones(1), f0=9, df0=-6)
    >>> searches[0].probes
    [(1.0, 4.0), (3.0, 0.0)]
    """
    records: list[SearchRecord] = []
    token = _records.set(records)
    try:
        yield records
    finally:
        _records.reset(token)


def record(searcher: Any, f0: float, slope: float, norm: float, found: LineSearchResult) -> None:
    """Add a search to the records of the enclosing `trace` block, if there is one."""
    records = _records.get()
    if records is not None:
        pairs = list(zip(found.ts, found.values, strict=True))
        records.append(SearchRecord(type(searcher).__name__, f0, slope, norm, pairs, found.t))
