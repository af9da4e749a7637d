"""The functions of `reference.py`, compiled with Numba, with nothing allocated per signal.

Every signal solves its own small normal equations by Cholesky, with the Gram matrix of the atoms
computed once. Signals whose pivots break down are handed to the reference kernel, which solves them by
singular values. The loops release the interpreter lock, so blocks of signals run in threads.
"""

import sys
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.core import event

from manifold_dl.kernels import reference
from manifold_dl.kernels.reference import PIVOT_RATIO, Fit, Products, take

# Sums may be reordered so that they vectorise, but NaN and infinity keep their meaning.
_compile = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})


def fit(signals, indptr, indices, atoms, gram, mu, keep_factors=True):
    largest, n_factors = _extent(indptr)
    codes = np.zeros(len(indices), dtype=signals.dtype)
    factors = np.empty(n_factors if keep_factors else 0, dtype=signals.dtype)
    gradient = np.zeros_like(atoms)
    bad = np.zeros(len(signals), dtype=np.bool_)
    # The ratio is an argument, because Numba's cache on disk would not notice a change of the constant.
    value = _fit(
        signals, indptr, indices, atoms, gram, float(mu), PIVOT_RATIO, keep_factors, largest,
        codes, factors, gradient, bad,
    )  # fmt: skip
    deficient, inverses = np.flatnonzero(bad), np.zeros((0, 0, 0))
    if len(deficient):
        sub_indptr, sub_indices, places = take(indptr, indices, deficient)
        rest = reference.fit(signals[deficient], sub_indptr, sub_indices, atoms, gram, mu)
        value += rest.value
        gradient += rest.gradient
        codes[places] = rest.codes
        inverses = reference.padded_inverses(atoms, sub_indptr, sub_indices, mu)
    return Fit(value, gradient, codes, factors if keep_factors else None, deficient, inverses)


def fit_fixed(signals, indptr, indices, atoms, codes):
    gradient = np.zeros_like(atoms)
    value = _fit_fixed(signals, indptr, indices, atoms, codes, gradient)
    return value, gradient


def accumulate(rows, indptr, indices, codes, atoms):
    _accumulate(rows, indptr, indices, codes, atoms)


def hessian(signals, indptr, indices, atoms, cross, mu, fitted, direction):
    product = np.zeros_like(atoms)
    largest, _ = _extent(indptr)
    _hessian(
        signals, indptr, indices, atoms, direction, cross, fitted.codes, fitted.factors,
        fitted.deficient, fitted.inverses, largest, product,
    )  # fmt: skip
    return product


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
    largest, _ = _extent(indptr)
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


@_compile
def _fit(signals, indptr, indices, atoms, gram, mu, ratio, keep, largest, codes, factors, gradient, bad):
    m = signals.shape[1]
    L = np.empty((largest, largest))
    x = np.empty(largest)
    r = np.empty(m, dtype=signals.dtype)
    value, place = 0.0, 0
    for j in range(signals.shape[0]):
        begin = indptr[j]
        s = indptr[j + 1] - begin
        for a in range(s):
            i = indices[begin + a]
            total = signals.dtype.type(0)
            for p in range(m):
                total += atoms[i, p] * signals[j, p]
            x[a] = total
        ok = _cholesky(gram, indices, begin, s, mu, ratio, L)
        if keep:
            for a in range(s):
                for b in range(a + 1):
                    factors[place] = L[a, b]
                    place += 1
        if not ok:
            bad[j] = True
            continue
        _forward(L, s, x)
        _backward(L, s, x)
        energy = 0.0
        for p in range(m):
            r[p] = signals[j, p]
        for a in range(s):
            codes[begin + a] = x[a]
            energy += x[a] * x[a]
            i, xa = indices[begin + a], codes[begin + a]
            for p in range(m):
                r[p] -= xa * atoms[i, p]
        value += mu * energy + _add_gradient(r, indices, codes, begin, s, gradient)
    return value


@_compile
def _fit_fixed(signals, indptr, indices, atoms, codes, gradient):
    m = signals.shape[1]
    r = np.empty(m, dtype=signals.dtype)
    value = 0.0
    for j in range(signals.shape[0]):
        _residual(signals, j, indptr, indices, atoms, codes, r)
        value += _add_gradient(r, indices, codes, indptr[j], indptr[j + 1] - indptr[j], gradient)
    return value


@_compile
def _accumulate(rows, indptr, indices, codes, atoms):
    for j in range(rows.shape[0]):
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], codes[a]
            for p in range(rows.shape[1]):
                rows[j, p] += x * atoms[i, p]


