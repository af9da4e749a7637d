"""Signals from a ``.npy`` file, for `learn` and `encode`."""

from pathlib import Path
from typing import Any

import numpy as np

from manifold_dl._missing import FILL, NotFiniteError
from manifold_dl._validation import as_matrix
from manifold_dl.engines.npy_file import mapped_array

MISSING = FILL._replace(not_finite="clean the data first, or say --missing nan if NaN marks missing entries")


def open_large(path: Path, columns: bool, missing: str | None, threads: int | None) -> Any:
    """Signals of a file that exceeds the memory of `engines.Threads`: they are read block by block.

    Parameters
    ----------
    path : Path
        A .npy file with a matrix of numbers.
    columns : bool
        Whether the file has a signal in every column; otherwise in every row.
    missing : "nan" or None
        The option ``--missing``; None refuses NaN.
    threads : int or None

    Returns
    -------
    BlockedSignals and BlockedWeights or None, or None
        None if the file is small enough to be read; weights are None if nothing is missing.
    """
    from manifold_dl.engines import Threads
    from manifold_dl.engines.opening import open_incomplete, open_signals

    engine = Threads(threads)
    if path.suffix != ".npy" or not path.is_file() or path.stat().st_size <= engine.memory:
        return None
    given = mapped_array(path) if columns else path
    if missing is None:
        try:
            return open_signals(given, engine=engine), None
        except NotFiniteError as error:
            raise NotFiniteError(error.fact, MISSING.not_finite) from None
    _require_nan(missing)
    return open_incomplete(given, engine)


def read_incomplete(path: Path, columns: bool, missing: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Read signals from a file in which NaN may mark missing entries.

    Parameters
    ----------
    path : Path
        A .npy file with a matrix of numbers.
    columns : bool
        Whether the file has a signal in every column; otherwise in every row.
    missing : "nan" or None
        The option ``--missing``; None refuses NaN.

    Returns
    -------
    signals, weights
        m×n arrays. The weights are 0 for missing entries and 1 for others; None if nothing is missing.

    Raises
    ------
    ValueError
        If the file is not such a matrix, or `missing` is something else.
    """
    if missing is None:
        return read_signals(path, columns), None
    _require_nan(missing)
    signals = read_signals(path, columns, finite=False)
    weights = (~np.isnan(signals)).astype(signals.dtype)
    signals = as_matrix(np.where(weights > 0, signals, 0), str(path))  # infinity stays refused
    return signals, None if weights.all() else weights


def read_signals(path: Path, columns: bool, finite: bool = True) -> np.ndarray:
    """Read signals from a file.

    Parameters
    ----------
    path : Path
        A .npy file with a matrix of numbers.
    columns : bool
        Whether the file has a signal in every column; otherwise in every row.
    finite : bool
        Whether NaN and infinity are refused.

    Returns
    -------
    array (m×n)
        A signal in every column, float32 or float64.

    Raises
    ------
    ValueError
        If the file is not such a matrix. Rows and columns in messages are those of the file, from 0.
    """
    matrix = as_matrix(mapped_array(path), str(path), finite, MISSING)
    return matrix if columns else matrix.T


def _require_nan(missing: str) -> None:
    if missing.lower() != "nan":
        raise ValueError(f"--missing {missing}: missing entries are marked by nan.")
