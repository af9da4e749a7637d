"""Greedy pursuits with a weight for every entry, compiled: OMP and orthogonal least squares.

With s = √w the problem of one signal is the unweighted one of s∘y over the atoms s∘d_i, which are other atoms
for every signal (`observed.py`). Two products per signal are enough to begin: Dᵀ(w∘y), the correlations, and
(D∘D)ᵀw, the squared norms. The chosen atoms are made orthonormal in the space of the observed entries, and
every direction q of that basis takes one product more, v = Dᵀ(s∘q), over the observed entries alone:

    a ← a − ⟨q, r⟩ v,    and for orthogonal least squares    ‖P s∘d_i‖² ← ‖P s∘d_i‖² − v_i²,

where P removes the span of the support. Both pursuits choose the atom with the largest a_i² over a squared
norm: that of s∘d_i for OMP, that of P s∘d_i for orthogonal least squares. That is the one difference.
`common_weight.py` has shorter products for signals of which most entries have the same weight.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled_in_order, internal_in_order, internal_reordering
from manifold_dl.kernels.coding.common import ROUNDINGS, argmax_abs, contains, sort_by_index
from manifold_dl.kernels.coding.common_weight import (
    common_root,
    find_others,
    is_moderate,
    product_by_gram,
    squared_norms,
)
from manifold_dl.kernels.coding.dictionary import ROWS, multiply_tiles, take_row
from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary, PursuitSettings, empty_codes
from manifold_dl.kernels.coding.observed import add_rows, observe
from manifold_dl.kernels.coding.pursuit_memory import borrowed_dictionary
from manifold_dl.kernels.coding.weighted_basis import (
    as_direction,
    extend,
    project,
    size_of_fit,
    solve,
    squared_norm,
)
from manifold_dl.kernels.coding.weighted_memory import (
    WeightedWorkspace,
    borrowed_weighted,
    empty_weighted_workspace,
)


def weighted_omp(
    dictionary: PreparedDictionary, signals: np.ndarray, roots: np.ndarray, settings: PursuitSettings
) -> Codes:
    """OMP of each row of `signals` = √w∘y with `roots` = √w, both n×m."""
    return _encode(dictionary, signals, roots, settings, forward=False)


def weighted_forward_selection(
    dictionary: PreparedDictionary, signals: np.ndarray, roots: np.ndarray, settings: PursuitSettings
) -> Codes:
    """Orthogonal least squares of each row of `signals` = √w∘y with `roots` = √w, both n×m."""
    return _encode(dictionary, signals, roots, settings, forward=True)


def _encode(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: PursuitSettings,
    forward: bool,
) -> Codes:
    """Codes by one kernel, with memory for one thread."""
    codes = empty_codes(signals, settings.sparsity)
    work = empty_weighted_workspace(dictionary, settings.sparsity)
    _pursue(dictionary, signals, roots, settings.tol, forward, codes, work)
    return codes


@compiled_in_order
def _pursue(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    tol: float,
    forward: bool,
    codes: Codes,
    work: WeightedWorkspace,
) -> None:
    atoms, tiles, gram, eps = borrowed_dictionary(dictionary)
    squared_tiles, rows, products, norms, scaled, by_atom, basis, entries = borrowed_weighted(work)
    a, squares, remaining, gains, v, diagonal, folded = by_atom
    Q, R, z, c, support, x = basis
    places, s, residual, others, factors = entries
    n, sparsity = codes.values.shape
    floor = gram.dtype.type(ROUNDINGS * eps)
    for j in range(n):
        if j % ROWS == 0:
            _multiply_block(tiles, squared_tiles, signals, roots, j, scaled, products, norms)
        take_row(products, j % ROWS, a)
        count = observe(roots[j], places, s)
        root = common_root(s) if count == len(s) else s[0] * 0
        n_others = find_others(s, root, others) if root > 0 else count
        if root > 0:
            squared_norms(squared_tiles, diagonal, s, root, others, n_others, factors, squares)
        else:
            take_row(norms, j % ROWS, squares)
        left = _take_observed(signals, j, places, count, residual)
        _rate_first(a, squares, floor, forward, remaining, gains)
        limit, largest_ever, k = min(sparsity, count), gram.dtype.type(0), np.int64(0)
        while k < limit and (tol < 0 or left > tol):
            p = argmax_abs(gains, folded)
            largest_ever = max(largest_ever, gains[p])
            if not gains[p] > floor * floor * largest_ever or contains(support, k, p):
                break  # the residual is orthogonal to every atom, as far as this arithmetic can tell
            w = extend(atoms, p, s, places, count, Q, R, k)
            rank_deficient = not w > floor * size_of_fit(squares, support, p, R, c, k)
            if rank_deficient:
                a[p], gains[p] = 0, 0  # atom p depends on the support: the next one
                continue
            support[k], R[k, k] = p, 1 / np.sqrt(w)
            left = project(residual, count, Q, k, R[k, k], z)
            k += 1
            if k < limit and (tol < 0 or left > tol):
                if n_others + k < count and is_moderate(c, k - 1, root * R[k - 1, k - 1]):
                    as_direction(c, k - 1, R[k - 1, k - 1])
                    product_by_gram(
                        rows, tiles, support, c, k, Q[k - 1], s, root, others, n_others, factors, v
                    )
                else:
                    _product_over_entries(tiles, places, s, count, Q, k - 1, factors, v)
                _update(a, v, z[k - 1], squares, floor, forward, remaining, gains)
        solve(R, z, x, k)
        _store(codes, j, support, x, k)


@internal_in_order
def _multiply_block(
    tiles: np.ndarray,
    squared_tiles: np.ndarray,
    signals: np.ndarray,
    roots: np.ndarray,
    j: int,
    scaled: np.ndarray,
    products: np.ndarray,
    norms: np.ndarray,
) -> None:
    """Dᵀ(w∘y) of ROWS signals from j on, and (D∘D)ᵀw if one of them has no common weight."""
    n, m = min(ROWS, len(signals) - j), signals.shape[1]
    for r in range(n):
        for i in range(m):
            scaled[r, i] = roots[j + r, i] * signals[j + r, i]
    multiply_tiles(scaled[:n], tiles, products)
    needed = False
    for r in range(n):
        needed = needed or not common_root(roots[j + r]) > 0
    if needed:
        for r in range(n):
            for i in range(m):
                scaled[r, i] = roots[j + r, i] * roots[j + r, i]
        multiply_tiles(scaled[:n], squared_tiles, norms)


@internal_reordering
def _take_observed(
    signals: np.ndarray, j: int, places: np.ndarray, count: int, residual: np.ndarray
) -> float:
    """The entries of signal j that have a weight, one after the other; returns their squared norm."""
    for i in range(count):
        residual[i] = signals[j, places[i]]
    return squared_norm(residual, count)


@internal_in_order
def _rate_first(
    a: np.ndarray,
    squares: np.ndarray,
    floor: float,
    forward: bool,
    remaining: np.ndarray,
    gains: np.ndarray,
) -> None:
    """By how much each atom alone would lower the squared residual: a² over a squared norm.

    `remaining` is what later gains divide by for orthogonal least squares, or multiply with for OMP.
    """
    for i in range(len(a)):
        inverse = 1 / squares[i]
        inverse = inverse if squares[i] > 0 else 0
        gains[i] = a[i] * a[i] * inverse
        remaining[i] = squares[i] if forward else inverse


@internal_in_order
def _product_over_entries(
    tiles: np.ndarray,
    places: np.ndarray,
    s: np.ndarray,
    count: int,
    Q: np.ndarray,
    k: int,
    factors: np.ndarray,
    v: np.ndarray,
) -> None:
    """v = Dᵀ(s∘q) for row k of Q, over the observed entries."""
    for i in range(len(v)):
        v[i] = 0
    for i in range(count):
        factors[i] = s[i] * Q[k, i]
    add_rows(tiles, places, factors, count, v)


@internal_in_order
def _update(
    a: np.ndarray,
    v: np.ndarray,
    z: float,
    squares: np.ndarray,
    floor: float,
    forward: bool,
    remaining: np.ndarray,
    gains: np.ndarray,
) -> None:
    """The correlations with the new residual, and what each atom would gain now."""
    if forward:
        for i in range(len(a)):
            t, w = a[i] - z * v[i], remaining[i] - v[i] * v[i]
            a[i], remaining[i] = t, w
            gain = t * t / w
            gains[i] = gain if w > floor * squares[i] else 0
    else:
        for i in range(len(a)):
            t = a[i] - z * v[i]
            a[i] = t
            gains[i] = t * t * remaining[i]


@internal_in_order
def _store(codes: Codes, j: int, support: np.ndarray, x: np.ndarray, k: int) -> None:
    """Row j of the codes, in the order of the atoms."""
    sort_by_index(support, x, k)
    codes.counts[j] = k
    for l in range(k):
        codes.indices[j, l], codes.values[j, l] = support[l], x[l]
