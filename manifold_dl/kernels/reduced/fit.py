"""The functions of `reference.py`, compiled with Numba, with nothing allocated per signal.

Every signal solves its own small normal equations by Cholesky, with the Gram matrix of the atoms
computed once, and LANES signals do so in step (`packs.py`). Signals whose pivots break down are handed to the
reference kernel, which solves them by singular values. The loops release the interpreter lock, so blocks of
signals run in threads.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled
from manifold_dl.kernels.memory import aligned_zeros
from manifold_dl.kernels.reduced import reference
from manifold_dl.kernels.reduced.batches import (
    LANES,
    arrange,
    backward,
    diagonal_of,
    dots,
    factorise,
    forward,
    longest,
    subtract,
    width_of,
)
from manifold_dl.kernels.reduced.geodesic import along, depart, inner, move, probe
from manifold_dl.kernels.reduced.reference import LEAST_ENERGY, PIVOT_RATIO, Fit, take
from manifold_dl.kernels.reduced.spheres import dot, tangent, travel

__all__ = [
    "accumulate",
    "along",
    "arrange",
    "balance",
    "depart",
    "dot",
    "energies",
    "fit",
    "fit_fixed",
    "hessian",
    "inner",
    "move",
    "probe",
    "tangent",
    "travel",
    "without",
]

DOUBLE = np.dtype(float)
NOTHING = np.zeros(0)
NO_INVERSES = np.zeros((0, 0, 0))
NOBODY = np.zeros(0, dtype=np.intp)


def fit(signals, indptr, indices, atoms, gram, mu, keep_factors=True, packs=None):
    packs, mu = packs or arrange(indptr, indices), float(mu)
    codes = np.zeros(len(indices), signals.dtype)
    factors = np.empty(packs.factor_place[-1]) if keep_factors else NOTHING
    gradient = aligned_zeros(atoms.shape, atoms.dtype)
    bad = np.zeros(len(signals), np.bool_)
    # The ratio is an argument, because Numba's cache on disk would not notice a change of the constant.
    value, n_bad = _fit(
        signals, indptr, atoms, gram, mu, PIVOT_RATIO, keep_factors, *packs[:-1],
        codes, factors, gradient, bad,
    )  # fmt: skip
    if not n_bad:
        return Fit(value, gradient, codes, factors if keep_factors else None, NOBODY, NO_INVERSES)
    deficient = np.flatnonzero(bad)
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


def without(rows, signals, indptr, indices, codes, moves, atoms):
    _without(rows, signals, indptr, indices, codes, moves, atoms)


def energies(indices, codes, n_atoms):
    result = np.zeros(n_atoms)
    _energies(indices, codes, result)
    return result


def balance(rows, energy):
    if rows.dtype != DOUBLE and rows.dtype != np.float32:  # half or extended precision: NumPy can
        return reference.balance(rows, energy)
    result = np.empty(rows.shape, rows.dtype)
    _balance(np.ascontiguousarray(rows), energy, LEAST_ENERGY, result)
    return result


def hessian(signals, indptr, indices, atoms, cross, mu, fitted, direction, packs=None):
    packs = packs or arrange(indptr, indices)
    product = aligned_zeros(atoms.shape, atoms.dtype)
    slot = NOBODY
    if len(fitted.deficient):  # where each of them finds its inverse
        slot = np.full(len(signals), -1)
        slot[fitted.deficient] = np.arange(len(fitted.deficient))
    _hessian(
        signals, indptr, atoms, direction, cross, fitted.codes, fitted.factors, slot, fitted.inverses,
        *packs[:-1], product,
    )  # fmt: skip
    return product


@compiled
def _fit(
    signals, indptr, atoms, gram, mu, ratio, keep,
    order, first, place, factor_place, indices, codes, factors, gradient, bad,
):  # fmt: skip
    m = signals.shape[1]
    scratch = np.empty(0 if keep else longest(factor_place))
    g_all, entry, top = np.zeros(longest(place)), np.empty(LANES), np.empty(LANES)
    slot, broken = np.empty(LANES, dtype=np.int64), np.zeros(LANES, dtype=np.bool_)
    r = np.empty((1, m), dtype=signals.dtype)
    diagonal = diagonal_of(gram)
    value, n_bad = 0.0, 0
    if len(order) < len(signals):  # the others use no atom
        for j in range(len(signals)):
            if indptr[j] == indptr[j + 1]:
                for p in range(m):
                    value += signals[j, p] * signals[j, p]
    for pack in range(len(first) - 1):
        begin, end, n = place[pack], place[pack + 1], first[pack + 1] - first[pack]
        width = width_of(n)
        s = (end - begin) // width
        atom, g = indices[begin:end].reshape(s, width), g_all[: end - begin].reshape(s, width)
        L = scratch[: 0 if keep else s * (s + 1) // 2 * width]
        if keep:
            L = factors[factor_place[pack] : factor_place[pack + 1]]
        L = L.reshape(s * (s + 1) // 2, width)
        for w in range(n):
            dots(atoms, atom, w, signals, order[first[pack] + w], g)
        any_broken = factorise(gram, diagonal, atom, mu, ratio, g[:0], g, L, entry, top, slot, broken)
        forward(L, g)
        backward(L, g)
        for w in range(n):
            j = order[first[pack] + w]
            if any_broken and broken[w]:  # left to the reference
                bad[j] = True
                n_bad += 1
                continue
            at, energy, total = indptr[j], 0.0, 0.0
            for a in range(s):
                codes[at + a] = g[a, w]
                energy += g[a, w] * g[a, w]
            for p in range(m):
                r[0, p] = signals[j, p]
            subtract(atoms, atom, w, codes, at, r, 0)
            for p in range(m):
                total += r[0, p] * r[0, p]
            for a in range(s):
                i, x = atom[a, w], 2 * codes[at + a]
                for p in range(m):
                    gradient[i, p] -= x * r[0, p]
            value += mu * energy + total
        if any_broken:
            broken[:] = False
    return value, n_bad


@compiled
def _fit_fixed(signals, indptr, indices, atoms, codes, gradient):
    m = signals.shape[1]
    r = np.empty(m, dtype=signals.dtype)
    value = 0.0
    for j in range(signals.shape[0]):
        for p in range(m):
            r[p] = signals[j, p]
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], codes[a]
            for p in range(m):
                r[p] -= x * atoms[i, p]
        total = 0.0
        for p in range(m):
            total += r[p] * r[p]
        value += total
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], 2 * codes[a]
            for p in range(m):
                gradient[i, p] -= x * r[p]
    return value


@compiled
def _accumulate(rows, indptr, indices, codes, atoms):
    for j in range(rows.shape[0]):
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], codes[a]
            for p in range(rows.shape[1]):
                rows[j, p] += x * atoms[i, p]


@compiled
def _without(rows, signals, indptr, indices, codes, moves, atoms):
    for k in range(len(signals)):
        for a in range(indptr[signals[k]], indptr[signals[k] + 1]):
            i, x = indices[a], codes[a]
            if not moves[i]:
                for p in range(rows.shape[1]):
                    rows[k, p] -= x * atoms[i, p]


@compiled
def _energies(indices, codes, result):
    for a in range(len(indices)):
        result[indices[a]] += np.float64(codes[a]) * codes[a]


@compiled
def _balance(rows, energy, least, result):
    if len(rows) != len(energy):
        raise ValueError("there are not as many rows as energies")
    mean = 0.0
    for i in range(len(energy)):
        mean += energy[i]
    mean /= len(energy)
    for i in range(len(energy)):
        factor = rows.dtype.type(mean / max(energy[i], least * mean) if mean > 0 else 1.0)
        for p in range(rows.shape[1]):
            result[i, p] = factor * rows[i, p]


@compiled
def _hessian(
    signals, indptr, atoms, direction, cross, codes, factors, slot, inverses,
    order, first, place, factor_place, indices, product,
):  # fmt: skip
    m = signals.shape[1]
    r, v = np.empty((LANES, m), dtype=signals.dtype), np.empty((LANES, m), dtype=signals.dtype)
    g_all, x_all = np.zeros(longest(place)), np.zeros(longest(place))
    largest = longest(indptr)
    before, dx = np.empty(largest), np.empty(largest, dtype=signals.dtype)
    C, k = cross.ravel(), len(cross)
    for pack in range(len(first) - 1):
        begin, end, n = place[pack], place[pack + 1], first[pack + 1] - first[pack]
        width = width_of(n)
        s = (end - begin) // width
        atom = indices[begin:end].reshape(s, width)
        g, x = g_all[: end - begin].reshape(s, width), x_all[: end - begin].reshape(s, width)
        L = factors[factor_place[pack] : factor_place[pack + 1]].reshape(s * (s + 1) // 2, width)
        for w in range(n):
            j = order[first[pack] + w]
            for p in range(m):
                r[w, p] = signals[j, p]
                v[w, p] = 0
            subtract(atoms, atom, w, codes, indptr[j], r, w)
            subtract(direction, atom, w, codes, indptr[j], v, w)  # v = −Eᵀx
            dots(direction, atom, w, r, w, g)
            for a in range(s):
                x[a, w] = codes[indptr[j] + a]
        for a in range(s):  # g = E r − A Eᵀx
            for b in range(s):
                for w in range(width):
                    g[a, w] -= C[k * atom[a, w] + atom[b, w]] * x[b, w]
        if len(slot):
            for w in range(n):
                deficient = slot[order[first[pack] + w]]
                if deficient >= 0:  # dx by its pseudo-inverse, through an identity in place of L
                    for a in range(s):
                        before[a] = g[a, w]
                    for a in range(s):
                        g[a, w] = 0.0
                        for b in range(s):
                            g[a, w] += inverses[deficient, a, b] * before[b]
                            if b <= a:
                                L[a * (a + 1) // 2 + b, w] = 1.0 if a == b else 0.0
        forward(L, g)
        backward(L, g)
        for w in range(n):
            at = indptr[order[first[pack] + w]]
            for a in range(s):
                dx[a] = g[a, w]
            subtract(atoms, atom, w, dx, 0, v, w)  # v = dr
            for a in range(s):
                i, xa, da = atom[a, w], 2 * codes[at + a], 2 * dx[a]
                for p in range(m):
                    product[i, p] -= xa * v[w, p] + da * r[w, p]
