"""How the package calls a coder: what it is told, and what may come back.

The learning loop, the estimator, `images` and `diagnostics.check_coder` all call `run_coder`, so that they
agree on what a coder may return.
"""

from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.calling import call
from manifold_dl.errors import naming
from manifold_dl.inputs import as_codes


def run_coder(
    coder: Any, signals: np.ndarray, dictionary: np.ndarray, **options: Any
) -> scipy.sparse.csc_array:
    """The codes of `signals` (m×n) by any coder, as a csc_array (d×n) of the dtype of the signals.

    Parameters
    ----------
    coder : SparseCoder
        Its codes may be sparse or dense; `inputs.as_codes` says what is refused.
    signals, dictionary : m×n and m×d arrays
    **options
        `threads`, `codes` and `iteration`: those that the coder's `encode` names are passed on.

    Raises
    ------
    ComponentError
        If the coder fails, or returns something that is no codes.

    Examples
    --------
    >>> class Correlations:
    ...     def encode(self, signals, dictionary):
    ...         return dictionary.T @ signals  # dense
    >>> run_coder(Correlations(), np.eye(2), np.eye(2), threads=1).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    with naming(coder, "coder"):
        codes = call(coder, "coder", coder.encode, signals, dictionary, **options)
        shape = (dictionary.shape[1], signals.shape[1])
        return as_codes(codes, coder, shape, signals.dtype)
