"""Greedy pursuits with a weight for every entry, compiled: OMP and orthogonal least squares.

With s = √w the problem of one signal is the unweighted one of s∘y over the atoms s∘d_i, which are other atoms
for every signal (`observed.py`). Two products per signal are enough to begin: Dᵀ(w∘y), the correlations, and
(D∘D)ᵀw, the squared norms. The chosen atoms are made orthonormal in the space of the observed entries, and
every direction q of that basis takes one product more, v = Dᵀ(s∘q), over the observed entries alone:

    a ← a − ⟨q, r⟩ v,    and for orthogonal least squares    ‖P s∘d_i‖² ← ‖P s∘d_i‖² − v_i²,

where P removes the span of the support. Both pursuits choose the atom with the largest a_i² over a squared
norm: that of s∘d_i for OMP, that of P s∘d_i for orthogonal least squares. That is the one difference.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_in_order, internal_in_order, internal_reordering
from manifold_dl.kernels.coding.common import ROUNDINGS, argmax_abs, contains, sort_by_index
from manifold_dl.kernels.coding.dictionary import ROWS, copy, correlate, empty_products
from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary, PursuitSettings, empty_codes
from manifold_dl.kernels.coding.observed import Observed, empty_observed, multiply, observe


class Basis(NamedTuple):
    """An orthonormal basis of the chosen atoms on the observed entries: √w∘d = QᵀR, column by column."""

    Q: np.ndarray  # size×m: a direction in every row
    R: np.ndarray  # size×size: column k belongs to atom k, the diagonal is stored inverted
    z: np.ndarray  # the products of the directions with the signal
    c: np.ndarray  # scratch


def weighted_omp(
    dictionary: PreparedDictionary, signals: np.ndarray, roots: np.ndarray, settings: PursuitSettings
) -> Codes:
    """OMP of each row of `signals` = √w∘y with `roots` = √w, both n×m."""
    codes = empty_codes(signals, settings.sparsity)
    _pursue(dictionary, signals, roots, settings.tol, False, codes)
    return codes


def weighted_forward_selection(
    dictionary: PreparedDictionary, signals: np.ndarray, roots: np.ndarray, settings: PursuitSettings
) -> Codes:
    """Orthogonal least squares of each row of `signals` = √w∘y with `roots` = √w, both n×m."""
    codes = empty_codes(signals, settings.sparsity)
    _pursue(dictionary, signals, roots, settings.tol, True, codes)
    return codes


@compiled_in_order
def _pursue(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    tol: float,
    forward: bool,
    codes: Codes,
) -> None:
    atoms, tiles, gram, eps = dictionary
    n, sparsity = codes.values.shape
    products, norms, squared_tiles = empty_products(dictionary), empty_products(dictionary), tiles * tiles
    gains, v, remaining = np.empty_like(gram[0]), np.empty_like(gram[0]), np.empty_like(gram[0])
    seen, basis = empty_observed(atoms.shape[1], atoms.dtype), _empty_basis(sparsity, atoms)
    residual = np.empty_like(atoms[0])
    floor = gram.dtype.type(ROUNDINGS * eps)
    for j in range(n):
        if j % ROWS == 0:
            some = roots[j : j + ROWS]
            correlate(tiles, some * signals[j : j + ROWS], products)
            correlate(squared_tiles, some * some, norms)
        a, squares = products.correlations[j % ROWS], norms.correlations[j % ROWS]
        support, x = codes.indices[j], codes.values[j]
        count = observe(roots[j], seen)
        for i in range(count):
            residual[i] = signals[j, seen.places[i]]
        left, limit = _product(residual, residual, count), min(sparsity, count)
        copy(squares, remaining)
        _rate(a, remaining, squares, floor, gains)
        largest_ever, k = gram.dtype.type(0), np.int64(0)
        while k < limit and (tol < 0 or left > tol):
            p = argmax_abs(gains, products.folded)
            largest_ever = max(largest_ever, gains[p])
            if not gains[p] > floor * floor * largest_ever or contains(support, k, p):
                break  # the residual is orthogonal to every atom, as far as this arithmetic can tell
            w = _extend(atoms[p], seen, count, basis, k)
            rank_deficient = not w > floor * _size_of_fit(squares, support, p, basis, k)
            if rank_deficient:
                a[p], gains[p] = 0, 0  # atom p depends on the support: the next one
                continue
            support[k] = p
            left = _project(residual, count, basis, k, w)
            k += 1
            if k < limit:
                multiply(tiles, seen, count, basis.Q[k - 1], v)
                _update(a, remaining, v, basis.z[k - 1], forward)
                _rate(a, remaining, squares, floor, gains)
        _solve(basis.R, basis.z, x, k)
        sort_by_index(support, x, k)
        codes.counts[j] = k


@internal_in_order
def _empty_basis(size: int, atoms: np.ndarray) -> Basis:
    """Memory for supports of at most `size` atoms."""
    Q, R = np.empty((size, atoms.shape[1]), atoms.dtype), np.empty((size, size), atoms.dtype)
    return Basis(Q, R, np.empty(size, atoms.dtype), np.empty(size, atoms.dtype))


@internal_in_order
def _rate(a: np.ndarray, remaining: np.ndarray, squares: np.ndarray, floor: float, gains: np.ndarray) -> None:
    """By how much each atom would lower the squared residual, to the pursuit's knowledge: a² over a norm²."""
    for i in range(len(a)):
        gain = a[i] * a[i] / remaining[i]
        gains[i] = gain if remaining[i] > floor * squares[i] else 0


