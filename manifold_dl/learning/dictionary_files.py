"""A dictionary as a safetensors file, the format in which models exchange weights: no pickle, no code.

The optional extra ``safetensors`` has to be installed: ``pip install manifold-dl[safetensors]``. Files of
`manifold_dl.save` hold results as a whole; these hold the atoms alone, for other programs.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from manifold_dl._files import write_atomically
from manifold_dl._validation import as_dictionary

NAME = "atoms"
SHOWN = 10  # names of tensors in an error
DTYPES = {f"{kind}{bits}" for kind in "FIU" for bits in (8, 16, 32, 64)} - {"F8"}


def save_dictionary(dictionary: Any, path: str | os.PathLike[str]) -> None:
    """Write a dictionary as one tensor, ``"atoms"``, with an atom in every row (d×m).

    The file is written under another name and then renamed: an interruption leaves no incomplete file.

    Parameters
    ----------
    dictionary : array (m×d)
        An atom in every column, as `Result.dictionary`; for an estimator `components_.T`.
    path : path
        A file of this name is replaced.

    Examples
    --------
    >>> import tempfile
    >>> D = np.array([[1.0, 0.6], [0.0, 0.8]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_dictionary(D, folder + "/dictionary.safetensors")
    ...     again = load_dictionary(folder + "/dictionary.safetensors")
    >>> bool(np.array_equal(again, D))
    True
    """
    with _installed():
        from safetensors.numpy import save
    rows = np.ascontiguousarray(as_dictionary(dictionary).T)
    data = save({NAME: rows}, metadata={"format": "manifold_dl", "layout": "an atom in every row"})

    def write(file: IO[bytes]) -> None:
        file.write(data)

    write_atomically(path, write)


def load_dictionary(path: str | os.PathLike[str], name: str = NAME) -> np.ndarray:
    """Read a dictionary from a safetensors file, of `save_dictionary` or of another program.

    Nothing is executed: a file from anywhere can be loaded.

    Parameters
    ----------
    path : path
    name : str
        Which tensor of the file holds the atoms, in rows.

    Returns
    -------
    array (m×d)
        An atom in every column.

    Raises
    ------
    ValueError
        If the file is damaged, holds no such tensor, or one that is no dictionary.
    """
    with _installed():
        from safetensors import SafetensorError, safe_open
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            if name not in names:
                several = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
                known = json.dumps(sorted(names)[:SHOWN])
                raise ValueError(f"{path} holds no tensor {name!r}, but {known}{several}.")
            dtype = file.get_slice(name).get_dtype()
            if dtype not in DTYPES:
                raise ValueError(
                    f"the tensor {name!r} of {path} has type {dtype}, which NumPy does not have; convert it "
                    "to F32 first."
                )
            rows = file.get_tensor(name)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged, or no safetensors file: {error}") from error
    if rows.ndim != 2:
        raise ValueError(f"the tensor {name!r} of {path} has shape {rows.shape}; atoms in rows are d×m.")
    return as_dictionary(rows.T)


@contextmanager
def _installed() -> Iterator[None]:
    """Say what to install where the package is missing."""
    try:
        yield
    except ModuleNotFoundError:
        raise ImportError(
            "safetensors files need the package safetensors: pip install 'manifold-dl[safetensors]'."
        ) from None
