"""Codes that are not negative, compiled: non-negative OMP, and non-negative least squares on a support.

`grow` adds the atom with the largest positive correlation and solves for coefficients ≥ 0 on the support, one
atom after the other: the method of Lawson and Hanson, ended at the sparsity (Bruckstein, Elad and Zibulevsky,
2008, On the uniqueness of nonnegative sparse solutions to underdetermined systems of equations). Without an
end, and with the atoms of a support as the only candidates, it is non-negative least squares there.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering, internal_reordering
from manifold_dl.kernels.coding.active_set import (
    Active,
    Limits,
    Workspace,
    add,
    clip,
    empty_workspace,
    settle,
)
from manifold_dl.kernels.coding.common import (
    ROUNDINGS,
    Code,
    argmax_abs,
    contains,
    product,
    residual_correlations,
    sort_by_index,
    subtract_fit,
)
from manifold_dl.kernels.coding.dictionary import ROWS, correlate, empty_products
from manifold_dl.kernels.coding.factor import are_accurate, refine
from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary, PursuitSettings, empty_codes
from manifold_dl.kernels.coding.observed import OwnDictionary, begin_signal, own_dictionary, require_row


def nonnegative_omp(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """Non-negative OMP of each row of `signals`."""
    return weighted_nonnegative_omp(dictionary, signals, signals[:0], settings)


def weighted_nonnegative_omp(
    dictionary: PreparedDictionary, signals: np.ndarray, roots: np.ndarray, settings: PursuitSettings
) -> Codes:
    """Non-negative OMP of each row of `signals` = √w∘y with `roots` = √w, which may be empty."""
    codes = empty_codes(signals, settings.sparsity)
    _nonnegative_omp(dictionary, signals, roots, settings.tol, codes)
    return codes


@compiled_reordering
def _nonnegative_omp(
    dictionary: PreparedDictionary, signals: np.ndarray, roots: np.ndarray, tol: float, codes: Codes
) -> None:
    tiles, gram = dictionary.tiles, dictionary.gram
    n, sparsity = codes.values.shape
    weighted = len(roots) > 0
    own, products, norms = (
        own_dictionary(dictionary, weighted, gram.dtype.type(0)),
        empty_products(dictionary),
        empty_products(dictionary),
    )
    squared_tiles = tiles * tiles
    work, signs = empty_workspace(sparsity, gram, products), np.empty(sparsity, gram.dtype)
    for j in range(n):
        if j % ROWS == 0 and weighted:
            some = roots[j : j + ROWS]
            correlate(tiles, some * signals[j : j + ROWS], products)
            correlate(squared_tiles, some * some, norms)
        elif j % ROWS == 0:
            correlate(tiles, signals[j : j + ROWS], products)
        a, support, x = products.correlations[j % ROWS], codes.indices[j], codes.values[j]
        count = np.int64(signals.shape[1])
        if weighted:
            count = begin_signal(own, roots[j])
            _normalize(norms.correlations[j % ROWS], own.inverse_norms, a)
        active = Active(support, x, signs)
        limit = min(np.int64(sparsity), count)
        k = grow(own, count, signals[j], a, active, np.int64(0), limit, tol, work)
        if weighted:
            for l in range(k):
                x[l] *= own.inverse_norms[support[l]]
        sort_by_index(support, x, k)
        codes.counts[j] = k


@compiled_reordering
def grow(
    own: OwnDictionary,
    count: int,
    y: np.ndarray,
    a: np.ndarray,
    active: Active,
    k: int,
    limit: int,
    tol: float,
    work: Workspace,
) -> int:
    """Add atoms to the k active ones until there are `limit`, or ‖y − Dx‖² ≤ tol; returns their number.

    a = Dᵀy; where it is −∞ the atom is no candidate. Those that depend on the others become none.
    """
    gram, eps = own.prepared.gram, own.prepared.eps
    support, x, _ = active
    code, h, residual = Code(support, x), work.h, np.empty_like(y)
    limits = Limits(x.dtype.type(0), 0.0, 0.0, eps, True)
    k, _ = settle(gram, a, limits, active, k, np.int64(-1), work)
    largest = x.dtype.type(0)
    for _ in range(64 + 16 * limit):  # the method ends by itself; rounding must not keep it going
        if k == limit:
            break
        if tol >= 0:
            subtract_fit(own.prepared.atoms, y, code, k, residual)
            if product(residual, residual) <= tol:
                break
        residual_correlations(gram, a, support, x, k, h)
        clip(h)
        entered = argmax_abs(h, work.folded)
        largest = max(largest, h[entered])
        if not h[entered] > ROUNDINGS * eps * largest or contains(support, k, entered):
            break
        if len(own.known) > 0:
            require_row(own, count, entered)
        before = k
        k = add(gram, work.factor, active, k, entered, x.dtype.type(1), eps)
        if k == before:
            a[entered] = -np.inf  # atom depends on the support: the next one
            continue
        x[before] = 0
        k, is_last = settle(gram, a, limits, active, k, entered, work)
        if is_last:
            break
    if k > 0 and not are_accurate(_growth(a, active, k), work.factor.spread[k - 1], eps):
        refine(own.prepared.atoms, y, code, k, work.factor.L, work.factor.scratch)
        for l in range(k):
            x[l] = max(x[l], 0)
    return k


@internal_reordering
def _growth(a: np.ndarray, active: Active, k: int) -> float:
    """max |x| / max |a| of the active atoms."""
    before, after = a.dtype.type(0), a.dtype.type(0)
    for l in range(k):
        before, after = max(before, abs(a[active.support[l]])), max(after, abs(active.x[l]))
    return after / before


@internal_reordering
def _normalize(squares: np.ndarray, inverse_norms: np.ndarray, a: np.ndarray) -> None:
    """The inverse norms of the atoms on the observed entries, and the products with atoms of norm 1."""
    for i in range(len(a)):
        inverse_norms[i] = 1 / np.sqrt(squares[i]) if squares[i] > 0 else 0
        a[i] *= inverse_norms[i]
