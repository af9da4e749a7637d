"""What enters the scikit-learn estimator, checked: samples in rows, a start, a random state.

`dictionary_learning.py` and `fitting.py` call these functions.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from manifold_dl._sparse import require_sound_indices
from manifold_dl._validation import (
    FILL,
    as_rng,
    as_weights,
    require_count,
    require_finite,
    require_memory,
    require_unmasked,
)
from manifold_dl._weights import JointWeights
from manifold_dl.engines.opening import is_dask_array

FLOATS = (np.float64, np.float32)
MISSING_VALUES = FILL._replace(masked="Give `X.filled(np.nan)` with missing_values=np.nan.")


def signals_of(model: Any, X: Any, reset: bool, sample_weight: Any = None) -> tuple[Any, Any]:
    """The checked samples in columns, and their weights. A view, where they are complete C-ordered floats.

    Parameters
    ----------
    model : estimator
        Its number and names of features are compared, or set if `reset`. Its `missing_values` says whether
        NaN marks missing entries.
    X : array or Dask array (n_samples, n_features)
    reset : bool
    sample_weight : array (n_samples,), optional

    Returns
    -------
    signals : m×n array or Dask array
    weights : array of length n, m×n array or Dask array, JointWeights or None
        Where entries are missing, 0 for these and 1 for others, with the weights of samples beside them.
    """
    require_missing_values(model.missing_values)
    if is_dask_array(X):
        X = _features_of_dask(model, X, reset)
        return X.T, _weights_of_dask(X, model.missing_values, sample_weight)
    require_numbers(X, "X")
    X = validate_data(model, X, reset=reset, dtype=FLOATS, order="C", ensure_all_finite=False)
    weights = _as_sample_weight(sample_weight, len(X), X.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    if np.isfinite(total):
        return X.T, weights
    missing = np.isnan(X)
    if model.missing_values is None and missing.any():
        try:
            require_finite(X, "X", total)
        except ValueError as error:
            advice = "If NaN marks missing entries, give missing_values=np.nan."
            raise ValueError(f"{error} {advice}") from None
    filled = np.where(missing, 0, X)
    with np.errstate(over="ignore", invalid="ignore"):
        require_finite(filled, "X", filled.sum())
    if not missing.any():
        return X.T, weights
    observed = (~missing).astype(X.dtype)
    return filled.T, observed.T if weights is None else JointWeights(observed.T, weights)


def require_missing_values(missing_values: Any) -> None:
    """Refuse what does not say how missing entries are marked: None for not at all, or NaN.

    Examples
    --------
    >>> require_missing_values(-1)
    Traceback (most recent call last):
    ...
    ValueError: missing_values=-1: missing entries are marked by np.nan, or not at all: None.
    """
    is_nan = isinstance(missing_values, Real) and np.isnan(float(missing_values))
    if missing_values is not None and not is_nan:
        raise ValueError(
            f"missing_values={missing_values!r}: missing entries are marked by np.nan, or not at all: None."
        )


def _as_sample_weight(sample_weight: Any, n_samples: int, dtype: np.dtype) -> np.ndarray | None:
    """One finite weight ≥ 0 for every sample; None if all of them are 1."""
    if sample_weight is None:
        return None
    require_unmasked(sample_weight, "sample_weight")
    weights = np.asarray(sample_weight)
    if weights.shape not in ((), (n_samples,)):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; one number for each of {n_samples} samples is needed."
        )
    return as_weights(np.broadcast_to(weights, (n_samples,)), m=0, n=n_samples, dtype=dtype)


def _features_of_dask(model: BaseEstimator, X: Any, reset: bool) -> Any:
    """A Dask array of samples with the right number of features; its numbers are checked when it is read."""
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; (n_samples, n_features) is needed.")
    if reset:
        model.n_features_in_ = X.shape[1]
        vars(model).pop("feature_names_in_", None)
    elif X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting {model.n_features_in_} "
            "features as input."
        )
    if X.shape[1] < 2:
        raise ValueError("n_features=1: with a single feature the only unit atoms are +1 and -1.")
    return X


def _weights_of_dask(X: Any, missing_values: Any, sample_weight: Any) -> Any:
    """The weights of samples, or 0 for missing entries and 1 for others as a Dask array."""
    if missing_values is None:
        return sample_weight
    if sample_weight is not None:
        raise ValueError(
            "sample_weight and missing_values together need samples in memory, and X is a Dask array: leave "
            "one of them out."
        )
    return ~np.isnan(X.T)


def number_and_start(n_components: int | None, init: Any, m: int) -> tuple[int, Any]:
    """The number of atoms, and the start with atoms in columns.

    Parameters
    ----------
    n_components : int or None
        None for as many as there are features, or as `init` has.
    init : str or array (n_components, n_features)
    m : int
        The number of features.

    Returns
    -------
    n_atoms, init
    """
    n_atoms = n_components
    if isinstance(init, str):
        n_atoms = m if n_atoms is None else n_atoms
    else:
        require_numbers(init, "init")
        init = check_array(init, dtype=FLOATS, input_name="init").T
        n_atoms = init.shape[1] if n_atoms is None else n_atoms
    require_count("n_components", n_atoms)
    require_memory(int(n_atoms), m)
    if not isinstance(init, str) and init.shape != (m, n_atoms):
        raise ValueError(
            f"init has shape {init.T.shape}; (n_components, n_features) = ({n_atoms}, {m}) is needed."
        )
    return int(n_atoms), init


def require_numbers(array: Any, name: str) -> None:
    """Refuse what scikit-learn would read as numbers though it is none: masked entries, text, dates."""
    require_unmasked(array, name, MISSING_VALUES if name == "X" else FILL)
    if scipy.sparse.issparse(array):
        require_sound_indices(array, name)
        return
    array = np.asarray(array)
    strange = array.dtype.kind in "USMmV"
    if array.dtype.kind == "O":  # of numbers, as tables make them, it is accepted
        strange = any(isinstance(entry, str | bytes | np.datetime64 | np.timedelta64) for entry in array.flat)
    if strange:
        raise ValueError(
            f"{name} has dtype {array.dtype} and holds text or dates; only real numbers are accepted. "
            "Convert it to numbers first."
        )


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator from scikit-learn's `random_state`; NumPy's global one is neither read nor changed."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return as_rng(random_state, "random_state")


@contextmanager
def unchanged_on_error(model: BaseEstimator) -> Iterator[None]:
    """Inside the block an error leaves the model as it was before, fitted or not."""
    before, rng = dict(vars(model)), copy.deepcopy(vars(model).get("_rng"))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        if rng is not None:
            vars(model)["_rng"] = rng
        raise
