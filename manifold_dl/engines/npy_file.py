"""A `.npy` file as an array that is mapped into memory, or a sentence that says what is wrong with the file.

Signals, codes and the command line open their files with it.
"""

from pathlib import Path
from typing import Any

import numpy as np


def mapped_array(path: Path, mode: Any = "r") -> np.ndarray:
    """The array of a `.npy` file, mapped into memory: nothing is read, and no more than the file holds.

    Parameters
    ----------
    path : path
    mode : "r" or "c"
        Whether its pages may be written to, which does not change the file.

    Returns
    -------
    array
        Of any dtype and shape.

    Raises
    ------
    ValueError
        If the file is something else, damaged, or shorter than its header says.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not path.is_file():  # opening a named pipe would wait for a writer
        raise ValueError(f"{path} is no .npy file of numbers, but a folder, a pipe or a device.")
    try:
        with np.errstate(over="ignore"):  # of sizes that no file has
            array = np.load(path, mmap_mode=mode, allow_pickle=False)
    except PermissionError:
        raise
    except (ValueError, EOFError, OSError, SyntaxError, OverflowError):  # NumPy would advise to unpickle it
        raise ValueError(f"{path} is no .npy file of numbers, or a damaged one.") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{path} is an archive of arrays; give a .npy file with one matrix.")
    return array