@internal_reordering
def _extend(atom: np.ndarray, seen: Observed, count: int, basis: Basis, k: int) -> float:
    """Row k of Q, not yet of norm 1, and column k of R when an atom joins; returns its squared norm.

    The projection is made twice, so that the row is orthogonal to the others in spite of rounding.
    """
    q, R = basis.Q[k], basis.R
    for i in range(count):
        q[i] = seen.roots[i] * atom[seen.places[i]]
    for l in range(k):
        R[l, k] = 0
    for _ in range(2 if k > 0 else 0):
        for l in range(k):
            other = basis.Q[l]
            t = _product(other, q, count)
            R[l, k] += t
            for i in range(count):
                q[i] -= t * other[i]
    return _product(q, q, count)


@internal_in_order
def _size_of_fit(squares: np.ndarray, support: np.ndarray, p: int, basis: Basis, k: int) -> float:
    """‖d_p‖² + Σ_l c_l²‖d_l‖², where Σ_l c_l d_l is closest to d_p: the scale of its rounding."""
    size = squares[p]
    for l in range(k):
        basis.c[l] = basis.R[l, k]
    _solve(basis.R, basis.c, basis.c, k)
    for l in range(k):
        size += basis.c[l] * basis.c[l] * squares[support[l]]
    return size


@internal_reordering
def _project(residual: np.ndarray, count: int, basis: Basis, k: int, w: float) -> float:
    """Take direction k out of the residual; returns its squared norm."""
    q = basis.Q[k]
    basis.R[k, k] = 1 / np.sqrt(w)
    for i in range(count):
        q[i] *= basis.R[k, k]
    z = _product(q, residual, count)
    basis.z[k] = z
    for i in range(count):
        residual[i] -= z * q[i]
    return _product(residual, residual, count)


@internal_in_order
def _update(a: np.ndarray, remaining: np.ndarray, v: np.ndarray, z: float, forward: bool) -> None:
    """The correlations with the new residual, and the squared distances from the span of the support."""
    if forward:
        for i in range(len(a)):
            a[i] -= z * v[i]
            remaining[i] -= v[i] * v[i]
    else:
        for i in range(len(a)):
            a[i] -= z * v[i]


@internal_in_order
def _solve(R: np.ndarray, z: np.ndarray, x: np.ndarray, k: int) -> None:
    """Rx = z, with the inverse of the diagonal stored; x may be z."""
    for i in range(k - 1, -1, -1):
        t = z[i]
        for l in range(i + 1, k):
            t -= R[i, l] * x[l]
        x[i] = t * R[i, i]


@internal_reordering
def _product(a: np.ndarray, b: np.ndarray, count: int) -> float:
    """⟨a, b⟩ of the first `count` entries."""
    total = a.dtype.type(0)
    for i in range(count):
        total += a[i] * b[i]
    return total
