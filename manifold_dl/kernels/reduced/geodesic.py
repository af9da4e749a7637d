"""φ along a geodesic, compiled: many signals side by side, at a cost that does not see m.

`along` reads the signals once a search and packs what it finds; every `probe` after that works on the
packs alone. The same functions as in `reference.py`.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled
from manifold_dl.kernels.memory import aligned
from manifold_dl.kernels.reduced import reference
from manifold_dl.kernels.reduced.batches import (
    LANES,
    Packs,
    arrange,
    backward,
    diagonal_of,
    dots,
    factorise,
    forward,
    largest_support,
    longest,
    width_of,
)
from manifold_dl.kernels.reduced.reference import PIVOT_RATIO, Way, take

# OpenBLAS computes a product of at most so many multiplications on the calling thread. Larger ones are made a
# few rows at a time: woken threads keep busy for some milliseconds, on processors that our blocks want.
BLAS_STAYS_ALONE = 2**18


def inner(atoms, others):
    if atoms.dtype != np.float64 or others.dtype != np.float64:
        atoms, others = atoms.astype(float), others.astype(float)
    products = np.empty((len(atoms), len(others)))
    _inner(atoms, others, BLAS_STAYS_ALONE, products)
    return products


def depart(atoms, direction, gradient, gram):
    k = len(atoms)
    D, U = aligned((2, *atoms.shape), np.dtype(float))
    angles, *rates = np.empty((3, k))
    DU, UD, UU = np.empty((3, k, k))
    _depart(atoms, direction, gradient, BLAS_STAYS_ALONE, D, U, angles, *rates, DU, UD, UU)
    return D, U, angles, (inner(D, D) if gram is None else gram, DU, UD, UU), rates


class Products(NamedTuple):
    """As in `reference.py`, in the order of the packs. Lanes left over carry zeros, which add nothing."""

    codes: np.ndarray
    at_atoms: np.ndarray
    at_directions: np.ndarray
    packs: Packs


def along(signals, indptr, indices, atoms, gram, mu, codes, directions, packs=None):
    packs = packs or arrange(indptr, indices)
    packed = np.empty((3, len(packs.indices)), dtype=codes.dtype)
    energy = np.zeros((len(atoms), len(atoms)))
    _along(signals, indptr, gram, float(mu), codes, directions, *packs[:-1], *packed, energy)
    return Products(*packed, packs), energy


class Moved(NamedTuple):
    """Inner products of the atoms at t: all that the compiled probe needs of them."""

    value: float
    slope: float
    way: Way
    t: float
    room: tuple  # DᵀD at t, its derivative, cosines and sines


def move(way, t, with_slope=True, room=None):
    k = len(way.angles)
    room = room or (np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k))
    value, slope = _move(*way.grams, way.energy, *way.rates, way.angles, t, with_slope, way.ascending, *room)
    return Moved(value, slope, way, t, room)


def probe(signals, indptr, indices, products, mu, moved, with_slope=True, codes=None):
    packs = products.packs
    bad = np.zeros(len(packs.signals), dtype=np.bool_)
    out = products.codes[:0] if codes is None else codes
    gain, slope, n_bad = _probe(
        indptr, *packs[:-1], *products[:3], float(mu), PIVOT_RATIO, *moved.room, moved.way.angles,
        with_slope or codes is not None, bad, out,
    )  # fmt: skip
    if n_bad:
        deficient, start = _unpack(products, np.flatnonzero(bad))
        sub_indptr, sub_indices, places = take(indptr, indices, deficient)
        start = reference.Products(start, None, None)
        by_hand = reference.Moved(0.0, 0.0, *reference.positions(moved.way, moved.t))
        found = None if codes is None else np.empty(len(places), codes.dtype)
        rest = reference.probe(
            signals[deficient], sub_indptr, sub_indices, start, mu, by_hand, with_slope, found
        )
        gain, slope = gain + rest[0], slope + rest[1]
        if codes is not None:
            codes[places] = found
    return gain, slope, n_bad


def _unpack(products, ranks):
    """Some of the signals, with their codes one after the other."""
    packs = products.packs
    inside = np.searchsorted(packs.first, ranks, side="right") - 1
    begins, ends = packs.place[inside] + ranks - packs.first[inside], packs.place[inside + 1]
    stretches = zip(begins, ends, packs.widths[inside], strict=True)
    codes = [products.codes[begin:end:width] for begin, end, width in stretches]
    return packs.signals[ranks], np.concatenate(codes)


@compiled
def _inner(atoms, others, limit, products):
    rows = max(1, limit // others.size)
    for first in range(0, len(atoms), rows):
        np.dot(atoms[first : first + rows], others.T, products[first : first + rows])


@compiled
def _depart(atoms, direction, gradient, limit, points, units, angles, at_atoms, at_directions, DU, UD, UU):
    k, m = direction.shape
    for i in range(k):
        total = 0.0
        for p in range(m):
            points[i, p] = atoms[i, p]
            units[i, p] = direction[i, p]
            total += units[i, p] * units[i, p]
        angles[i] = np.sqrt(total)
        scale = 1.0 / angles[i] if angles[i] > 0 else 0.0
        at_atom, at_direction = 0.0, 0.0
        for p in range(m):
            units[i, p] *= scale
            at_atom += gradient[i, p] * points[i, p]
            at_direction += gradient[i, p] * units[i, p]
        at_atoms[i], at_directions[i] = at_atom, at_direction
    _inner(points, units, limit, DU)
    _inner(units, units, limit, UU)
    transpose(DU, UD)


@compiled
def transpose(matrix, result):
    """A few rows at a time, so that no line of memory is fetched twice."""
    for first in range(0, len(matrix), 16):
        for b in range(len(matrix)):
            for i in range(first, min(first + 16, len(matrix))):
                result[b, i] = matrix[i, b]


@compiled
def mirror(matrix):
    """Fill the part above the diagonal from that below, a few rows at a time."""
    for first in range(0, len(matrix), 16):
        for b in range(len(matrix)):
            for i in range(max(first, b + 1), min(first + 16, len(matrix))):
                matrix[b, i] = matrix[i, b]


@compiled
def _along(
    signals, indptr, gram, mu, codes, directions,
    order, first, place, factor_place, indices, packed_codes, at_atoms, at_directions, energy,
):  # fmt: skip
    g_all, x_all = np.zeros(longest(place)), np.zeros(longest(place))
    G, k, XX = gram.ravel(), len(gram), energy.ravel()
    entry, slot = np.empty(LANES), np.empty(LANES, dtype=np.int64)
    for pack in range(len(first) - 1):
        begin, end, n = place[pack], place[pack + 1], first[pack + 1] - first[pack]
        width = width_of(n)
        s = (end - begin) // width
        atom, x0 = indices[begin:end].reshape(s, width), packed_codes[begin:end].reshape(s, width)
        by, bu = at_atoms[begin:end].reshape(s, width), at_directions[begin:end].reshape(s, width)
        g, x = g_all[: end - begin].reshape(s, width), x_all[: end - begin].reshape(s, width)
        for w in range(n):
            j = order[first[pack] + w]
            dots(directions, atom, w, signals, j, bu)
            for a in range(s):
                x[a, w] = codes[indptr[j] + a]
        for a in range(s):
            for w in range(n, width):
                x[a, w] = 0.0
                bu[a, w] = 0
            for b in range(a + 1):
                for w in range(width):  # below the diagonal, wherever the atoms stand
                    slot[w] = k * max(atom[a, w], atom[b, w]) + min(atom[a, w], atom[b, w])
                    entry[w] = x[a, w] * x[b, w]
                for w in range(n):
                    XX[slot[w]] += entry[w]
        # M x₀ and not A y, which it is but for rounding: at t = 0 there is then exactly nothing to gain.
        for a in range(s):
            for w in range(width):
                g[a, w] = (gram[atom[a, w], atom[a, w]] + mu) * x[a, w]
            for b in range(a):
                for w in range(width):
                    entry[w] = G[k * atom[a, w] + atom[b, w]]
                    g[a, w] += entry[w] * x[b, w]
                    g[b, w] += entry[w] * x[a, w]
        for a in range(s):
            for w in range(width):
                by[a, w] = g[a, w]
                x0[a, w] = x[a, w]
    mirror(energy)


@compiled
def _move(
    DD, DU, UD, UU, energy, at_atoms, at_directions, angles, t, with_slope, half,
    gram, gram_rate, cosine, sine,
):  # fmt: skip
    k = len(angles)
    lag = np.empty(k)
    for i in range(k):
        by_sine, by_cosine = np.sin(angles[i] * t / 2), np.cos(angles[i] * t / 2)  # of half the angle
        lag[i] = 2.0 * by_sine * by_sine
        cosine[i], sine[i] = 1.0 - lag[i], 2.0 * by_sine * by_cosine
    value, slope = 0.0, 0.0
    for i in range(k):
        ci, si, li, wi = cosine[i], sine[i], lag[i], angles[i]
        kept, kept_rate = 0.0, 0.0
        for b in range(i + 1):
            dd, du, ud, uu = DD[i, b], DU[i, b], UD[i, b], UU[i, b]
            at_d, at_u = ci * dd + si * ud, ci * du + si * uu  # d_i(t) against D_b and U_b
            gram[i, b] = at_d * cosine[b] + at_u * sine[b]
            # P = lag d − sine u is how far d_i has come from d_i(t): ⟨P_i, P_b⟩
            behind_d, behind_u = li * dd - si * ud, li * du - si * uu
            kept += energy[i, b] * (behind_d * lag[b] - behind_u * sine[b])
        # Twice, because the other half of the products is the same; the diagonal was counted once too often.
        behind = energy[i, i] * (li * li * DD[i, i] - 2 * li * si * DU[i, i] + si * si * UU[i, i])
        value += 2 * kept - behind - li * at_atoms[i] + si * at_directions[i]
        if with_slope:  # in a loop of its own, so that the value has the same bits without it
            for b in range(i + 1):
                dd, du, ud, uu = DD[i, b], DU[i, b], UD[i, b], UU[i, b]
                at_d, at_u = ci * dd + si * ud, ci * du + si * uu
                by_d, by_u = wi * (ci * ud - si * dd), wi * (ci * uu - si * du)  # velocity of d_i(t)
                turn = angles[b] * (at_u * cosine[b] - at_d * sine[b])
                gram_rate[i, b] = by_d * cosine[b] + by_u * sine[b] + turn
                behind_d, behind_u = li * dd - si * ud, li * du - si * uu
                turn = angles[b] * (behind_d * sine[b] - behind_u * cosine[b])
                kept_rate += energy[i, b] * (turn - by_d * lag[b] + by_u * sine[b])
            lag_rate, sine_rate = wi * si, wi * ci
            turn = lag_rate * (li * DD[i, i] - si * DU[i, i]) - sine_rate * (li * DU[i, i] - si * UU[i, i])
            slope += 2 * kept_rate - 2 * energy[i, i] * turn
            slope += sine_rate * at_directions[i] - lag_rate * at_atoms[i]
    if not half:
        mirror(gram)
        if with_slope:
            mirror(gram_rate)
    return value, slope


@compiled
def _probe(
    indptr, order, first, place, factor_place, indices, codes, at_atoms, at_directions,
    mu, ratio, gram, gram_rate, cosine, sine, angles, with_slope, bad, out,
):  # fmt: skip
    """With x = x₀ + δ: M δ = g = b(t) − M x₀, and the gain is −gᵀδ = −hᵀΔ⁻¹h with h = L⁻¹g."""
    L_all, lanes = np.empty(longest(factor_place)), np.zeros((4, LANES))
    rooms = np.empty((3, largest_support(first, place), LANES))
    entry, top, gains, slopes = lanes[0], lanes[1], lanes[2], lanes[3]
    slot, broken = np.empty(LANES, dtype=np.int64), np.zeros(LANES, dtype=np.bool_)
    dG, k = gram_rate.ravel(), len(gram)
    diagonal = diagonal_of(gram)
    n_bad = 0
    for pack in range(len(first) - 1):
        begin, end, n = place[pack], place[pack + 1], first[pack + 1] - first[pack]
        width = width_of(n)
        s = (end - begin) // width
        atom, x0 = indices[begin:end].reshape(s, width), codes[begin:end].reshape(s, width)
        by, bu = at_atoms[begin:end].reshape(s, width), at_directions[begin:end].reshape(s, width)
        g, rate, turn = rooms[0, :s], rooms[1, :s], rooms[2, :s]
        L = L_all[: s * (s + 1) // 2 * width].reshape(s * (s + 1) // 2, width)
        for a in range(s):  # b(t), and its derivative
            if with_slope:
                for w in range(width):
                    i = atom[a, w]
                    g[a, w] = cosine[i] * by[a, w] + sine[i] * bu[a, w]
                    turn[a, w] = angles[i] * (cosine[i] * bu[a, w] - sine[i] * by[a, w])
            else:
                for w in range(width):
                    g[a, w] = cosine[atom[a, w]] * by[a, w] + sine[atom[a, w]] * bu[a, w]
        if factorise(gram, diagonal, atom, mu, ratio, x0, g, L, entry, top, slot, broken):
            for w in range(width):  # left to the reference: nothing here may come of them
                if broken[w]:
                    broken[w] = False
                    for a in range(s):
                        g[a, w] = 0.0
                        for b in range(a):
                            L[a * (a + 1) // 2 + b, w] = 0.0
                    if w < n:
                        bad[first[pack] + w] = True
                        n_bad += 1
        forward(L, g)
        for a in range(s):
            for w in range(width):
                gains[w] -= g[a, w] * g[a, w] * L[a * (a + 1) // 2 + a, w]
        if with_slope:
            backward(L, g)
            for a in range(s):
                for w in range(width):
                    slopes[w] -= 2.0 * turn[a, w] * g[a, w]
                    rate[a, w] = 2.0 * x0[a, w] + g[a, w]
                for b in range(a):  # dG has a zero diagonal: the atoms keep their norms
                    for w in range(width):
                        by_both = rate[a, w] * g[b, w] + rate[b, w] * g[a, w]
                        slopes[w] += dG[k * atom[a, w] + atom[b, w]] * by_both
            if len(out):
                for w in range(n):
                    j = order[first[pack] + w]
                    for a in range(s):
                        out[indptr[j] + a] = x0[a, w] + g[a, w]
    return gains.sum(), slopes.sum(), n_bad
