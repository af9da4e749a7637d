"""The functions of `reference.py`, compiled with Numba, with nothing allocated per signal.

Every signal solves its own small normal equations by Cholesky, with the Gram matrix of the atoms
computed once. Signals whose pivots break down are handed to the reference kernel, which solves them by
singular values. The loops release the interpreter lock, so blocks of signals run in threads.
"""

import numpy as np

from manifold_dl.kernels import reference
from manifold_dl.kernels.compiled_geodesic import along, move, probe
from manifold_dl.kernels.compiled_parts import (
    add_gradient,
    backward,
    cholesky,
    combine,
    compiled,
    extent,
    forward,
    residual,
)
from manifold_dl.kernels.reference import PIVOT_RATIO, Fit, take

__all__ = ["accumulate", "along", "fit", "fit_fixed", "hessian", "move", "probe"]


def fit(signals, indptr, indices, atoms, gram, mu, keep_factors=True):
    largest, n_factors = extent(indptr)
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
    largest, _ = extent(indptr)
    _hessian(
        signals, indptr, indices, atoms, direction, cross, fitted.codes, fitted.factors,
        fitted.deficient, fitted.inverses, largest, product,
    )  # fmt: skip
    return product


@compiled
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
        ok = cholesky(gram, indices, begin, s, mu, ratio, L)
        if keep:
            for a in range(s):
                for b in range(a + 1):
                    factors[place] = L[a, b]
                    place += 1
        if not ok:
            bad[j] = True
            continue
        forward(L, s, x)
        backward(L, s, x)
        energy = 0.0
        for p in range(m):
            r[p] = signals[j, p]
        for a in range(s):
            codes[begin + a] = x[a]
            energy += x[a] * x[a]
            i, xa = indices[begin + a], codes[begin + a]
            for p in range(m):
                r[p] -= xa * atoms[i, p]
        value += mu * energy + add_gradient(r, indices, codes, begin, s, gradient)
    return value


@compiled
def _fit_fixed(signals, indptr, indices, atoms, codes, gradient):
    m = signals.shape[1]
    r = np.empty(m, dtype=signals.dtype)
    value = 0.0
    for j in range(signals.shape[0]):
        residual(signals, j, indptr, indices, atoms, codes, r)
        value += add_gradient(r, indices, codes, indptr[j], indptr[j + 1] - indptr[j], gradient)
    return value


@compiled
def _accumulate(rows, indptr, indices, codes, atoms):
    for j in range(rows.shape[0]):
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], codes[a]
            for p in range(rows.shape[1]):
                rows[j, p] += x * atoms[i, p]


@compiled
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
        residual(signals, j, indptr, indices, atoms, codes, r)
        combine(indices, begin, s, codes, direction, v)  # Eᵀx
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
            forward(L, s, dx)
            backward(L, s, dx)
        for a in range(s):
            i, da = indices[begin + a], signals.dtype.type(dx[a])
            for p in range(m):
                v[p] += da * atoms[i, p]  # v = −dr
        for a in range(s):
            i = indices[begin + a]
            xa, da = 2 * codes[begin + a], signals.dtype.type(2 * dx[a])
            for p in range(m):
                product[i, p] += xa * v[p] - da * r[p]
