"""The lasso of signals with weights, with codes ≥ 0 or with nearly dependent atoms, compiled.

The active-set method of `active_set.py`, which checks the rank of a support whenever an atom joins. From the
codes of an earlier dictionary it usually ends after a few moves. `lasso.py` calls it where its own method
does not apply or fails, so that nothing here is compiled before it is needed.
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
from manifold_dl.kernels.coding.dictionary import ROWS, correlate, empty_products
from manifold_dl.kernels.coding.factor import append_row, least_squares, solve
from manifold_dl.kernels.coding.interface import (
    Codes,
    LassoSettings,
    PreparedDictionary,
    StartingCodes,
    no_codes,
)
from manifold_dl.kernels.coding.nonnegative import grow
from manifold_dl.kernels.coding.observed import OwnDictionary, begin_signal, own_dictionary, require_row
from manifold_dl.kernels.coding.signs import solve as solve_signs


def checked_lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: LassoSettings,
    factors: np.ndarray,
    start: StartingCodes | None,
    codes: Codes,
) -> np.ndarray:
    """Write the codes of each row of `signals` = √w∘y with `roots` = √w, which may be empty.

    Returns OK or NOT_OPTIMAL for each of them. `factors` has a number per signal that its penalties are
    multiplied by.
    """
    statuses = np.empty(len(signals), np.int8)
    start = no_codes(signals) if start is None else start
    path, mu = np.asarray(settings.path, signals.dtype), signals.dtype.type(settings.mu)
    settings = settings._replace(path=path, mu=mu)
    _checked_lasso(dictionary, signals, roots, settings, factors, start, codes, statuses)
    return statuses


@compiled_reordering
def _checked_lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: LassoSettings,
    factors: np.ndarray,
    start: StartingCodes,
    codes: Codes,
    statuses: np.ndarray,
) -> None:
    tiles, eps, weighted = dictionary.tiles, dictionary.eps, len(roots) > 0
    own, products = own_dictionary(dictionary, weighted, settings.mu), empty_products(dictionary)
    work = empty_workspace(codes.values.shape[1], dictionary.gram, products)
    signs, count = np.empty_like(codes.values[0]), np.int64(signals.shape[1])
    for j in range(len(signals)):
        if j % ROWS == 0:
            some = signals[j : j + ROWS]
            correlate(tiles, roots[j : j + ROWS] * some if weighted else some, products)
        if weighted:
            count = begin_signal(own, roots[j])
        a, support, x = products.correlations[j % ROWS], codes.indices[j], codes.values[j]
        active, k, penalty = Active(support, x, signs), np.int64(0), factors[j]
        for i in range(start.indptr[j], start.indptr[j + 1]):
            if start.values[i] > 0 or not settings.nonnegative:
                p = np.int64(start.indices[i])
                require_row(own, count, p)
                k = add(own.prepared.gram, work.factor, active, k, p, start.values[i], eps)
        largest = _largest(a, settings.nonnegative, work)
        for i in range(len(settings.path)):
            penalty = settings.path[i] * (largest if settings.relative else factors[j])
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
        if settings.refit > 0 or settings.nonnegative:
            sort_by_index(support, x, k)
        else:
            _solve_in_order(own.prepared, a, penalty, active, k, work)
        codes.counts[j] = k


@internal_reordering
def _largest(a: np.ndarray, nonnegative: bool, work: Workspace) -> float:
    """The penalty from which on all codes are zero: max |Dᵀy|, or max Dᵀy if no code may be negative."""
    if not nonnegative:
        return abs(a[argmax_abs(a, work.folded)])
    largest = a.dtype.type(0)
    for i in range(len(a)):
        largest = max(largest, a[i])
    return largest


@internal_reordering
def _solve_in_order(
    own: PreparedDictionary, a: np.ndarray, penalty: float, active: Active, k: int, work: Workspace
) -> None:
    """The solution with increasing indices, so that it does not depend on the start."""
    support, x, signs = active
    L, z = work.factor.L, work.factor.scratch
    sort_by_index(support, x, k)
    for l in range(k):
        signs[l] = 1 if x[l] > 0 else -1
    if not solve_signs(own.gram, a, penalty, support, signs, np.int64(0), k, L, z, x):
        for l in range(k):
            append_row(own.gram, work.factor, support, l, np.int64(support[l]), own.eps)
            x[l] = a[support[l]] - penalty * signs[l]
        solve(L, x, k)


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
