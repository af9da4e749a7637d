"""Signals from a ``.npy`` file, for `learn` and `encode`."""

import numpy as np


def read_signals(path, columns):
    """Signals in the columns of a matrix, whichever way round the file has them."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # mapped: a header's claims are checked
    except (FileNotFoundError, PermissionError):
        raise
    except (ValueError, EOFError, OSError, SyntaxError):  # NumPy's own words advise to unpickle it
        raise ValueError(f"{path} is no .npy file of numbers, or a damaged one.") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{path} is an archive of arrays; give a .npy file with one matrix.")
    if array.ndim != 2:
        raise ValueError(f"{path} has shape {array.shape}; a matrix with two axes is needed.")
    return array if columns else array.T
