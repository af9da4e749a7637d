"""The lasso, compiled: min ½‖y − Dx‖² + λ‖x‖₁ + (μ/2)‖x‖² for every signal; with μ > 0 the elastic net.

Coders and the objective with ℓ₁ codes call the same function. It solves each signal by the method of
`signs.py`, which is fast, and fails where atoms are nearly dependent. These signals, and all that have
weights of entries or codes ≥ 0 only, are solved by the method with checks of `checked_lasso.py`, in double
precision: the Gram matrix has half the digits of the atoms, and in single precision, with 30 and more active
atoms that are nearly dependent, the solution of the linear system can be wrong in every digit. So the
optimality conditions are checked at the end of every signal; where they do not hold, it is solved again: one
picture patch in 300 at λ = 0.03·max |Dᵀy|.

The last solution of a signal is computed with its atoms in increasing order. So the codes depend on the
dictionary, the signal, the support and the signs alone, and not on the codes that the method began with.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering
from manifold_dl.kernels.coding.active_set import SLACK
from manifold_dl.kernels.coding.checked_lasso import checked_lasso
from manifold_dl.kernels.coding.common import ROUNDINGS, argmax_abs, keep_largest, sort_by_index
from manifold_dl.kernels.coding.dictionary import ROWS, multiply_tiles, prepare, take_row
from manifold_dl.kernels.coding.interface import (
    Codes,
    LassoSettings,
    PreparedDictionary,
    StartingCodes,
    empty_codes,
    no_codes,
)
from manifold_dl.kernels.coding.signs import are_optimal, descend, solve_accurately, solve_in_order, take
from manifold_dl.kernels.memory import aligned
from manifold_dl.kernels.status import NOT_OPTIMAL, OK


class Workspace(NamedTuple):
    """Memory of one thread for `_lasso`, allocated by NumPy: that takes Numba a second to compile."""

    a: np.ndarray  # padded: Dᵀy
    folded: np.ndarray  # for `argmax_abs`
    products: np.ndarray  # tiles×ROWS×width: DᵀY of a few signals
    h: np.ndarray  # padded: Dᵀr
    L: np.ndarray  # the factor of the active atoms
    z: np.ndarray
    signs: np.ndarray
    goal: np.ndarray  # the solution for the current signs


def prepare_lasso(atoms: np.ndarray, mu: float) -> PreparedDictionary:
    """The dictionary with μ on the diagonal of its Gram matrix, for settings with that μ."""
    dictionary = prepare(atoms)
    if mu > 0:
        diagonal = np.arange(len(atoms))
        dictionary.gram[diagonal, diagonal] += atoms.dtype.type(mu)
    return dictionary


def lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes | None = None,
    factors: np.ndarray | None = None,
) -> Codes:
    """Lasso codes of each row of `signals`, for the penalties of the path in turn, each from the one before.

    The last codes count; with `settings.refit` only the largest of them, solved again by least squares.
    `factors` has a number per signal that its penalties are multiplied by.
    """
    factors = np.ones(len(signals), signals.dtype) if factors is None else factors
    if settings.nonnegative:
        return _solve_with_checks(dictionary, signals, signals[:0], settings, factors, start)
    codes, statuses = _room(dictionary, signals, settings), np.empty(len(signals), np.int8)
    numbers = (np.asarray(settings.path, signals.dtype), settings.relative, settings.tol, settings.refit)
    start = no_codes(signals) if start is None else start
    work = empty_workspace(dictionary, codes.values.shape[1])
    _lasso(signals, tuple(dictionary), numbers, factors, tuple(start), tuple(codes), statuses, tuple(work))
    again = np.flatnonzero(statuses != OK)
    if len(again):
        _solve_in_double(dictionary, signals, signals[:0], settings, factors, codes, again)
    return codes


def weighted_lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes | None = None,
    factors: np.ndarray | None = None,
) -> Codes:
    """The same for each row of `signals` = √w∘y with `roots` = √w."""
    factors = np.ones(len(signals), signals.dtype) if factors is None else factors
    return _solve_with_checks(dictionary, signals, roots, settings, factors, start)


def _room(dictionary: PreparedDictionary, signals: np.ndarray, settings: LassoSettings) -> Codes:
    """Memory for the codes; a ridge lets dependent atoms be active together."""
    codes = empty_codes(signals, len(dictionary.atoms) if settings.mu > 0 else min(dictionary.atoms.shape))
    codes.values[:] = 0  # entries that do not count may be converted to another precision
    return codes


def empty_workspace(dictionary: PreparedDictionary, size: int) -> Workspace:
    """Memory for at most `size` active atoms."""
    (n_tiles, _, width), dtype = dictionary.tiles.shape, dictionary.gram.dtype
    padded = n_tiles * width
    a, products = (aligned(shape, dtype, smallest=0) for shape in ((padded,), (n_tiles, ROWS, width)))
    z, signs, goal = np.empty((3, size), dtype)
    folded, h, L = np.empty(padded // 16, dtype), np.empty(padded, dtype), np.empty((size, size), dtype)
    return Workspace(a, folded, products, h, L, z, signs, goal)


def _solve_with_checks(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: LassoSettings,
    factors: np.ndarray,
    start: StartingCodes | None,
) -> Codes:
    """The codes by the method with checks; where single precision is not enough, in double."""
    codes = _room(dictionary, signals, settings)
    statuses = checked_lasso(dictionary, signals, roots, settings, factors, start, codes)
    again = np.flatnonzero(statuses != OK)
    if len(again) and signals.dtype == np.float32:
        _solve_in_double(dictionary, signals, roots, settings, factors, codes, again)
    return codes


def _solve_in_double(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: LassoSettings,
    factors: np.ndarray,
    codes: Codes,
    again: np.ndarray,
) -> None:
    """Solve for the signals `again` by the method with checks, and put them into `codes`."""
    rows = signals[again].astype(np.float64)
    if signals.dtype == np.float32:
        # Dependent atoms were rounded to single precision: their squared distance is now of the order eps².
        eps = np.float64(dictionary.eps) ** 2
        dictionary = prepare_lasso(dictionary.atoms.astype(np.float64), settings.mu)._replace(eps=eps)
    own_roots = roots[again].astype(np.float64) if len(roots) else rows[:0]
    better = _room(dictionary, rows, settings)
    checked_lasso(dictionary, rows, own_roots, settings, factors[again].astype(np.float64), None, better)
    for given, found in zip(codes, better, strict=True):
        given[again] = found


@compiled_reordering
def _lasso(signals, dictionary_tuple, numbers, factors, start, codes_tuple, statuses, work):
    dictionary, codes = PreparedDictionary(*dictionary_tuple), Codes(*codes_tuple)
    (path, relative, tol, refit), (indptr, indices, values) = numbers, start
    a, folded, products, h, L, z, signs, goal = work
    gram, eps = dictionary.gram, dictionary.eps
    for j in range(len(signals)):
        if j % ROWS == 0:
            multiply_tiles(signals[j : j + ROWS], dictionary.tiles, products)
        take_row(products, j % ROWS, a)
        support, x = codes.indices[j], codes.values[j]
        largest = abs(a[argmax_abs(a, folded)])
        scale, penalty, status = largest if relative else factors[j], factors[j], OK
        k = take(indptr[j], indptr[j + 1], indices, values, support, x, signs)
        for i in range(len(path)):
            penalty = path[i] * scale
            # A correlation that is only rounding violates nothing, however small the penalty.
            allowed = max(penalty * (1 + tol), ROUNDINGS * eps * largest)
            slack = penalty * tol + SLACK * eps * largest
            k = descend(gram, a, penalty, allowed, support, x, signs, k, L, z, goal, h, folded)
            if k < 0 or not are_optimal(h, penalty, slack, support, signs, k):
                k, status = np.int64(0), NOT_OPTIMAL
                break
        if refit > 0:
            k = keep_largest(support, x, k, np.int64(refit))
            sort_by_index(support, x, k)
            if not solve_accurately(gram, a, support, x, signs, k, L, z, eps):
                k, status = np.int64(0), NOT_OPTIMAL
        elif not solve_in_order(gram, a, penalty, support, x, signs, k, L, z):
            k, status = np.int64(0), NOT_OPTIMAL
        codes.counts[j], statuses[j] = k, status
