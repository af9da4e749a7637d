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
    sizes = np.diff(indptr)
    n_factors = int(np.sum(sizes * (sizes + 1) // 2)) if keep_factors else 0
    codes = np.zeros(len(indices), dtype=signals.dtype)
    factors = np.empty(n_factors, dtype=signals.dtype)
    gradient = np.zeros_like(atoms)
    bad = np.zeros(len(signals), dtype=np.bool_)
    largest = int(sizes.max(initial=0))
    value = _fit(
        signals, indptr, indices, atoms, gram, float(mu), keep_factors, largest, codes, factors, gradient, bad
    )
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
    largest = int(np.diff(indptr).max(initial=0))
    _hessian(
        signals, indptr, indices, atoms, direction, cross, fitted.codes, fitted.factors,
        fitted.deficient, fitted.inverses, largest, product,
    )  # fmt: skip
    return product


def along(signals, indptr, indices, atoms, gram, mu, codes, directions):
    products = Products(
        at_atoms=np.empty_like(codes),
        at_directions=np.empty_like(codes),
        energy=np.zeros((len(atoms), len(atoms))),
        order=np.argsort(np.diff(indptr), kind="stable").astype(np.int32),
    )
    _along(signals, indptr, indices, gram, float(mu), codes, directions, *products[:3])
    return products


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


def probe(signals, indptr, indices, codes, products, mu, moved, with_slope=True):
    bad = np.zeros(len(signals), dtype=np.bool_)
    largest = int(np.diff(indptr).max(initial=0))
    gain, slope = _probe(
        indptr, indices, products.order, codes, products.at_atoms, products.at_directions, float(mu),
        moved.gram, moved.gram_rate, moved.cosine, moved.sine, moved.angles, with_slope, largest, bad,
    )  # fmt: skip
    deficient = np.flatnonzero(bad)
    if len(deficient):
        sub_indptr, sub_indices, places = take(indptr, indices, deficient)
        by_hand = reference.move(*moved.by_hand)
        rest = reference.probe(signals[deficient], sub_indptr, sub_indices, codes[places], None, mu, by_hand)
        gain, slope = gain + rest[0], slope + rest[1]
    return gain, slope, len(deficient)


@_compile
def _fit(signals, indptr, indices, atoms, gram, mu, keep, largest, codes, factors, gradient, bad):
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
        ok = _cholesky(gram, indices, begin, s, mu, L)
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
def _along(signals, indptr, indices, gram, mu, codes, directions, at_atoms, at_directions, energy):
    m = signals.shape[1]
    for j in range(signals.shape[0]):
        for a in range(indptr[j], indptr[j + 1]):
            i = indices[a]
            total = signals.dtype.type(0)
            for p in range(m):
                total += directions[i, p] * signals[j, p]
            at_directions[a] = total
            xa = float(codes[a])
            start = mu * xa
            for b in range(indptr[j], indptr[j + 1]):
                start += gram[i, indices[b]] * codes[b]
                energy[i, indices[b]] += xa * codes[b]
            at_atoms[a] = start


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


LANES = 32  # signals solved side by side, one in each lane of the vector registers


@_compile
def _probe(
    indptr, indices, order, codes, at_atoms, at_directions, mu, gram, gram_rate, cosine, sine, angles,
    with_slope, largest, bad,
):  # fmt: skip
    """With x = x₀ + δ: M δ = g = b(t) − M x₀, and the gain is −gᵀδ = −‖L⁻¹g‖².

    Signals with supports of one size stand next to each other in `order`, so that LANES of them at a
    time go through the same Cholesky factorisation.
    """
    L = np.empty((largest, largest, LANES))
    x0, g, rate = np.empty((largest, LANES)), np.empty((largest, LANES)), np.empty((largest, LANES))
    atom = np.empty((largest, LANES), dtype=np.int64)
    begin = np.empty(LANES, dtype=np.int64)
    entry, top, counted = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    gains, slopes = np.zeros(LANES), np.zeros(LANES)
    k, n = len(gram), len(order)
    G, dG = gram.ravel(), gram_rate.ravel()
    first = 0
    while first < n:
        s = indptr[order[first] + 1] - indptr[order[first]]
        for w in range(LANES):  # lanes left over repeat the first signal and are not counted
            j = order[min(first + w, n - 1)]
            fits = first + w < n and indptr[j + 1] - indptr[j] == s
            begin[w] = indptr[j] if fits else begin[0]
            counted[w] = 1.0 if fits else 0.0
            top[w] = 0.0
        for a in range(s):
            for w in range(LANES):
                place = begin[w] + a
                i = indices[place]
                atom[a, w] = i
                x0[a, w] = codes[place]
                g[a, w] = cosine[i] * at_atoms[place] + sine[i] * at_directions[place]
                rate[a, w] = angles[i] * (cosine[i] * at_directions[place] - sine[i] * at_atoms[place])
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
                entry[w] = G[(k + 1) * atom[a, w]] + mu
                g[a, w] -= entry[w] * x0[a, w]
                top[w] = max(top[w], entry[w])
            for l in range(a):
                for w in range(LANES):
                    entry[w] -= L[a, l, w] * L[a, l, w]
            broken = 0
            for w in range(LANES):
                broken += 0 if entry[w] > PIVOT_RATIO * top[w] else 1
            if broken:
                for w in range(LANES):
                    if not entry[w] > PIVOT_RATIO * top[w]:
                        entry[w] = 1.0
                        if counted[w] > 0.0:
                            counted[w] = -1.0
                            bad[order[first + w]] = True
            for w in range(LANES):
                L[a, a, w] = 1.0 / np.sqrt(entry[w])
        done = 0
        for w in range(LANES):
            done += 1 if counted[w] != 0.0 else 0
            counted[w] = max(counted[w], 0.0)
        for a in range(s):
            for l in range(a):
                for w in range(LANES):
                    g[a, w] -= L[a, l, w] * g[l, w]
            for w in range(LANES):
                g[a, w] *= L[a, a, w]
                gains[w] -= counted[w] * g[a, w] * g[a, w]
        if with_slope:
            for a in range(s - 1, -1, -1):
                for l in range(a + 1, s):
                    for w in range(LANES):
                        g[a, w] -= L[l, a, w] * g[l, w]
                for w in range(LANES):
                    g[a, w] *= L[a, a, w]
            for a in range(s):
                for w in range(LANES):
                    slopes[w] -= counted[w] * 2.0 * rate[a, w] * g[a, w]
                    rate[a, w] = 2.0 * x0[a, w] + g[a, w]
                for b in range(a):  # dG has a zero diagonal: the atoms keep their norms
                    for w in range(LANES):
                        turn = dG[k * atom[a, w] + atom[b, w]]
                        slopes[w] += counted[w] * turn * (rate[a, w] * g[b, w] + rate[b, w] * g[a, w])
        first += done
    return gains.sum(), slopes.sum()


# The small pieces: inlined by the compiler into the kernels above. The diagonal of L holds 1/L_aa.


@_compile
def _cholesky(gram, indices, begin, s, mu, L):
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
        if not pivot > PIVOT_RATIO * top:
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
