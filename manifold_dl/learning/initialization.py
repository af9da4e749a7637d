"""The initial dictionary: random signals, random directions, cosines, or one that the user gives.

The learning loop and the estimator begin with `initial_dictionary`, brought onto the manifold of the update
rule; `images` starts from its cosines.
"""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from manifold_dl._validation import as_dictionary
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.blocked_weights import BlockedWeights
from manifold_dl.engines.units import column_norms, divide
from manifold_dl.updates.feasibility import has_unit_atoms, onto_manifold

# Two starting atoms with |cosine| above this are the same signal up to a factor.
SAME = 1 - 1e-6
# Of so many signals a random order is a permutation; of more, numbers are drawn one by one.
PERMUTED = 2**20


RandomLike = np.random.Generator | int | None


def feasible_start(
    signals: np.ndarray,
    n_atoms: int,
    init: Any,
    rng: RandomLike,
    update: Any,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """The initial dictionary of an update rule: on its manifold, before anything is coded with it.

    Parameters
    ----------
    signals : m×n array
    n_atoms : int
    init : "data", "random", "dct" or m×d array
    rng : Generator or int, optional
    update : DictionaryUpdate
    weights : array of length n or m×n array, optional
        Of the signals, or of their entries.

    Returns
    -------
    m×d array

    Examples
    --------
    >>> from manifold_dl import SimCO
    >>> from manifold_dl.manifolds import NonNegative
    >>> Y = np.random.default_rng(0).standard_normal((4, 9))
    >>> bool(feasible_start(Y, 6, "data", 0, SimCO(manifold=NonNegative)).min() > 0)
    True
    """
    return start_on_manifold(initial_dictionary(signals, n_atoms, init, rng, weights), init, update)


def start_on_manifold(D: np.ndarray, init: Any, update: Any) -> np.ndarray:
    """The initial dictionary `D` made from `init`, brought onto the manifold of an update rule."""
    if not isinstance(init, str) and not has_unit_atoms(update, *D.shape):
        D = np.array(init, dtype=D.dtype)  # norms are the user's
    return onto_manifold(update, D)


def initial_dictionary(
    signals: Any, n_atoms: int, init: Any, rng: RandomLike, weights: Any = None
) -> np.ndarray:
    """Unit atoms from "data", "random" or "dct", or a given m×d array.

    Parameters
    ----------
    signals : m×n array
    n_atoms : int
    init : "data", "random", "dct" or m×d array
    rng : Generator or int, optional
    weights : array of length n or m×n array, optional
        For "data": signals without weight are left out, and a missing entry, of weight zero, becomes the mean
        of the others of its signal.

    Returns
    -------
    m×d array
        Of the dtype of the signals.

    Examples
    --------
    >>> D = initial_dictionary(np.ones((4, 9)), 6, "dct", rng=0)
    >>> D.shape
    (4, 6)
    """
    rng, m = np.random.default_rng(rng), len(signals)
    if not isinstance(init, str):
        D = as_dictionary(init, n_rows=m, name="init").astype(signals.dtype)
        if D.shape[1] != n_atoms:
            raise ValueError(f"init has {D.shape[1]} atoms, but n_atoms={n_atoms}.")
    elif init == "data":
        D = _from_data(signals, n_atoms, rng, weights)
    elif init == "random":
        # Drawn atom by atom, unlike `datasets.synthetic`: one seed for both must not start at the solution.
        D = rng.standard_normal((n_atoms, m)).T
    elif init == "dct":
        D = _cosines(m, n_atoms)
    else:
        raise ValueError(f"init={init!r}: give 'data', 'random', 'dct' or an m×d array.")
    return (D / column_norms(D)).astype(signals.dtype)


def _from_data(signals: Any, n_atoms: int, rng: np.random.Generator, weights: Any) -> np.ndarray:
    """Random signals, non-zero and distinct up to a factor; random directions where there are too few."""
    D, found = np.empty((len(signals), n_atoms)), 0
    for signal in _in_random_order(signals, weights, 2 * n_atoms, rng):
        signal = divide(signal, np.frexp(np.abs(signal).max())[1])  # squares neither overflow nor vanish
        norm = np.linalg.norm(signal)
        if norm == 0:
            continue
        atom = signal / norm
        if np.abs(atom @ D[:, :found]).max(initial=0.0) <= SAME:
            D[:, found] = atom
            found += 1
            if found == n_atoms:
                return D
    D[:, found:] = rng.standard_normal((len(signals), n_atoms - found))
    return D


def _in_random_order(
    signals: Any, weights: Any, count: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """All signals in random order, `count` of them fetched at a time; missing entries are filled in."""
    n = signals.shape[1]
    if n <= PERMUTED:
        numbers: Iterator[int] = iter(rng.permutation(n))
    else:
        numbers = _distinct_numbers(n, rng)
    while batch := list(islice(numbers, count)):
        rows = _rows(signals, batch).astype(float)
        if weights is not None:
            own = _rows(weights, batch)
            own = own if own.ndim == 2 else own[:, None]
            for row, observed in zip(rows, np.broadcast_to(own > 0, rows.shape), strict=True):
                row[~observed] = row[observed].mean() if observed.any() else 0.0
        yield from rows


def _rows(array: Any, numbers: list[int]) -> np.ndarray:
    """Some signals, or weights, in rows."""
    if isinstance(array, BlockedSignals | BlockedWeights):
        return array.take(np.array(numbers))
    return array.T[numbers]


def _distinct_numbers(n: int, rng: np.random.Generator) -> Iterator[int]:
    """Random numbers below n, none of them twice, without a list of all."""
    drawn: set[int] = set()
    while len(drawn) < PERMUTED:  # where so many do not do, there are hardly any distinct signals
        number = int(rng.integers(n))
        if number not in drawn:
            drawn.add(number)
            yield number


def _cosines(m: int, n_atoms: int) -> np.ndarray:
    """An overcomplete cosine dictionary: separable where the atoms are square pictures."""
    side = math.isqrt(m)
    if side * side != m or side == 1:
        return _cosines_1d(m, n_atoms)
    per_side = math.isqrt(n_atoms - 1) + 1
    line = _cosines_1d(side, per_side)
    # Low frequencies first: the sum of the two frequencies of an atom orders them.
    rank = np.add.outer(np.arange(per_side), np.arange(per_side)).ravel()
    return np.kron(line, line)[:, np.argsort(rank, kind="stable")[:n_atoms]]


def _cosines_1d(m: int, n_atoms: int) -> np.ndarray:
    D = np.cos(np.outer(np.arange(m) + 0.5, np.arange(n_atoms)) * np.pi / n_atoms)
    if m > 2:  # with two entries all atoms but the first would become ±(1, −1)
        D[:, 1:] -= D[:, 1:].mean(axis=0)
    return D / column_norms(D)
