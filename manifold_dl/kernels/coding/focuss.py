"""FOCUSS, compiled: minimum-norm solutions, each weighted by the one before.

With W = diag(|x_i|^(1 − p/2)) the next codes are W²Dᵀz, where (DW²Dᵀ + εI)z = y. Atoms whose weight has
vanished are left out, so a step becomes cheaper as the code becomes sparse.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering, internal_reordering
from manifold_dl.kernels.coding.common import Code, keep_largest, product, sort_by_index
from manifold_dl.kernels.coding.dictionary import copy
from manifold_dl.kernels.coding.factor import Factor, append_row, empty_factor, solve
from manifold_dl.kernels.coding.interface import Codes, FocussSettings, PreparedDictionary, empty_codes
from manifold_dl.kernels.products import BLAS_MULTIPLICATIONS
from manifold_dl.kernels.status import OK, RANK_DEFICIENT

# Codes have converged once no entry changes by this fraction of what is negligible.
CONVERGED = 1e-3


class Workspace(NamedTuple):
    """Memory of one thread, used for one signal after the other."""

    weighted: np.ndarray  # d×m: the atoms times their weights
    system: np.ndarray  # m×m: DW²Dᵀ + εI
    part: np.ndarray  # m×m: what some of the atoms add to it
    factor: Factor
    order: np.ndarray  # 0 to m − 1
    z: np.ndarray  # m
    weights: np.ndarray  # d


def focuss(dictionary: PreparedDictionary, signals: np.ndarray, settings: FocussSettings) -> Codes:
    """The `sparsity` largest entries of each code that exceed `negligible` times the largest."""
    codes = empty_codes(signals, settings.sparsity)
    _focuss(dictionary, signals, settings, codes)
    return codes


@compiled_reordering
def _focuss(
    dictionary: PreparedDictionary, signals: np.ndarray, settings: FocussSettings, codes: Codes
) -> None:
    d, m = dictionary.atoms.shape
    dtype = dictionary.atoms.dtype
    weighted, system, part = np.empty((d, m), dtype), np.empty((m, m), dtype), np.empty((m, m), dtype)
    work = Workspace(
        weighted, system, part, empty_factor(m, system), np.arange(m), np.empty(m, dtype), np.empty(d, dtype)
    )
    active = Code(np.empty(d, np.int64), np.empty(d, dtype))
    for j in range(len(signals)):
        k = _reweight(dictionary.atoms, signals[j], settings, active, work) if np.any(signals[j] != 0) else 0
        k = keep_largest(active.support, active.x, k, settings.sparsity)
        while k > 0 and not abs(active.x[k - 1]) > settings.negligible * abs(active.x[0]):
            k -= 1
        code = Code(codes.indices[j], codes.values[j])
        for l in range(k):
            code.support[l], code.x[l] = active.support[l], active.x[l]
        sort_by_index(code.support, code.x, k)
        codes.counts[j] = k


@internal_reordering
def _reweight(atoms: np.ndarray, y: np.ndarray, settings: FocussSettings, code: Code, work: Workspace) -> int:
    """All entries of the code of one signal that did not vanish; returns their number."""
    support, x = code
    weighted, weights, z = work.weighted, work.weights, work.z
    tolerance, power = CONVERGED * settings.negligible, 1 - settings.p / 2
    k = len(atoms)
    for l in range(k):
        support[l], x[l], weights[l] = l, 0, 1
    for _ in range(settings.max_iter):
        for l in range(k):
            _multiple(weights[l], atoms[support[l]], weighted[l])
        if _solve_system(y, k, settings.ridge, work) == RANK_DEFICIENT:
            break  # the ridge is lost in rounding: the last codes are kept
        largest, change = 0.0, 0.0
        for l in range(k):
            fresh = weights[l] * product(weighted[l], z)
            change, x[l] = max(change, abs(fresh - x[l])), fresh
            largest = max(largest, abs(fresh))
        if not largest > 0:
            break  # orthogonal to every atom
        kept = np.int64(0)
        for l in range(k):
            if abs(x[l]) > tolerance * largest:
                support[kept], x[kept] = support[l], x[l]
                weights[kept] = (abs(x[l]) / largest) ** power
                kept += 1
        k = kept
        if change <= tolerance * largest:
            break
    return k


@internal_reordering
def _solve_system(y: np.ndarray, k: int, ridge: float, work: Workspace) -> int:
    """z with (DW²Dᵀ + εI)z = y; RANK_DEFICIENT where the matrix is singular in spite of its ridge."""
    weighted, system, part, factor, order, z, _ = work
    _form_system(weighted, k, ridge, part, system)
    # The ridge makes the matrix regular: a row is dependent only if its pivot is not positive (eps = 0).
    for l in range(len(y)):
        if append_row(system, factor, order, l, l, 0.0) == RANK_DEFICIENT:
            return RANK_DEFICIENT
    copy(y, z)
    solve(factor.L, z, len(y))
    return OK


@internal_reordering
def _multiple(c: float, source: np.ndarray, target: np.ndarray) -> None:
    """target = c·source."""
    for i in range(len(source)):
        target[i] = c * source[i]


@internal_reordering
def _form_system(weighted: np.ndarray, k: int, ridge: float, part: np.ndarray, system: np.ndarray) -> None:
    """DW²Dᵀ plus `ridge` times its mean diagonal entry, in products small enough for one thread of BLAS."""
    m = len(system)
    rows = max(16, BLAS_MULTIPLICATIONS // (m * m))
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
