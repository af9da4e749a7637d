"""Gram matrices of single signals, compiled: each is formed from the atoms of its own support.

Where signals share the Gram matrix of all atoms, `cholesky.factorize` reads from that. Two kinds of signals
have one of their own: those whose entries have weights w, A diag(w) Aᵀ, and those of a dictionary so large
that their supports touch few of its pairs (`problem/pairs.py`). It is formed in O(m s²) and in double
precision, whatever the data, from rows √w∘A that are gathered first: then they are in the cache, and all
their products are formed from there, sixteen at a time. It is written to the packed lower triangle in which
it is then factorized, signal w of a batch beside the others (`batches.py`). `weighted.py` and
`weighted_geodesic.py` are built from these; an empty array of weights says that there are none.

Skipping missing entries does not pay: with half of them missing at random, gathering the others costs more
than the arithmetic that it saves.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import internal
from manifold_dl.kernels.reduced.cholesky import mark_small_pivots


class Gathered(NamedTuple):
    """Memory for one signal: all that its small system is formed from."""

    roots: np.ndarray  # √w, m
    signal: np.ndarray  # 1×m: √w∘y
    rows: np.ndarray  # s×m: √w∘A
    tile: np.ndarray  # 4×4


@internal
def make_gathered(largest, m):
    """Memory for any signal with a support of at most `largest` atoms."""
    return Gathered(np.empty(m), np.empty((1, m)), np.empty((largest, m)), np.empty((4, 4)))


@internal
def gather_signal(signals, weights, j, gathered):
    """√w and √w∘y of signal j."""
    roots, y = gathered.roots, gathered.signal
    if len(weights):
        for p in range(signals.shape[1]):
            roots[p] = np.sqrt(np.float64(weights[j, p]))
            y[0, p] = roots[p] * signals[j, p]
    else:
        for p in range(signals.shape[1]):
            y[0, p] = signals[j, p]


@internal
def gather_rows(atoms, atom, w, has_weights, roots, rows):
    """rows[a] becomes √w∘atom[a, w], for every atom a of the support of signal w of the batch."""
    for a in range(len(atom)):
        i = atom[a, w]
        if has_weights:
            for p in range(atoms.shape[1]):
                rows[a, p] = roots[p] * atoms[i, p]
        else:
            for p in range(atoms.shape[1]):
                rows[a, p] = atoms[i, p]


@internal
def lower_products(rows, s, w, tile, G):
    """The packed lower triangle G[a(a + 1)/2 + b, w] of all products of s rows with each other."""
    whole = s - s % 4
    for a in range(0, whole, 4):
        for b in range(0, a + 1, 4):
            multiply_tile(rows, a, rows, b, tile)
            for i in range(4):
                first = (a + i) * (a + i + 1) // 2
                for l in range(min(4, a + i + 1 - b)):
                    G[first + b + l, w] = tile[i, l]
    for a in range(whole, s):
        multiply_row(rows, a, rows, np.int64(a + 1), w, G, np.int64(a * (a + 1) // 2))


@internal
def all_products(left, right, s, w, tile, G):
    """G[a·s + b, w] becomes the product of row a on the left with row b on the right, a and b < s."""
    whole = s - s % 4
    for a in range(0, whole, 4):
        for b in range(0, whole, 4):
            multiply_tile(left, a, right, b, tile)
            for i in range(4):
                for l in range(4):
                    G[(a + i) * s + b + l, w] = tile[i, l]
        for b in range(whole, s):
            for i in range(4):
                total = 0.0
                for p in range(left.shape[1]):
                    total += left[a + i, p] * right[b, p]
                G[(a + i) * s + b, w] = total
    for a in range(whole, s):
        multiply_row(left, a, right, np.int64(s), w, G, np.int64(a * s))


@internal
def multiply_tile(left, a, right, b, tile):
    """The sixteen products of rows a to a + 3 on the left with rows b to b + 3 on the right.

    Eight numbers are loaded for sixteen multiplications; one row with four takes five for four, and at m =
    768 twice the time.
    """
    t00, t01, t02, t03, t10, t11, t12, t13 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    t20, t21, t22, t23, t30, t31, t32, t33 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(left.shape[1]):
        x0, x1, x2, x3 = left[a, p], left[a + 1, p], left[a + 2, p], left[a + 3, p]
        y0, y1, y2, y3 = right[b, p], right[b + 1, p], right[b + 2, p], right[b + 3, p]
        t00, t01, t02, t03 = t00 + x0 * y0, t01 + x0 * y1, t02 + x0 * y2, t03 + x0 * y3
        t10, t11, t12, t13 = t10 + x1 * y0, t11 + x1 * y1, t12 + x1 * y2, t13 + x1 * y3
        t20, t21, t22, t23 = t20 + x2 * y0, t21 + x2 * y1, t22 + x2 * y2, t23 + x2 * y3
        t30, t31, t32, t33 = t30 + x3 * y0, t31 + x3 * y1, t32 + x3 * y2, t33 + x3 * y3
    tile[0, 0], tile[0, 1], tile[0, 2], tile[0, 3] = t00, t01, t02, t03
    tile[1, 0], tile[1, 1], tile[1, 2], tile[1, 3] = t10, t11, t12, t13
    tile[2, 0], tile[2, 1], tile[2, 2], tile[2, 3] = t20, t21, t22, t23
    tile[3, 0], tile[3, 1], tile[3, 2], tile[3, 3] = t30, t31, t32, t33


@internal
def multiply_row(left, a, right, count, w, G, at):
    """G[at + b, w] becomes the product of row a on the left with row b on the right, b < count."""
    m, b = left.shape[1], 0
    while b + 4 <= count:
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for p in range(m):
            t0 += left[a, p] * right[b, p]
            t1 += left[a, p] * right[b + 1, p]
            t2 += left[a, p] * right[b + 2, p]
            t3 += left[a, p] * right[b + 3, p]
        G[at + b, w], G[at + b + 1, w], G[at + b + 2, w], G[at + b + 3, w] = t0, t1, t2, t3
        b += 4
    while b < count:
        total = 0.0
        for p in range(m):
            total += left[a, p] * right[b, p]
        G[at + b, w] = total
        b += 1


@internal
def pad(L, g, n):
    """Places of a batch without a signal: the identity, and no right-hand side."""
    s, width = g.shape
    for a in range(s):
        row = a * (a + 1) // 2
        for w in range(n, width):
            g[a, w] = 0.0
            for b in range(a):
                L[row + b, w] = 0.0
            L[row + a, w] = 1.0


@internal
def factorize_in_place(L, s, mu, pivot_ratio, scratch):
    """Factors of M = G + μI as in `cholesky.factorize`, where L holds the lower triangles of G.

    A signal with no observed entry has G = 0; without a ridge its codes become zero, and it is not counted as
    rank-deficient.
    """
    entry, top, _, rank_deficient = scratch
    width, any_rank_deficient = L.shape[1], False
    for w in range(width):
        top[w] = 0.0
    for a in range(s):  # the largest diagonal entry is zero if nothing was observed
        for w in range(width):
            top[w] = max(top[w], L[a * (a + 1) // 2 + a, w] + mu)
    for w in range(width):
        if top[w] == 0.0:
            for a in range(s):
                L[a * (a + 1) // 2 + a, w] = 1.0
            top[w] = 1.0
    for a in range(s):
        row = a * (a + 1) // 2
        for b in range(a):
            other = b * (b + 1) // 2
            for l in range(b):
                for w in range(width):
                    L[row + b, w] -= L[row + l, w] * L[other + l, w]
        for w in range(width):
            entry[w] = L[row + a, w] + mu
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
