"""Signals from a ``.npy`` file, for `learn` and `encode`."""

from pathlib import Path
from typing import Any

import numpy as np

from manifold_dl._validation import as_matrix


def open_large(path: Path, columns: bool, threads: int | None) -> Any:
    """Signals of a file that exceeds the memory of `engines.Threads`: they are read block by block.

    Parameters
    ----------
    path : Path
        A .npy file with a matrix of numbers.
    columns : bool
        Whether the file has a signal in every column; otherwise in every row.
    threads : int or None

    Returns
    -------
    BlockedSignals or None
        None if the file is small enough to be read.
    """
    from manifold_dl.engines import Threads
    from manifold_dl.engines.opening import open_signals

    engine = Threads(threads)
    if path.suffix != ".npy" or not path.is_file() or path.stat().st_size <= engine.memory:
        return None
    return open_signals(np.load(path, mmap_mode="r") if columns else path, engine=engine)


def read_signals(path: Path, columns: bool) -> np.ndarray:
    """Read signals from a file.

    Parameters
    ----------
    path : Path
        A .npy file with a matrix of numbers.
    columns : bool
        Whether the file has a signal in every column; otherwise in every row.

    Returns
    -------
    array (m×n)
        A signal in every column, float32 or float64.

    Raises
    ------
    ValueError
        If the file is not such a matrix. Rows and columns in messages are those of the file, from 0.
    """
    try:
        array = np.load(
            path, mmap_mode="r", allow_pickle=False
        )  # mapped: the size in the header is checked against the file
    except (FileNotFoundError, PermissionError):
        raise
    except (ValueError, EOFError, OSError, SyntaxError):  # NumPy's message would advise to unpickle it
        raise ValueError(f"{path} is no .npy file of numbers, or a damaged one.") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{path} is an archive of arrays; give a .npy file with one matrix.")
    matrix = as_matrix(array, str(path))
    return matrix if columns else matrix.T
