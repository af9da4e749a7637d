"""Gram matrices of signals whose entries have weights, compiled: every signal has one of its own.

Without weights one Gram matrix of all atoms serves every signal, and `cholesky.factorize` reads from it. With
weights w the matrix A diag(w) Aᵀ is formed for every signal from the atoms of its support, O(m s²), in double
precision whatever the data. It is written to the packed lower triangle in which it is then factorized, lane w
of a batch beside the others (`batches.py`). `weighted.py` and `weighted_geodesic.py` are built from these.

Skipping missing entries does not pay: with half of them missing at random, gathering the others costs more
than the arithmetic that it saves.
"""

from manifold_dl.kernels.backend import internal
from manifold_dl.kernels.reduced.cholesky import mark_small_pivots


@internal
def weigh(rows, atom, w, weights, j, weighted):
    """weighted[a] becomes w_j ∘ row atom[a, w], for every atom a of the support of signal j."""
    for a in range(len(atom)):
        i = atom[a, w]
        for p in range(rows.shape[1]):
            weighted[a, p] = weights[j, p] * rows[i, p]


@internal
def weighted_dots(weighted, count, vectors, j, g, w):
    """g[a, w] becomes the inner product of vector j with weighted[a], a < count, four at a time."""
    m, a = weighted.shape[1], 0
    while a + 4 <= count:
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for p in range(m):
            t0 += weighted[a, p] * vectors[j, p]
            t1 += weighted[a + 1, p] * vectors[j, p]
            t2 += weighted[a + 2, p] * vectors[j, p]
            t3 += weighted[a + 3, p] * vectors[j, p]
        g[a, w], g[a + 1, w], g[a + 2, w], g[a + 3, w] = t0, t1, t2, t3
        a += 4
    while a < count:
        total = 0.0
        for p in range(m):
            total += weighted[a, p] * vectors[j, p]
        g[a, w] = total
        a += 1


@internal
def weighted_row(weighted, a, rows, atom, count, w, G, at):
    """G[at + b, w] becomes the product of weighted[a] with row atom[b, w], b < count, four at a time."""
    m, b = weighted.shape[1], 0
    while b + 4 <= count:
        i0, i1, i2, i3 = atom[b, w], atom[b + 1, w], atom[b + 2, w], atom[b + 3, w]
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for p in range(m):
            t0 += weighted[a, p] * rows[i0, p]
            t1 += weighted[a, p] * rows[i1, p]
            t2 += weighted[a, p] * rows[i2, p]
            t3 += weighted[a, p] * rows[i3, p]
        G[at + b, w], G[at + b + 1, w], G[at + b + 2, w], G[at + b + 3, w] = t0, t1, t2, t3
        b += 4
    while b < count:
        i, total = atom[b, w], 0.0
        for p in range(m):
            total += weighted[a, p] * rows[i, p]
        G[at + b, w] = total
        b += 1


@internal
def weighted_gram(weighted, rows, atom, w, G):
    """The packed lower triangle of A diag(w) Aᵀ, from weighted rows and the rows themselves."""
    for a in range(len(atom)):
        weighted_row(weighted, a, rows, atom, a + 1, w, G, a * (a + 1) // 2)


@internal
def pad(L, g, n):
    """Lanes that no signal uses: the identity, and no right-hand side."""
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
    for a in range(s):  # the largest diagonal entry tells whether anything was observed
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
