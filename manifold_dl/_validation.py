"""Input validation: arrays, numbers and index sets, checked once and refused with a sentence.

Every public function calls these first: NumPy and SciPy would take masked and damaged sparse arrays for data.
"""

import inspect
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from manifold_dl._missing import FILL, WEIGHTS, Advice, not_finite
from manifold_dl._weights import JointWeights, without_missing

# Weighted sums of squares, and the squares of their gradients, stay within the range of the type.
LARGEST_WEIGHT = {np.dtype(np.float64): 2.0**100, np.dtype(np.float32): 2.0**20}


def as_matrix(array: Any, name: str, finite: bool = True, advice: Advice = FILL) -> np.ndarray:
    """A finite real matrix in single or double precision, copied only if it has to be converted.

    If finite is False, the caller must call `require_finite`. `advice` ends the sentences about missing
    entries.
    """
    require_unmasked(array, name, advice)
    if scipy.sparse.issparse(array):
        raise TypeError(f"{name} is a sparse {array.format} array: dense only; use `.toarray()`.")
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}; only real numbers are accepted.")
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}; a matrix with two axes is needed.")
    if 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}: it is empty.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if finite:
        # One pass without a temporary; only a sum that overflowed or met a NaN needs the closer look.
        with np.errstate(over="ignore", invalid="ignore"):
            total = array.sum()
        require_finite(array, name, total, advice)
    return array


def require_finite(array: np.ndarray, name: str, total: float, advice: Advice = FILL) -> None:
    """Refuse NaN and infinity. `total` is any sum over the array, which is not finite either then."""
    if not math.isfinite(total) and not np.isfinite(array).all():
        wrong = np.argwhere(~np.isfinite(array))
        row, column = wrong[0][:2]
        place = f"at row {row}, column {column}"
        raise not_finite(name, array[tuple(wrong[0])], place, len(wrong), advice)


def as_weights(weights: Any, m: int, n: int, dtype: DTypeLike) -> Any:
    """Weights of signals (n of them) or of their entries (m×n), finite and ≥ 0; None if all of them are 1.

    A weight of a signal multiplies its whole term of the objective, the ridge included. Weights of entries
    multiply squared errors alone, also if they are the same for a whole signal; 0 is a missing entry.

    Examples
    --------
    >>> as_weights([1, 0, 2], m=4, n=3, dtype=float)
    array([1., 0., 2.])
    >>> as_weights(np.ones((4, 3), bool), m=4, n=3, dtype=float) is None
    True
    """
    if weights is None:
        return None
    if isinstance(weights, JointWeights):
        return weights.checked(lambda one: as_weights(one, m, n, dtype))
    require_unmasked(weights, "weights")
    if scipy.sparse.issparse(weights):
        raise TypeError(f"weights is a sparse {weights.format} array: dense only; use `.toarray()`.")
    given = np.asarray(weights)
    if given.dtype.kind not in "fiub":
        raise TypeError(f"weights has dtype {given.dtype}; only real numbers are accepted.")
    if given.shape not in ((n,), (m, n)):
        raise ValueError(
            f"weights has shape {given.shape}, but there are {n} signals of length {m}: give one number per "
            f"signal, shape ({n},), or one per entry, shape ({m}, {n})."
        )
    with np.errstate(over="ignore"):  # refused below
        result = given.astype(dtype, copy=False)
    smallest, largest = float(result.min()), float(result.max())  # NaN, if there is one
    if not (smallest >= 0 and largest < np.inf):
        place = tuple(int(i) for i in np.argwhere(~(np.isfinite(result) & (result >= 0)))[0])
        raise ValueError(f"weights holds {given[place]} at {place}: a weight is finite and not negative.")
    limit = LARGEST_WEIGHT[result.dtype]
    if largest > 0 and not 1 / limit <= largest <= limit:
        raise ValueError(
            f"the largest weight is {largest:.1e}: divide all weights by it, so that sums of weighted "
            "squares stay within the range of numbers."
        )
    return None if smallest == largest == 1 else result


def as_observed(
    signals: Any, weights: Any, name: str = "signals", finite: bool = True
) -> tuple[np.ndarray, Any]:
    """Signals and their weights, checked. What has a weight of zero may be anything, and becomes zero.

    If finite is False, the caller must call `require_finite`.

    Examples
    --------
    >>> Y, W = as_observed([[1.0, np.nan], [2.0, 3.0]], weights=[[1, 0], [1, 1]])
    >>> Y.tolist()
    [[1.0, 0.0], [2.0, 3.0]]
    """
    if weights is None:
        return as_matrix(signals, name, finite, WEIGHTS), None
    Y = as_matrix(signals, name, finite=False, advice=WEIGHTS)
    W = as_weights(weights, m=Y.shape[0], n=Y.shape[1], dtype=Y.dtype)
    if W is not None and not np.asarray(W).all():
        Y = without_missing(Y, W)
    return as_matrix(Y, name, finite, WEIGHTS), W


