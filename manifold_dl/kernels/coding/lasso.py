"""The lasso, compiled: min ½‖y − Dx‖² + λ‖x‖₁ for every signal, by the active-set method of `active_set.py`.

From the codes of an earlier dictionary it usually ends after a few moves.

The Gram matrix has half the digits of the atoms. In single precision, with 30 and more active atoms that are
nearly dependent, the solution of the linear system can be wrong in every digit, and the method ends far from
the minimum. So the optimality conditions are checked at the end of every signal; where they do not hold, the
signal is coded again in double precision: one picture patch in 300 at λ = 0.03·max |Dᵀy|.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering, internal_reordering
from manifold_dl.kernels.coding.active_set import (
    SLACK,
    Active,
    Limits,
    Workspace,
    add,
    descend,
    empty_workspace,
)
from manifold_dl.kernels.coding.common import ROUNDINGS, Code, argmax_abs, keep_largest, sort_by_index
from manifold_dl.kernels.coding.dictionary import ROWS, correlate_with, empty_products, prepare
from manifold_dl.kernels.coding.factor import append_row, least_squares
from manifold_dl.kernels.coding.interface import (
    Codes,
    LassoSettings,
    PreparedDictionary,
    StartingCodes,
    empty_codes,
    no_codes,
)
from manifold_dl.kernels.coding.nonnegative import grow
from manifold_dl.kernels.coding.observed import OwnDictionary, begin_signal, own_dictionary, require_row
from manifold_dl.kernels.status import OK


def lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes | None = None,
) -> Codes:
    """Lasso codes of each row of `signals`, for the penalties of the path in turn, each from the one before.

    The last codes count; with `settings.refit` only the largest of them, solved again by least squares.
    Signals whose codes in single precision are not optimal to its rounding are coded again in double.
    """
    return weighted_lasso(dictionary, signals, signals[:0], settings, start)


def weighted_lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes | None = None,
) -> Codes:
    """The same for each row of `signals` = √w∘y with `roots` = √w, which may be empty."""
    start = no_codes(signals) if start is None else start
    codes, statuses = _encode(dictionary, signals, roots, settings, start)
    again = np.flatnonzero(statuses != OK)
    if len(again) and signals.dtype == np.float32:
        # Dependent atoms were rounded to single precision: their squared distance is now of the order eps².
        eps = np.float64(dictionary.eps) ** 2
        in_double = prepare(dictionary.atoms.astype(np.float64))._replace(eps=eps)
        rows = signals[again].astype(np.float64)
        their_roots = roots[again].astype(np.float64) if len(roots) else rows[:0]
        better, _ = _encode(in_double, rows, their_roots, settings, no_codes(rows))
        for single, double in zip(codes, better, strict=True):
            single[again] = double
    return codes


def _encode(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes,
) -> tuple[Codes, np.ndarray]:
    """The codes in the precision of `signals`, and for each of them OK or NOT_OPTIMAL."""
    codes = empty_codes(signals, min(dictionary.atoms.shape))
    codes.values[:] = 0  # entries that do not count may be converted to another precision
    statuses = np.empty(len(signals), np.int8)
    settings = settings._replace(path=np.asarray(settings.path, signals.dtype))
    _lasso(dictionary, signals, roots, settings, start, codes, statuses)
    return codes, statuses


@compiled_reordering
def _lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes,
    codes: Codes,
    statuses: np.ndarray,
) -> None:
    tiles, eps, weighted = dictionary.tiles, dictionary.eps, len(roots) > 0
    own, products = own_dictionary(dictionary, weighted), empty_products(dictionary)
    work = empty_workspace(codes.values.shape[1], dictionary.gram, products)
    signs, count = np.empty_like(codes.values[0]), np.int64(signals.shape[1])
    for j in range(len(signals)):
        if j % ROWS == 0:
            some = signals[j : j + ROWS]
            correlate_with(tiles, roots[j : j + ROWS] * some if weighted else some, products)
        if weighted:
            count = begin_signal(own, roots[j])
        a, support, x = products.correlations[j % ROWS], codes.indices[j], codes.values[j]
        active, k = Active(support, x, signs), np.int64(0)
        for i in range(start.indptr[j], start.indptr[j + 1]):
            if start.values[i] > 0 or not settings.nonnegative:
                p = np.int64(start.indices[i])
                require_row(own, count, p)
                k = add(own.prepared.gram, work.factor, active, k, p, start.values[i], eps)
        largest = _largest(a, settings.nonnegative, work)
        for i in range(len(settings.path)):
            penalty = settings.path[i] * largest if settings.relative else settings.path[i]
            # A correlation that is only rounding violates nothing, however small the penalty.
            allowed = max(penalty * (1 + settings.tol), ROUNDINGS * eps * largest)
            slack = penalty * settings.tol + SLACK * eps * largest
            limits = Limits(penalty, allowed, slack, eps, settings.nonnegative)
            k, statuses[j] = descend(own, count, a, limits, active, k, work)
        if settings.refit > 0:
            k = keep_largest(support, x, k, min(np.int64(settings.refit), count))
            if settings.nonnegative:
                k = _nonnegative_refit(own, count, signals[j], a, active, k, work)
            else:
                k = least_squares(own.prepared, signals[j], a, Code(support, x), k, work.factor)
        sort_by_index(support, x, k)
        codes.counts[j] = k


@internal_reordering
def _largest(a: np.ndarray, nonnegative: bool, work: Workspace) -> float:
    """The penalty from which on all codes are zero: max |Dᵀy|, or max Dᵀy if no code may be negative."""
    if not nonnegative:
        return abs(a[argmax_abs(a, work.quarter, work.sixteenth)])
    largest = a.dtype.type(0)
    for i in range(len(a)):
        largest = max(largest, a[i])
    return largest


@internal_reordering
def _nonnegative_refit(
    own: OwnDictionary, count: int, y: np.ndarray, a: np.ndarray, active: Active, k: int, work: Workspace
) -> int:
    """Non-negative least squares on the k active atoms; returns how many have a coefficient."""
    support, x, signs = active
    for l in range(k):
        append_row(own.prepared.gram, work.factor, support, l, np.int64(support[l]), own.prepared.eps)
        signs[l] = 1
        work.goal[l] = a[support[l]]
    for i in range(len(a)):
        a[i] = -np.inf
    for l in range(k):
        a[support[l]] = work.goal[l]
    return grow(own, count, y, a, active, k, k, x.dtype.type(-1), work)
