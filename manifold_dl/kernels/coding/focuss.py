"""FOCUSS, compiled: minimum-norm solutions, each weighted by the one before.

With W = diag(|x_i|^(1 − p/2)) the next codes are W²Dᵀz, where (DW²Dᵀ + εI)z = y. Atoms whose weight has
vanished are left out, so a step becomes cheaper as the code becomes sparse.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering
from manifold_dl.kernels.coding.common import (
    MULTIPLICATIONS,
    copy,
    empty_codes,
    keep_largest,
    product,
    sort_by_index,
)
from manifold_dl.kernels.coding.factor import append_row, empty_factor, solve


def focuss(dictionary, signals, sparsity, p, ridge, max_iter, negligible):
    """The `sparsity` largest entries of each code that exceed `negligible` times the largest.

    Codes are settled once no entry moves by a thousandth of what is negligible.
    """
    codes = empty_codes(signals, sparsity)
    tolerance = 1e-3 * negligible
    _focuss(dictionary.atoms, signals, p, ridge, max_iter, negligible, tolerance, *codes)
    return codes


@compiled_reordering
def _focuss(atoms, signals, p, ridge, max_iter, negligible, tolerance, counts, indices, values):
    d, m = atoms.shape
    weighted, system = np.empty((d, m), atoms.dtype), np.empty((m, m), atoms.dtype)
    part, factor = np.empty((m, m), atoms.dtype), empty_factor(m, system)
    order, z = np.arange(m), np.empty(m, atoms.dtype)
    active, x, weights = np.empty(d, np.int64), np.empty(d, atoms.dtype), np.empty(d, atoms.dtype)
    for j in range(len(signals)):
        k = d if np.any(signals[j] != 0) else 0
        for l in range(k):
            active[l], x[l], weights[l] = l, 0, 1
        for _ in range(max_iter if k > 0 else 0):
            for l in range(k):
                multiple(weights[l], atoms[active[l]], weighted[l])
            gather(weighted, k, ridge, part, system)
            independent = True
            for l in range(m):
                independent = independent and append_row(system, factor, order, l, l, 0.0)
            if not independent:
                break  # the ridge is lost in rounding: the last codes stand
            copy(signals[j], z)
            solve(factor.L, z, m)
            largest, change = 0.0, 0.0
            for l in range(k):
                fresh = weights[l] * product(weighted[l], z)
                change, x[l] = max(change, abs(fresh - x[l])), fresh
                largest = max(largest, abs(fresh))
            if not largest > 0:
                break  # orthogonal to every atom
            kept = 0
            for l in range(k):
                if abs(x[l]) > tolerance * largest:
                    active[kept], x[kept] = active[l], x[l]
                    weights[kept] = (abs(x[l]) / largest) ** (1 - p / 2)
                    kept += 1
            k = kept
            if change <= tolerance * largest:
                break
        k = keep_largest(active, x, k, values.shape[1])
        while k > 0 and not abs(x[k - 1]) > negligible * abs(x[0]):
            k -= 1
        for l in range(k):
            indices[j, l], values[j, l] = active[l], x[l]
        sort_by_index(indices[j], values[j], k)
        counts[j] = k


@compiled_reordering
def multiple(c, source, target):
    for i in range(len(source)):
        target[i] = c * source[i]


@compiled_reordering
def gather(weighted, k, ridge, part, system):
    """DW²Dᵀ plus `ridge` times its mean diagonal entry, in products small enough for one thread of BLAS."""
    m = len(system)
    rows = max(16, MULTIPLICATIONS // (m * m))
    for i in range(m):
        for l in range(m):
            system[i, l] = 0
    for start in range(0, k, rows):
        some = weighted[start : min(start + rows, k)]
        np.dot(some.T, some, part)
        for i in range(m):
            for l in range(m):
                system[i, l] += part[i, l]
    trace = 0.0
    for i in range(m):
        trace += system[i, i]
    for i in range(m):
        system[i, i] += ridge * trace / m