def as_dictionary(dictionary: Any, n_rows: int | None = None, name: str = "dictionary") -> np.ndarray:
    """A matrix with an atom in every column, none of them zero."""
    dictionary = as_matrix(dictionary, name)
    if n_rows is not None and dictionary.shape[0] != n_rows:
        raise ValueError(
            f"{name} has atoms of length {dictionary.shape[0]}, but the signals have length {n_rows}: "
            "both are stored in columns."
        )
    if not (used := dictionary.any(axis=0)).all():
        zero = used.argmin()
        raise ValueError(f"{name} column {zero} is zero: an atom needs a direction. Replace or drop it.")
    return dictionary


def as_ridge(mu: Any) -> float:
    """A finite μ ≥ 0."""
    if not np.isscalar(mu) or isinstance(mu, (str, bytes, complex)):
        raise TypeError(f"mu={mu!r}: the ridge is one number.")
    ridge: float = mu  # type: ignore[assignment]  # a real scalar of any kind
    if not (np.isfinite(ridge) and ridge >= 0):
        raise ValueError(f"mu={mu}: the ridge must be finite and not negative.")
    return float(ridge)


def as_alpha(alpha: Any) -> float:
    """A finite ℓ₁ penalty α > 0."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise TypeError(f"alpha={alpha!r}: the penalty is one number.")
    penalty = float(alpha)
    if not 0 < penalty < np.inf:
        raise ValueError(f"alpha={alpha}: the penalty must be finite and positive.")
    return penalty


def as_atoms(atoms: Any, n_atoms: int) -> np.ndarray:
    """The set I as distinct indices in the order given; None means all atoms."""
    if atoms is None:
        return np.arange(n_atoms)
    require_unmasked(atoms, "atoms")
    atoms = np.asarray(atoms)
    if atoms.dtype == bool and atoms.shape == (n_atoms,):
        atoms = np.flatnonzero(atoms)
    atoms = np.atleast_1d(atoms)
    if atoms.size == 0:
        raise ValueError("atoms is empty: a set I needs at least one atom.")
    if atoms.ndim != 1 or atoms.dtype.kind not in "iu":
        raise TypeError(
            f"atoms has shape {atoms.shape} and dtype {atoms.dtype}; a list of whole numbers is needed."
        )
    outside = atoms[(atoms < 0) | (atoms >= n_atoms)]
    if outside.size:
        raise ValueError(f"atom {outside[0]} is out of range: the dictionary has atoms 0 to {n_atoms - 1}.")
    values, counts = np.unique(atoms, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"atom {values[counts > 1][0]} is repeated: a set I names every atom once.")
    return atoms.astype(np.intp)


def as_rng(rng: Any, name: str = "rng") -> np.random.Generator:
    """A random generator from a generator, a seed or None."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={rng!r}: give a whole number from 0, a numpy Generator or None.") from None


def require_memory(n_atoms: int, m: int, itemsize: int = 8) -> None:
    """Refuse so many atoms of length m that the dictionary and a copy do not fit into this machine."""
    needed, available = 2 * n_atoms * m * itemsize, physical_memory()
    if needed > available:
        raise ValueError(
            f"{n_atoms} atoms of length {m} and one copy of them take {needed / 2**30:.0f} GiB, and this "
            f"machine has {available / 2**30:.0f} GiB of memory. Give fewer atoms."
        )


def physical_memory() -> float:
    """The bytes of memory of this machine; infinite where it is not known."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return float("inf")


def require_count(
    name: str,
    value: Any,
    reason: str = "",
    minimum: int = 1,
    wrong_type: type[Exception] = ValueError,
) -> None:
    """Refuse what is not a whole number of at least `minimum`; `wrong_type` is raised for no whole number.

    Examples
    --------
    >>> require_count("max_iter", 0)
    Traceback (most recent call last):
    ...
    ValueError: max_iter=0: give a whole number of at least 1.
    >>> require_count("memory", 2.5, "a search needs at least one pair")
    Traceback (most recent call last):
    ...
    ValueError: memory=2.5: a search needs at least one pair; memory is a whole number of at least 1.
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if is_whole and int(value) >= minimum:
        return
    allowed = f"a whole number of at least {minimum}"
    message = f"{reason}; {name} is {allowed}" if reason else f"give {allowed}"
    raise (ValueError if is_whole else wrong_type)(f"{name}={value!r}: {message}.")


def require_unmasked(array: Any, name: str, advice: Advice = FILL) -> None:
    """Refuse a masked array: NumPy hands its hidden entries out as if they were data."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: masked entries would be used as data. {advice.masked}")


_warned: ContextVar[set | None] = ContextVar("warnings given inside a with block", default=None)


@contextmanager
def each_warning_once(*unwanted: str) -> Iterator[None]:
    """Inside the block each kind of warning is given once, as a loop would repeat it; unwanted ones never."""
    given = set() if (enclosing := _warned.get()) is None else enclosing
    token = _warned.set(given | set(unwanted) if unwanted else given)
    try:
        yield
    finally:
        _warned.reset(token)


def warn_once(text: str, kind: str) -> None:
    """Warn, unless the same kind of warning has been given inside this `each_warning_once`."""
    given = _warned.get()
    if given is None or kind not in given:
        warnings.warn(text, stacklevel=_depth_of_package())
    if given is not None:
        given.add(kind)


def _depth_of_package() -> int:
    """How far up the call came from outside of this package, so that a warning names a line of the user's."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "manifold_dl":
        frame, depth = frame.f_back, depth + 1
    return depth
