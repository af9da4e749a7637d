"""Signals side by side: the small normal equations of many signals, solved in step.

One Cholesky factorisation of five atoms is a chain of products and divisions that wait for each other. LANES
of them at once, each in a lane of the vector registers, take hardly longer than one. So the signals of a
block are dealt into packs by the size of their supports, once, and every kernel goes through it pack by pack.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled

# Signals solved side by side. Measured: half as many take half as long again, because the compiler then
# unrolls the loops over them; twice as many gain nothing.
LANES = 64
FEWEST = 8  # lanes of a pack that is not full come in so many: a vector register


class Packs(NamedTuple):
    """A support with up to LANES signals of one size side by side.

    Entry a of the signal in lane w of pack p, which is `width` lanes wide, stands at place[p] + a·width + w;
    entry (a, b), b ≤ a, of its Cholesky factor at factor_place[p] + (a(a + 1)/2 + b)·width + w. Lanes left
    over repeat the first one.
    """

    signals: np.ndarray  # those that use any atom, by size of their support
    first: np.ndarray  # where in `signals` each pack begins
    place: np.ndarray
    factor_place: np.ndarray
    indices: np.ndarray
    ascending: bool  # whether all signals name their atoms in that order: half a Gram matrix serves them

    @property
    def widths(self):
        """The lanes of every pack."""
        return np.minimum(-(-np.diff(self.first) // FEWEST) * FEWEST, LANES)


def arrange(indptr, indices):
    """Deal the signals into packs; it depends on the support alone."""
    largest = int(np.diff(indptr).max(initial=0))
    signals = np.empty(len(indptr) - 1, dtype=np.int32)
    places = np.zeros((3, len(signals) // LANES + largest + 1), dtype=np.int64)
    n_packs, n_used = _arrange(indptr, largest, signals, *places)
    first, place, factor_place = places[:, : n_packs + 1]
    packed = np.empty(place[-1], dtype=np.int32)
    ascending = _deal(indptr, indices, signals, first, place, packed)
    return Packs(signals[:n_used], first, place, factor_place, packed, ascending)


@compiled
def _arrange(indptr, largest, signals, first, place, factor_place):
    rank, pack = 0, 0
    for s in range(1, largest + 1):
        begin = rank
        for j in range(len(indptr) - 1):
            if indptr[j + 1] - indptr[j] == s:
                signals[rank] = j
                rank += 1
        for start in range(begin, rank, LANES):
            first[pack] = start
            pack += 1
            width = width_of(rank - start)
            place[pack] = place[pack - 1] + s * width
            factor_place[pack] = factor_place[pack - 1] + s * (s + 1) // 2 * width
    first[pack] = rank
    return pack, rank


@compiled
def width_of(n):
    """The lanes of a pack for the next n signals."""
    return min((n + FEWEST - 1) // FEWEST * FEWEST, LANES)


@compiled
def longest(places):
    """The longest of the stretches that begin at these places: room for any of them."""
    length = 0
    for pack in range(len(places) - 1):
        length = max(length, places[pack + 1] - places[pack])
    return length


@compiled
def largest_support(first, place):
    """The most atoms that a signal uses: packs are dealt by size, so it is one of the last."""
    last = len(first) - 2
    return (place[last + 1] - place[last]) // width_of(first[last + 1] - first[last]) if last >= 0 else 0


@compiled
def _deal(indptr, indices, signals, first, place, packed):
    ascending = True
    for pack in range(len(first) - 1):
        width = width_of(first[pack + 1] - first[pack])
        s = (place[pack + 1] - place[pack]) // width
        for w in range(width):
            rank = first[pack] + w
            begin = indptr[signals[rank if rank < first[pack + 1] else first[pack]]]
            for a in range(s):
                packed[place[pack] + a * width + w] = indices[begin + a]
                ascending &= a == 0 or indices[begin + a] > indices[begin + a - 1]
    return ascending


@compiled
def diagonal_of(gram):
    """The squared norms of the atoms; nothing if all are 1 up to rounding, which spares a look at each."""
    k, unit = len(gram), True
    diagonal = np.empty(k)
    for i in range(k):
        diagonal[i] = gram[i, i]
        unit = unit and abs(gram[i, i] - 1.0) < 2e-15
    return diagonal[: 0 if unit else k]


@compiled
def factorise(gram, diagonal, atom, mu, ratio, x, g, L, entry, top, slot, broken):
    """Cholesky's factors of M = G + μI = L Δ Lᵀ in every lane: L below its unit diagonal, and on it Δ⁻¹.

    Without roots, which take their time. If there is an x, g becomes g − M x on the way. Returns whether any
    lane broke down; `broken` tells which.
    """
    G, k, (s, width) = gram.ravel(), len(gram), atom.shape
    any_broken, deduct, unit = False, len(x) > 0, len(diagonal) == 0
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
        n_broken = 0
        for w in range(width):
            n_broken += 0 if entry[w] > ratio * top[w] else 1
        if n_broken:
            any_broken = True
            for w in range(width):
                if not entry[w] > ratio * top[w]:
                    entry[w] = 1.0
                    broken[w] = True
        for w in range(width):
            L[row + a, w] = 1.0 / entry[w]
    return any_broken


@compiled
def forward(L, g):
    """g becomes L⁻¹g, lane by lane."""
    s, width = len(g), L.shape[1]
    for a in range(1, s):
        row = a * (a + 1) // 2
        for l in range(a):
            for w in range(width):
                g[a, w] -= L[row + l, w] * g[l, w]


@compiled
def backward(L, g):
    """g becomes L⁻ᵀΔ⁻¹g, lane by lane."""
    s, width = len(g), L.shape[1]
    for a in range(s - 1, -1, -1):
        for w in range(width):
            g[a, w] *= L[a * (a + 1) // 2 + a, w]
        for l in range(a + 1, s):
            below = l * (l + 1) // 2 + a
            for w in range(width):
                g[a, w] -= L[below, w] * g[l, w]


# A view of one row costs two atomic additions, to count who looks at it: for short rows as much as the work
# on it. So these take the whole array, and the number of the row.


@compiled
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


@compiled
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
