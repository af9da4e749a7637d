"""Signals from a ``.npy`` file, for `learn` and `encode`."""

import numpy as np

from manifold_dl._validation import as_matrix


def read_signals(path, columns):
    """Signals in the columns of a matrix of float32 or float64, whichever way round the file has them.

    It is checked as it stands in the file: an error names rows and columns of the file, counted from 0.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # mapped: a header's claims are checked
    except (FileNotFoundError, PermissionError):
        raise
    except (ValueError, EOFError, OSError, SyntaxError):  # NumPy's own words advise to unpickle it
        raise ValueError(f"{path} is no .npy file of numbers, or a damaged one.") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{path} is an archive of arrays; give a .npy file with one matrix.")
    matrix = as_matrix(array, str(path))
    return matrix if columns else matrix.T
