"""Data that would be misread, or that nothing can be learned from: refused or warned about, with the remedy.

`inputs.py` and `estimator.py` call these before anything is computed. A masked array, or a sparse array whose
memory does not fit its shape, would go through NumPy and SciPy without a word.
"""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np


def require_unmasked(array: Any, name: str) -> None:
    """Refuse a masked array: NumPy hands its hidden entries out as if they were data."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array: masked entries would be used as data. Fill them (`.filled(0)`) or "
            "drop the rows or columns that hold them."
        )


def require_sound_indices(matrix: Any, name: str) -> None:
    """Refuse a sparse array whose indices leave its own shape or memory.

    SciPy does not look at arrays that were changed in place: its conversions and our kernels would then read
    and write anywhere in memory.
    """
    if matrix.ndim != 2:
        raise ValueError(f"{name} has shape {matrix.shape}; a matrix with two axes is needed.")
    if matrix.format not in ("csc", "csr", "bsr"):
        for axis, stored in enumerate(matrix.tocoo().coords):
            _require_range(stored, matrix.shape[axis], name, matrix.shape)
        return
    blocks = matrix.blocksize if matrix.format == "bsr" else (1, 1)
    n_rows, n_columns = (size // block for size, block in zip(matrix.shape, blocks, strict=True))
    n_major, n_minor = (n_columns, n_rows) if matrix.format == "csc" else (n_rows, n_columns)
    indptr, n_stored = matrix.indptr, min(len(matrix.indices), len(matrix.data))
    if len(indptr) != n_major + 1:
        raise ValueError(
            f"{name} has an indptr of length {len(indptr)}; its shape {matrix.shape} needs {n_major + 1}."
        )
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"{name} has an indptr that does not begin at 0 and ascend from there: rebuild it.")
    if indptr[-1] > n_stored:
        raise ValueError(
            f"{name} has an indptr that ends at {indptr[-1]}, but only {n_stored} entries are stored."
        )
    _require_range(matrix.indices[: indptr[-1]], n_minor, name, matrix.shape)


def _require_range(indices: np.ndarray, limit: int, name: str, shape: tuple) -> None:
    if len(indices) and (indices.min() < 0 or indices.max() >= limit):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(f"{name} holds the index {wrong}, outside its own shape {shape}.")


def require_determined(support: Any, m: int, mu: float) -> None:
    """Refuse supports of more than m atoms where codes follow the dictionary without a ridge.

    With as many independent atoms as entries every dictionary fits the signal exactly: f does not depend on
    D, and there is nothing to learn from it. Exactly m atoms are warned about.
    """
    sizes = np.diff(support.indptr)
    largest = int(sizes.max(initial=0))
    if mu > 0 or largest < m:
        return
    j = int(sizes.argmax())
    consequence = (
        "with mu=0 every dictionary fits it exactly, and nothing is learned from it. Use smaller supports "
        "(a coder with a sparsity below m) or a ridge mu > 0."
    )
    if largest > m:
        raise ValueError(f"signal {j} uses {largest} atoms, more than its m={m} entries: {consequence}")
    warn_once(f"signal {j} uses {m} atoms, as many as its m={m} entries: {consequence}", "support of m atoms")


_warned: ContextVar[set | None] = ContextVar("warnings given inside a with block", default=None)


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Inside the block each kind of warning about the input is given once: a loop would repeat it."""
    token = _warned.set(set())
    try:
        yield
    finally:
        _warned.reset(token)


def warn_once(text: str, kind: str) -> None:
    """Warn, unless the same kind of warning has been given inside this `each_warning_once`."""
    given = _warned.get()
    if given is None or kind not in given:
        warnings.warn(text, stacklevel=_depth_of_package())
    if given is not None:
        given.add(kind)


def _depth_of_package() -> int:
    """How far up the call came from outside of this package, so that a warning names a line of the user's."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "manifold_dl":
        frame, depth = frame.f_back, depth + 1
    return depth
