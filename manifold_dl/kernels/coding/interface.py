"""What a coding kernel takes and returns: settings in, codes out.

Every kernel is called as ``kernel(dictionary, signals, settings)``, where `dictionary` comes from `prepare`
and `signals` holds a signal in every contiguous row; the lasso takes starting codes as well. The compiled
kernels and `reference.py` use the same types.
"""

from typing import NamedTuple

import numpy as np

# A tolerance below zero is none: the pursuit stops at its sparsity.
NO_TOLERANCE = -1.0


class PreparedDictionary(NamedTuple):
    """A dictionary, laid out for the kernels: computed once, used for every block of signals.

    The kernels in plain NumPy read `atoms` alone, and their `prepare` leaves the rest empty.
    """

    atoms: np.ndarray  # d×m, an atom per row
    tiles: np.ndarray  # tiles×m×width: the dictionary, in groups of atoms padded with zeros
    gram: np.ndarray  # padded×padded, padded = tiles·width
    eps: np.floating  # the unit of rounding of the atoms


class PursuitSettings(NamedTuple):
    """When a pursuit stops."""

    sparsity: int  # atoms per signal, at most
    tol: float = NO_TOLERANCE  # the squared residual allowed per signal
    max_iter: int = 1000  # steps per signal, for those that revise their codes


class LassoSettings(NamedTuple):
    """The penalties of a lasso, and what is done with its solution."""

    path: np.ndarray  # penalties in turn, each solution the start of the next
    relative: bool  # whether they are fractions of max |Dᵀy|, signal by signal
    tol: float  # the duality gap allowed, as a fraction of the objective
    refit: int  # if positive, keep this many of the largest entries and solve for them by least squares
    nonnegative: bool = False  # whether no coefficient may be negative
    mu: float = 0.0  # of the elastic net; the dictionary comes from `prepare_lasso` with the same number


class FocussSettings(NamedTuple):
    """The exponent and the stopping rule of FOCUSS."""

    sparsity: int  # atoms per signal, at most
    p: float  # the exponent in Σ|x_i|^p
    ridge: float  # added to each system, as a fraction of its mean diagonal entry
    max_iter: int  # systems per signal
    negligible: float  # entries below this fraction of the largest are dropped


class Codes(NamedTuple):
    """The codes of n signals in rectangular arrays: of row j the first counts[j] entries count."""

    counts: np.ndarray  # n
    indices: np.ndarray  # n×width, increasing in each row
    values: np.ndarray  # n×width


class StartingCodes(NamedTuple):
    """Codes to start from, with the entries of all signals in a row, as in a csc_array."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def empty_codes(signals: np.ndarray, width: int) -> Codes:
    """Memory for codes of at most `width` atoms per signal."""
    n = len(signals)
    indices = np.empty((n, width), np.int32)
    return Codes(np.empty(n, np.int32), indices, np.empty((n, width), signals.dtype))


def no_codes(signals: np.ndarray) -> StartingCodes:
    """A start from zero."""
    indptr, indices = np.zeros(len(signals) + 1, np.int64), np.zeros(0, np.int32)
    return StartingCodes(indptr, indices, np.zeros(0, signals.dtype))
