"""The small normal equations of a batch of signals: Cholesky factors, triangular solves, products.

Everything is done for all signals of a batch at once (`batches.py`): in arrays of shape s×width, the column w
belongs to signal w of the batch. The kernels in `codes.py` and `geodesic.py` are built from these.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import internal
from manifold_dl.kernels.reduced.batches import BATCH_SIZE


class Scratch(NamedTuple):
    """Memory that `factorize` uses for one batch after another."""

    entry: np.ndarray
    top: np.ndarray
    slot: np.ndarray
    rank_deficient: np.ndarray  # 1 for the signals of the batch that are, else 0; the caller resets it


@internal
def make_scratch():
    """Memory for any batch."""
    size = BATCH_SIZE
    rank_deficient = np.empty(size, np.int64)
    for w in range(size):
        rank_deficient[w] = 0
    return Scratch(np.empty(size), np.empty(size), np.empty(size, np.int64), rank_deficient)


@internal
def free_diagonal(gram):
    """The squared norms of the atoms; empty if all are 1 up to rounding, which saves reading each."""
    k, unit = len(gram), True
    diagonal = np.empty(k)
    for i in range(k):
        diagonal[i] = gram[i, i]
        unit = unit and abs(gram[i, i] - 1.0) < 2e-15
    return diagonal[: 0 if unit else k]


@internal
def factorize(gram, diagonal, atom, mu, pivot_ratio, x, g, L, scratch):
    """Cholesky's factors of M = G + μI = L Δ Lᵀ of every signal: L below its unit diagonal, and on it Δ⁻¹.

    Without square roots, which are slow. If there is an x, g becomes g − M x on the way. Returns whether any
    signal is rank-deficient; `scratch.rank_deficient` marks them.
    """
    entry, top, slot, rank_deficient = scratch
    G, k, (s, width) = gram.ravel(), len(gram), atom.shape
    any_rank_deficient, deduct, unit = False, len(x) > 0, len(diagonal) == 0
    for w in range(width):
        top[w] = 1.0 + mu if unit else 0.0
    for a in range(s):
        row = a * (a + 1) // 2
        for w in range(width):
            slot[w] = k * atom[a, w]
        for b in range(a):
            other = b * (b + 1) // 2
            for w in range(width):
                entry[w] = G[slot[w] + atom[b, w]]
            if deduct:
                for w in range(width):
                    g[a, w] -= entry[w] * x[b, w]
                    g[b, w] -= entry[w] * x[a, w]
            for l in range(b):
                for w in range(width):
                    entry[w] -= L[row + l, w] * L[other + l, w]
            for w in range(width):
                L[row + b, w] = entry[w]  # L Δ, until the row is complete
        if unit:
            for w in range(width):
                entry[w] = 1.0 + mu
        else:
            for w in range(width):
                entry[w] = diagonal[atom[a, w]] + mu
                top[w] = max(top[w], entry[w])
        if deduct:
            for w in range(width):
                g[a, w] -= entry[w] * x[a, w]
        for l in range(a):
            pivot = l * (l + 1) // 2 + l
            for w in range(width):
                scaled = L[row + l, w] * L[pivot, w]
                entry[w] -= L[row + l, w] * scaled
                L[row + l, w] = scaled
        any_rank_deficient |= mark_small_pivots(entry, top, pivot_ratio, width, rank_deficient)
        for w in range(width):
            L[row + a, w] = 1.0 / entry[w]
    return any_rank_deficient


@internal
def mark_small_pivots(entry, top, pivot_ratio, width, rank_deficient):
    """Replace pivots that are too small by 1, and mark their signals; whether there are any."""
    n_rank_deficient = 0
    for w in range(width):
        n_rank_deficient += 0 if entry[w] > pivot_ratio * top[w] else 1
    if n_rank_deficient:
        for w in range(width):
            if not entry[w] > pivot_ratio * top[w]:
                entry[w] = 1.0
                rank_deficient[w] = 1
    return n_rank_deficient > 0


@internal
def solve_lower(L, g):
    """g becomes L⁻¹g, signal by signal."""
    s, width = len(g), L.shape[1]
    for a in range(1, s):
        row = a * (a + 1) // 2
        for l in range(a):
            for w in range(width):
                g[a, w] -= L[row + l, w] * g[l, w]


@internal
def solve_upper(L, g):
    """g becomes L⁻ᵀΔ⁻¹g, signal by signal."""
    s, width = len(g), L.shape[1]
    for a in range(s - 1, -1, -1):
        for w in range(width):
            g[a, w] *= L[a * (a + 1) // 2 + a, w]
        for l in range(a + 1, s):
            below = l * (l + 1) // 2 + a
            for w in range(width):
                g[a, w] -= L[below, w] * g[l, w]


# A view of one row costs two atomic additions, for its reference count: for short rows as much as the work on
# it. So these functions take the whole array, and the number of the row.


@internal
def dots(rows, atom, w, vectors, j, g):
    """g[a, w] becomes the inner product of vector j with row atom[a, w], four rows at a time."""
    m, zero = vectors.shape[1], vectors.dtype.type(0)
    s, a = len(atom), 0
    while a + 4 <= s:
        i0, i1, i2, i3 = atom[a, w], atom[a + 1, w], atom[a + 2, w], atom[a + 3, w]
        t0, t1, t2, t3 = zero, zero, zero, zero
        for p in range(m):
            t0 += rows[i0, p] * vectors[j, p]
            t1 += rows[i1, p] * vectors[j, p]
            t2 += rows[i2, p] * vectors[j, p]
            t3 += rows[i3, p] * vectors[j, p]
        g[a, w], g[a + 1, w], g[a + 2, w], g[a + 3, w] = t0, t1, t2, t3
        a += 4
    while a < s:
        i, total = atom[a, w], zero
        for p in range(m):
            total += rows[i, p] * vectors[j, p]
        g[a, w] = total
        a += 1


@internal
def subtract(rows, atom, w, x, begin, vectors, j):
    """Take Σ x_a row_a away from vector j, four rows at a time; x_a stands at x[begin + a]."""
    m = vectors.shape[1]
    s, a = len(atom), 0
    while a + 4 <= s:
        i0, i1, i2, i3 = atom[a, w], atom[a + 1, w], atom[a + 2, w], atom[a + 3, w]
        x0, x1, x2, x3 = x[begin + a], x[begin + a + 1], x[begin + a + 2], x[begin + a + 3]
        for p in range(m):
            vectors[j, p] -= x0 * rows[i0, p] + x1 * rows[i1, p] + x2 * rows[i2, p] + x3 * rows[i3, p]
        a += 4
    while a < s:
        i, xa = atom[a, w], x[begin + a]
        for p in range(m):
            vectors[j, p] -= xa * rows[i, p]
        a += 1
