"""How the package calls a coder: which keywords are passed on, and what may be returned.

The learning loop, the estimator, `images` and `diagnostics.check_coder` all call `run_coder`, so that they
agree on what a coder may return.
"""

from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._sparse import require_sound_indices
from manifold_dl._weights import plain
from manifold_dl.components.calling import call, require_weights
from manifold_dl.components.errors import ComponentError, is_users, naming
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals


def run_coder(coder: Any, signals: Any, dictionary: np.ndarray, **options: Any) -> Any:
    """The codes of `signals` by any coder, in one form.

    Parameters
    ----------
    coder : SparseCoder
        Its codes may be sparse or dense; `as_codes` says what is refused.
    signals : m×n array or BlockedSignals
        A signal in every column.
    dictionary : m×d array
        An atom in every column.
    **options
        `threads`, `codes`, `iteration` and `weights` of `FullSparseCoder.encode`: those that the coder's
        `encode` names are passed on. If there are weights it has to name them.

    Returns
    -------
    csc_array or BlockedCodes
        d×n, of the dtype of the signals.

    Raises
    ------
    ComponentError
        If the coder fails, or returns something other than codes.

    Examples
    --------
    >>> class Correlations:
    ...     def encode(self, signals, dictionary):
    ...         return dictionary.T @ signals  # dense
    >>> run_coder(Correlations(), np.eye(2), np.eye(2), threads=1).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if options.get("weights") is not None:
        require_weights(coder, "coder", coder.encode)
        if is_users(coder):
            options["weights"] = plain(options["weights"])
    if isinstance(signals, BlockedSignals) and is_users(coder):
        raise TypeError(
            f"the coder {coder!r} takes arrays, and these signals are with {signals.engine!r}: use one of "
            "this package, or signals in memory."
        )
    with naming(coder, "coder"):
        codes = call(coder, "coder", coder.encode, signals, dictionary, **options)
        shape = (dictionary.shape[1], signals.shape[1])
        return as_codes(codes, coder, shape, signals.dtype)


def as_codes(codes: Any, coder: Any, shape: tuple[int, int], dtype: np.dtype, role: str = "coder") -> Any:
    """The codes that a component returned: a finite csc_array of d×n numbers with sorted indices.

    A csc_array in this form is returned as it is. Other sparse formats and dense d×n arrays are converted; a
    dense array keeps its non-zero entries only.

    Parameters
    ----------
    codes : csc_array or any other object
        What was returned.
    coder : object
        The component that returned it, for the error.
    shape : tuple of int
        (d, n).
    dtype : dtype
        That of the result.
    role : str
        What the component is called in the error.

    Returns
    -------
    csc_array

    Raises
    ------
    ComponentError
        If it cannot be converted, or is not finite. It names the component.

    Examples
    --------
    >>> from manifold_dl.coders import OMP
    >>> as_codes([[0.0, 2.0], [3.0, 0.0]], OMP(sparsity=1), shape=(2, 2), dtype=float).indices.tolist()
    [1, 0]
    """
    if isinstance(codes, BlockedCodes):  # of a coder of this package
        return codes
    codes = _as_array(codes, coder, role)
    _require_codes(codes, coder, shape, role)
    try:
        if scipy.sparse.issparse(codes):  # before SciPy or a kernel follows indices outside of its memory
            require_sound_indices(codes, "the support")
    except (TypeError, ValueError) as error:
        fault = f"returned codes that cannot be used: {str(error).rstrip('.')}"
        raise ComponentError(coder, role, fault) from error
    if not isinstance(codes, scipy.sparse.csc_array):
        codes = scipy.sparse.csc_array(codes)
    if not codes.has_canonical_format:
        codes = codes.copy()
        codes.sum_duplicates()
    return codes.astype(dtype, copy=False)


def _as_array(codes: Any, coder: Any, role: str) -> Any:
    """A sparse or dense array of numbers."""
    if scipy.sparse.issparse(codes):
        return codes
    kind = "None" if codes is None else f"a {type(codes).__name__}"
    try:
        codes = np.asarray(codes)
    except ValueError:  # a pair of arrays, for example
        codes = np.empty(0, dtype=object)
    if codes.dtype.kind not in "fiubc":
        fault = f"returned {kind}, where the codes are expected: a sparse or dense d×n array of real numbers"
        raise ComponentError(coder, role, fault)
    return codes


def _require_codes(codes: Any, coder: Any, shape: tuple[int, int], role: str) -> None:
    """Refuse arrays that are not real, not d×n or not finite."""
    if codes.dtype.kind not in "fiub":
        fault = f"returned codes of dtype {codes.dtype}, where real numbers are expected"
        raise ComponentError(coder, role, fault)
    if codes.shape != shape:
        fault = f"returned codes of shape {codes.shape} where d×n = {shape}"
        if codes.shape == shape[::-1]:
            fault += ": the codes of a signal are a column, so return the transpose"
        raise ComponentError(coder, role, fault)
    values = codes.data if scipy.sparse.issparse(codes) else codes
    if not np.isfinite(values).all():
        raise ComponentError(coder, role, "returned codes that are not finite")
