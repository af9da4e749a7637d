"""Results as files: an `archive`, plain arrays and a little JSON, no pickle.

`manifold_dl.save` and `manifold_dl.load` call these functions, and store estimators as well.
"""

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_dictionary
from manifold_dl.learning.archive import (
    arrays_to_codes,
    arrays_to_columns,
    codes_to_arrays,
    columns_to_arrays,
    damage_named,
    read,
    write,
)
from manifold_dl.learning.history import History
from manifold_dl.learning.result import Reason, Result


def save(result: Result, path: str | os.PathLike[str]) -> None:
    """Write a learned `Result` to one `.npz` file.

    The file is written under another name and then renamed: an interruption leaves no incomplete file.
    Codes that are not in memory (those of a Dask array or of files) are not stored.

    Parameters
    ----------
    result : Result
    path : path
        A file of this name is replaced.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from manifold_dl import OMP, learn_dictionary
    >>> Y = np.random.default_rng(0).standard_normal((8, 100))
    >>> result = learn_dictionary(Y, 12, coder=OMP(sparsity=2), max_iter=2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(result, folder + "/result.npz")
    ...     again = load(folder + "/result.npz")
    >>> bool(np.array_equal(again.dictionary, result.dictionary))
    True
    """
    write(path, "result", *contents(result))


def load(path: str | os.PathLike[str], max_bytes: int | None = None) -> Result:
    """Read what `save` wrote.

    Nothing is executed: a file from anywhere can be loaded.

    Parameters
    ----------
    path : path
    max_bytes : int, optional
        What the file may unpack to. By default 16 GiB, and fifty times the size of the file.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        If the file is damaged, is something else, or unpacks to more than is allowed.
    """
    meta, arrays = read(path, "result", max_bytes)
    with damage_named(path):
        return from_contents(meta, arrays)


def contents(result: Result) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a file holds of a result: a header of JSON, and arrays by name."""
    arrays = {"dictionary": result.dictionary}
    has_codes = scipy.sparse.issparse(result.codes) or isinstance(result.codes, np.ndarray)
    if has_codes:
        arrays |= codes_to_arrays(result.codes)
    arrays |= columns_to_arrays(result.history.to_dict())
    meta = {
        "reason": result.reason.name,
        "explained": None if math.isnan(result.explained) else result.explained,
        "settings": result.settings,
        "has_codes": has_codes,
    }
    return meta, arrays


def from_contents(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Result:
    """The result that `contents` took apart; errors are those of a damaged file (`damage_named`)."""
    D = as_dictionary(arrays["dictionary"])
    columns = arrays_to_columns(arrays)
    history = History(condition="kappa" in columns, coherence="coherence" in columns)
    history.restore(columns)
    codes, explained = None, meta.get("explained")
    if meta.get("has_codes", True):
        codes = arrays_to_codes(arrays, D.shape[1])
    explained = math.nan if explained is None else float(explained)
    settings = meta.get("settings", {})  # neither is in the oldest files
    if not isinstance(settings, dict):
        raise ValueError(f"its settings are {settings!r}")
    return Result(D, codes, history, Reason[meta["reason"]], explained, settings)
