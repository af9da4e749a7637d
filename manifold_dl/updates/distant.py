"""An update stage for signals that are no array in memory: opened for it, and its codes as they were given.

The learning loop opens its signals once and calls the rules with `BlockedSignals`. `SimCO` and `MOD` that are
called by themselves come here first.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from manifold_dl.engines import Engine
from manifold_dl.engines.blocked import BlockedCodes
from manifold_dl.engines.opening import is_dask_array, is_distant, open_distant

Stage = Callable[..., tuple[np.ndarray, Any]]


def run_stage(
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
    """One update stage on an array, a Dask array or files.

    Parameters
    ----------
    stage : callable
        ``stage(signals, dictionary, codes, weights=, **options)``, for arrays and for `BlockedSignals`.
    signals : m×n array, Dask array, path, or BlockedSignals
    dictionary : m×d array
    codes : sparse or dense d×n array, Dask array of them, or BlockedCodes
    weights : array of length n, m×n array, Dask array, path, or None
    threads : int, optional
    engine : Engine, optional
        Where signals that are not in memory are opened.
    **options
        Passed on.

    Returns
    -------
    dictionary, codes
        The codes are a csc_array; a Dask array with the same chunks if they were given as one.
    """
    if not is_distant(signals):
        return stage(signals, dictionary, codes, weights=weights, **options)
    opened, own_weights = open_distant(signals, weights, threads, engine)
    given = codes.compute() if is_dask_array(codes) else codes
    D, X = stage(opened, dictionary, given, weights=own_weights, **options)
    X = X.compute() if isinstance(X, BlockedCodes) else X
    if is_dask_array(codes):
        from manifold_dl.engines.dask_arrays import in_chunks

        X = in_chunks(X, codes.chunks[1])
    return D, X
