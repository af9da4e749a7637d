"""An update stage for signals that are no array in memory: opened for it, and its codes as they were given.

The learning loop opens its signals once and calls the rules with `BlockedSignals`. `SimCO` and `MOD` call
`run_distant` where they are given signals that are not open.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from manifold_dl.engines import Engine
from manifold_dl.engines.blocked import BlockedCodes
from manifold_dl.engines.opening import is_dask_array, open_distant

Stage = Callable[..., tuple[np.ndarray, Any]]


def run_distant(
    stage: Stage,
    signals: Any,
    dictionary: Any,
    codes: Any,
    *,
    weights: Any = None,
    threads: int | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> tuple[np.ndarray, Any]:
    """One update stage on a Dask array or on files.

    Parameters
    ----------
    stage : callable
        ``stage(signals, dictionary, codes, weights=, **options)``, for arrays and for `BlockedSignals`.
    signals : Dask array or path
        As `is_distant` says.
    dictionary : m×d array
    codes : sparse or dense d×n array, Dask array of them, or BlockedCodes
    weights : array of length n, m×n array, Dask array, path, or None
    threads : int, optional
    engine : Engine, optional
        Where the signals are opened.
    **options
        Passed on.

    Returns
    -------
    dictionary, codes
        The codes are a csc_array; a Dask array with the same chunks if they were given as one.
    """
    opened, own_weights = open_distant(signals, weights, threads, engine)
    given = codes.compute() if is_dask_array(codes) else codes
    D, X = stage(opened, dictionary, given, weights=own_weights, **options)
    X = X.compute() if isinstance(X, BlockedCodes) else X
    if is_dask_array(codes):
        from manifold_dl.engines.dask_codes import in_chunks

        X = in_chunks(X, codes.chunks[1])
    return D, X
