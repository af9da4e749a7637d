"""φ along a geodesic, compiled: many signals side by side, at a cost that does not see m.

`along` reads the signals once a search and packs what it finds; every `probe` after that works on the
packs alone. The same functions as in `reference.py`.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels import reference
from manifold_dl.kernels.compiled_parts import compiled, extent
from manifold_dl.kernels.reference import PIVOT_RATIO, Products, take

# Signals solved side by side, in the lanes of the vector registers. Measured: half as many take half as long
# again, because the compiler then unrolls the loops over them; twice as many gain nothing.
LANES = 64


class Packs(NamedTuple):
    """The `Products` packed, with LANES signals whose supports have one size side by side.

    Entry a of the signal in lane w of pack p stands at place[p] + a·LANES + w. Lanes left over carry codes
    and products of zero, so that they add nothing to anything.
    """

    signals: np.ndarray  # those that use any atom, by size of their support
    first: np.ndarray  # where in `signals` each pack begins
    place: np.ndarray  # where its entries begin
    indices: np.ndarray
    codes: np.ndarray
    at_atoms: np.ndarray
    at_directions: np.ndarray
    energy: np.ndarray  # k×k: X Xᵀ


def along(signals, indptr, indices, atoms, gram, mu, codes, directions):
    largest, _ = extent(indptr)
    order = np.empty(len(signals), dtype=np.int32)
    first = np.zeros(len(signals) // LANES + largest + 1, dtype=np.int64)
    place = np.zeros_like(first)
    n_packs, n_used = _arrange(indptr, largest, order, first, place)
    length = int(place[n_packs])
    packs = Packs(
        signals=order[:n_used],
        first=first[: n_packs + 1],
        place=place[: n_packs + 1],
        indices=np.zeros(length, dtype=np.int32),
        codes=np.zeros(length, dtype=codes.dtype),
        at_atoms=np.zeros(length, dtype=codes.dtype),
        at_directions=np.zeros(length, dtype=codes.dtype),
        energy=np.zeros((len(atoms), len(atoms))),
    )
    _along(signals, indptr, indices, gram, float(mu), codes, directions, *packs)
    return packs


class Moved(NamedTuple):
    """Inner products of the atoms at t, and what it takes to move the atoms themselves."""

    gram: np.ndarray  # G = D(t)ᵀD(t)
    gram_rate: np.ndarray  # dG/dt
    cosine: np.ndarray
    sine: np.ndarray
    angles: np.ndarray
    by_hand: tuple  # the arguments of reference.move


def move(atoms, directions, angles, t, grams):
    gram, gram_rate = np.empty_like(grams[0]), np.empty_like(grams[0])
    cosine, sine = np.cos(angles * t), np.sin(angles * t)
    _move(*grams, cosine, sine, angles, gram, gram_rate)
    return Moved(gram, gram_rate, cosine, sine, angles, (atoms, directions, angles, t, grams))


def probe(signals, indptr, indices, products, mu, moved, with_slope=True):
    bad = np.zeros(len(products.signals), dtype=np.bool_)
    gain, slope, n_bad = _probe(
        *products[1:-1], float(mu), PIVOT_RATIO, moved.gram, moved.gram_rate,
        moved.cosine, moved.sine, moved.angles, with_slope, bad,
    )  # fmt: skip
    if n_bad:
        deficient, codes = _unpack(products, np.flatnonzero(bad))
        sub_indptr, sub_indices, _ = take(indptr, indices, deficient)
        start, by_hand = Products(codes, None, None, None), reference.move(*moved.by_hand)
        rest = reference.probe(signals[deficient], sub_indptr, sub_indices, start, mu, by_hand)
        gain, slope = gain + rest[0], slope + rest[1]
    return gain, slope, n_bad


def _unpack(packs, ranks):
    """Some of the signals of `packs`, with their codes one after the other."""
    inside = np.searchsorted(packs.first, ranks, side="right") - 1
    begins, ends = packs.place[inside] + ranks - packs.first[inside], packs.place[inside + 1]
    codes = [packs.codes[begin:end:LANES] for begin, end in zip(begins, ends, strict=True)]
    return packs.signals[ranks], np.concatenate(codes)


@compiled
def _arrange(indptr, largest, order, first, place):
    """Order the signals by the size of their supports, and cut that order into packs of one size."""
    rank, pack = 0, 0
    for s in range(1, largest + 1):
        lane = 0
        for j in range(len(indptr) - 1):
            if indptr[j + 1] - indptr[j] != s:
                continue
            if lane == 0:
                first[pack] = rank
                pack += 1
                place[pack] = place[pack - 1] + s * LANES
            order[rank] = j
            rank += 1
            lane = (lane + 1) % LANES
    first[pack] = rank
    return pack, rank


@compiled
def _along(
    signals, indptr, indices, gram, mu, codes, directions,
    order, first, place, packed_indices, packed_codes, at_atoms, at_directions, energy,
):  # fmt: skip
    m = signals.shape[1]
    for pack in range(len(first) - 1):
        for rank in range(first[pack], first[pack + 1]):
            j = order[rank]
            target = place[pack] + rank - first[pack]
            for a in range(indptr[j], indptr[j + 1]):
                i = indices[a]
                total = signals.dtype.type(0)
                for p in range(m):
                    total += directions[i, p] * signals[j, p]
                at_directions[target] = total
                xa = float(codes[a])
                start = mu * xa
                for b in range(indptr[j], indptr[j + 1]):
                    start += gram[i, indices[b]] * codes[b]
                    energy[i, indices[b]] += xa * codes[b]
                at_atoms[target] = start
                packed_codes[target] = codes[a]
                packed_indices[target] = i
                target += LANES
        # The supports in the lanes left over have to be sound: they are that of the first lane.
        for a in range(place[pack], place[pack + 1], LANES):
            for w in range(first[pack + 1] - first[pack], LANES):
                packed_indices[a + w] = packed_indices[a]


@compiled
def _move(DD, DU, UU, cosine, sine, angles, gram, gram_rate):
    k = len(cosine)
    for i in range(k):
        ci, si, wi = cosine[i], sine[i], angles[i]
        for b in range(k):
            cb, sb, wb = cosine[b], sine[b], angles[b]
            dd, du, ud, uu = DD[i, b], DU[i, b], DU[b, i], UU[i, b]
            at_d, at_u = ci * dd + si * ud, ci * du + si * uu  # d_i(t) against D_b and U_b
            by_d, by_u = ci * ud - si * dd, ci * uu - si * du  # and its velocity, over the angle
            gram[i, b] = at_d * cb + at_u * sb
            gram_rate[i, b] = wi * (by_d * cb + by_u * sb) + wb * (at_u * cb - at_d * sb)


@compiled
def _probe(
    first, place, indices, codes, at_atoms, at_directions,
    mu, ratio, gram, gram_rate, cosine, sine, angles, with_slope, bad,
):  # fmt: skip
    """With x = x₀ + δ: M δ = g = b(t) − M x₀, and the gain is −gᵀδ = −‖L⁻¹g‖².

    The signals of a pack go through the same Cholesky factorisation side by side.
    """
    largest = 0
    for pack in range(len(first) - 1):
        largest = max(largest, (place[pack + 1] - place[pack]) // LANES)
    L = np.empty((largest, largest, LANES))
    g, rate = np.empty((largest, LANES)), np.empty((largest, LANES))
    entry, top, broken = np.empty(LANES), np.empty(LANES), np.zeros(LANES, dtype=np.bool_)
    gains, slopes = np.zeros(LANES), np.zeros(LANES)
    G, dG, k = gram.ravel(), gram_rate.ravel(), len(gram)
    diagonal = np.diag(gram) + mu
    n_bad = 0
    for pack in range(len(first) - 1):
        begin, end = place[pack], place[pack + 1]
        s = (end - begin) // LANES
        atom, x0 = indices[begin:end].reshape(s, LANES), codes[begin:end].reshape(s, LANES)
        by, bu = at_atoms[begin:end].reshape(s, LANES), at_directions[begin:end].reshape(s, LANES)
        for w in range(LANES):
            top[w] = 0.0
        for a in range(s):
            for w in range(LANES):
                i = atom[a, w]
                g[a, w] = cosine[i] * by[a, w] + sine[i] * bu[a, w]
        any_broken = False
        for a in range(s):
            for b in range(a):
                for w in range(LANES):
                    entry[w] = G[k * atom[a, w] + atom[b, w]]
                    g[a, w] -= entry[w] * x0[b, w]
                    g[b, w] -= entry[w] * x0[a, w]
                for l in range(b):
                    for w in range(LANES):
                        entry[w] -= L[a, l, w] * L[b, l, w]
                for w in range(LANES):
                    L[a, b, w] = entry[w] * L[b, b, w]
            for w in range(LANES):
                entry[w] = diagonal[atom[a, w]]
                g[a, w] -= entry[w] * x0[a, w]
                top[w] = max(top[w], entry[w])
            for l in range(a):
                for w in range(LANES):
                    entry[w] -= L[a, l, w] * L[a, l, w]
            n_broken = 0
            for w in range(LANES):
                n_broken += 0 if entry[w] > ratio * top[w] else 1
            if n_broken:
                any_broken = True
                for w in range(LANES):
                    if not entry[w] > ratio * top[w]:
                        entry[w] = 1.0
                        broken[w] = True
            for w in range(LANES):
                L[a, a, w] = 1.0 / np.sqrt(entry[w])
        if any_broken:  # they are left to the reference: nothing here may come of them
            for w in range(LANES):
                if broken[w]:
                    broken[w] = False
                    for a in range(s):
                        g[a, w] = 0.0
                        for b in range(a):
                            L[a, b, w] = 0.0
                    if first[pack] + w < first[pack + 1]:
                        bad[first[pack] + w] = True
                        n_bad += 1
        for a in range(s):
            for l in range(a):
                for w in range(LANES):
                    g[a, w] -= L[a, l, w] * g[l, w]
            for w in range(LANES):
                g[a, w] *= L[a, a, w]
                gains[w] -= g[a, w] * g[a, w]
        if with_slope:
            for a in range(s - 1, -1, -1):
                for l in range(a + 1, s):
                    for w in range(LANES):
                        g[a, w] -= L[l, a, w] * g[l, w]
                for w in range(LANES):
                    g[a, w] *= L[a, a, w]
            for a in range(s):
                for w in range(LANES):
                    i = atom[a, w]
                    turn = angles[i] * (cosine[i] * bu[a, w] - sine[i] * by[a, w])
                    slopes[w] -= 2.0 * turn * g[a, w]
                    rate[a, w] = 2.0 * x0[a, w] + g[a, w]
                for b in range(a):  # dG has a zero diagonal: the atoms keep their norms
                    for w in range(LANES):
                        turn = dG[k * atom[a, w] + atom[b, w]]
                        slopes[w] += turn * (rate[a, w] * g[b, w] + rate[b, w] * g[a, w])
    return gains.sum(), slopes.sum(), n_bad