@_compile
def _hessian(
    signals, indptr, indices, atoms, direction, cross, codes, factors, deficient, inverses, largest, product
):
    m = signals.shape[1]
    r = np.empty(m, dtype=signals.dtype)
    v = np.empty(m, dtype=signals.dtype)
    L = np.empty((largest, largest))
    g, dx = np.empty(largest), np.empty(largest)
    place, next_deficient = 0, 0
    for j in range(signals.shape[0]):
        begin = indptr[j]
        s = indptr[j + 1] - begin
        _residual(signals, j, indptr, indices, atoms, codes, r)
        _combine(indices, begin, s, codes, direction, v)  # Eᵀx
        for a in range(s):
            i = indices[begin + a]
            total = signals.dtype.type(0)
            for p in range(m):
                total += direction[i, p] * r[p]
            g[a] = total
            for b in range(s):
                g[a] -= cross[i, indices[begin + b]] * codes[begin + b]  # A Eᵀx
        if next_deficient < len(deficient) and deficient[next_deficient] == j:
            for a in range(s):
                dx[a] = 0.0
                for b in range(s):
                    dx[a] += inverses[next_deficient, a, b] * g[b]
            next_deficient += 1
            place += s * (s + 1) // 2
        else:
            for a in range(s):
                for b in range(a + 1):
                    L[a, b] = factors[place]
                    place += 1
                dx[a] = g[a]
            _forward(L, s, dx)
            _backward(L, s, dx)
        for a in range(s):
            i, da = indices[begin + a], signals.dtype.type(dx[a])
            for p in range(m):
                v[p] += da * atoms[i, p]  # v = −dr
        for a in range(s):
            i = indices[begin + a]
            xa, da = 2 * codes[begin + a], signals.dtype.type(2 * dx[a])
            for p in range(m):
                product[i, p] += xa * v[p] - da * r[p]


@_compile
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


@_compile
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


@_compile
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


@_compile
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


# The small pieces: inlined by the compiler into the kernels above. The diagonal of L holds 1/L_aa.


@_compile
def _extent(indptr):
    """The size of the largest support, and the number of entries in all Cholesky factors."""
    largest, n_factors = 0, 0
    for j in range(len(indptr) - 1):
        s = indptr[j + 1] - indptr[j]
        largest = max(largest, s)
        n_factors += s * (s + 1) // 2
    return largest, n_factors


@_compile
def _cholesky(gram, indices, begin, s, mu, ratio, L):
    top = 0.0
    ok = True
    for a in range(s):
        i = indices[begin + a]
        for b in range(a):
            entry = gram[i, indices[begin + b]]
            for l in range(b):
                entry -= L[a, l] * L[b, l]
            L[a, b] = entry * L[b, b]
        pivot = gram[i, i] + mu
        top = max(top, pivot)
        for l in range(a):
            pivot -= L[a, l] * L[a, l]
        if not pivot > ratio * top:
            ok = False
            pivot = top
        L[a, a] = 1.0 / np.sqrt(pivot) if pivot > 0 else 1.0
    return ok


@_compile
def _forward(L, s, x):
    for a in range(s):
        total = x[a]
        for l in range(a):
            total -= L[a, l] * x[l]
        x[a] = total * L[a, a]


@_compile
def _backward(L, s, x):
    for a in range(s - 1, -1, -1):
        total = x[a]
        for l in range(a + 1, s):
            total -= L[l, a] * x[l]
        x[a] = total * L[a, a]


@_compile
def _residual(signals, j, indptr, indices, atoms, codes, r):
    for p in range(len(r)):
        r[p] = signals[j, p]
    for a in range(indptr[j], indptr[j + 1]):
        i, x = indices[a], codes[a]
        for p in range(len(r)):
            r[p] -= x * atoms[i, p]


@_compile
def _combine(indices, begin, s, codes, atoms, v):
    v[:] = 0
    for a in range(begin, begin + s):
        i, x = indices[a], codes[a]
        for p in range(len(v)):
            v[p] += x * atoms[i, p]


@_compile
def _add_gradient(r, indices, codes, begin, s, gradient):
    total = 0.0
    for p in range(len(r)):
        total += r[p] * r[p]
    for a in range(begin, begin + s):
        i, x = indices[a], 2 * codes[a]
        for p in range(len(r)):
            gradient[i, p] -= x * r[p]
    return total


class _SayOnce(event.Listener):
    """The first compilation takes seconds: say so, once. Later runs read the kernels from disk."""

    said = False

    def on_start(self, happening):
        function = happening.data["dispatcher"].py_func
        if not self.said and function.__module__.startswith("manifold_dl."):
            self.said = True
            print("manifold_dl: compiling kernels (once; they are kept on disk) ...", file=sys.stderr)

    def on_end(self, happening):
        pass


event.register("numba:compile", _SayOnce())
