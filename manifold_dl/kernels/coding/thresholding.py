"""Subspace pursuit and iterative hard thresholding, compiled, on the Gram matrix.

Both replace whole supports: they move, keep the largest entries, and solve for them by least squares.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled_in_order, internal_in_order
from manifold_dl.kernels.coding.common import (
    ROUNDINGS,
    Code,
    argmax_abs,
    euclidean_norm,
    keep_largest,
    position,
    residual_correlations,
    residual_norm,
    sort_by_index,
    take_largest,
)
from manifold_dl.kernels.coding.dictionary import ROWS, copy, correlate, empty_products
from manifold_dl.kernels.coding.factor import empty_factor, least_squares
from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary, PursuitSettings, empty_codes
from manifold_dl.kernels.coding.matching import squared_image, squared_norm


def subspace_pursuit(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """Merge the support with the atoms best correlated, solve, keep the largest, solve, while it helps."""
    codes = empty_codes(signals, settings.sparsity)
    _subspace_pursuit(dictionary, signals, settings, codes)
    return codes


def iht(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """A gradient step, the largest entries, and least squares on the last support."""
    codes = empty_codes(signals, settings.sparsity)
    _iht(dictionary, signals, settings, codes)
    return codes


@compiled_in_order
def _subspace_pursuit(
    dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings, codes: Codes
) -> None:
    atoms, _, gram, eps = dictionary
    sparsity, _, max_iter = settings
    products, factor = empty_products(dictionary), empty_factor(2 * sparsity, gram)
    correlations, _, folded = products
    h, residual = np.empty(len(gram), gram.dtype), np.empty(atoms.shape[1], gram.dtype)
    merged, trial = np.empty(2 * sparsity, np.int32), np.empty(2 * sparsity, gram.dtype)
    for j in range(len(signals)):
        if j % ROWS == 0:
            correlate(dictionary.tiles, signals[j : j + ROWS], products)
        y, a, support, x = signals[j], correlations[j % ROWS], codes.indices[j], codes.values[j]
        norm = euclidean_norm(y)
        copy(a, h)
        k = take_largest(h, support, np.int64(0), sparsity, folded)
        k = least_squares(dictionary, y, a, Code(support, x), k, factor)
        error = (residual_norm(atoms, y, Code(support, x), k, residual) / norm) ** 2 if norm > 0 else 0.0
        for _ in range(max_iter):
            if error <= (ROUNDINGS * eps) ** 2:
                break
            residual_correlations(gram, a, support, x, k, h)
            for l in range(k):
                merged[l] = support[l]
                h[support[l]] = 0
            size = take_largest(h, merged, k, k + sparsity, folded)
            size = least_squares(dictionary, y, a, Code(merged, trial), size, factor)
            size = keep_largest(merged, trial, size, sparsity)
            size = least_squares(dictionary, y, a, Code(merged, trial), size, factor)
            lower = (residual_norm(atoms, y, Code(merged, trial), size, residual) / norm) ** 2
            if not lower < error:
                break
            k, error = size, lower
            for l in range(k):
                support[l], x[l] = merged[l], trial[l]
        sort_by_index(support, x, k)
        codes.counts[j] = k


@compiled_in_order
def _iht(
    dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings, codes: Codes
) -> None:
    atoms, _, gram, eps = dictionary
    sparsity, _, max_iter = settings
    products, factor = empty_products(dictionary), empty_factor(sparsity, gram)
    correlations, _, folded = products
    h, moved = np.empty(len(gram), gram.dtype), np.empty(len(gram), gram.dtype)
    image = np.empty(atoms.shape[1], gram.dtype)
    fresh, trial = np.empty(sparsity, np.int32), np.empty(sparsity, gram.dtype)
    union, change = np.empty(2 * sparsity, np.int32), np.empty(2 * sparsity, gram.dtype)
    for j in range(len(signals)):
        if j % ROWS == 0:
            correlate(dictionary.tiles, signals[j : j + ROWS], products)
        a, support, x = correlations[j % ROWS], codes.indices[j], codes.values[j]
        copy(a, h)
        k = take_largest(h, support, np.int64(0), sparsity, folded)
        x[:k] = 0
        for _ in range(max_iter):
            residual_correlations(gram, a, support, x, k, h)
            for l in range(k):
                trial[l] = h[support[l]]
            square = squared_image(atoms, support, trial, k, image)
            if not square > 0:
                break
            step = squared_norm(trial, k) / square
            # Normalised thresholding (Blumensath and Davies, 2010): the step that would be best on the
            # support may be too long once the support changes; shorten it until it surely descends.
            while True:
                _move(step, h, Code(support, x), k, moved)
                size = _threshold(moved, fresh, trial, folded)
                both = _difference(Code(support, x), k, Code(fresh, trial), size, Code(union, change))
                length = squared_norm(change, both)
                safe = 0.99 * length / squared_image(atoms, union, change, both, image)
                if both == k or not step > safe:
                    break
                step = min(step / 2, safe)
            k = size
            for l in range(k):
                support[l], x[l] = fresh[l], trial[l]
            if length <= (ROUNDINGS * eps) * squared_norm(x, k):
                break
        k = least_squares(dictionary, signals[j], a, Code(support, x), k, factor)
        sort_by_index(support, x, k)
        codes.counts[j] = k


@internal_in_order
def _move(step: float, h: np.ndarray, code: Code, k: int, moved: np.ndarray) -> None:
    """moved = x + step·h."""
    support, x = code
    for i in range(len(h)):
        moved[i] = step * h[i]
    for l in range(k):
        moved[support[l]] += x[l]


@internal_in_order
def _threshold(moved: np.ndarray, support: np.ndarray, x: np.ndarray, folded: np.ndarray) -> int:
    """Hard thresholding: as many of the largest entries of `moved` as x holds; `moved` is used up."""
    for k in range(len(x)):
        p = argmax_abs(moved, folded)
        if moved[p] == 0:
            return k
        support[k], x[k] = p, moved[p]
        moved[p] = 0
    return len(x)


@internal_in_order
def _difference(code: Code, k: int, other: Code, size: int, change: Code) -> int:
    """other − code, where either is not zero: atoms and differences. Their number is returned."""
    support, x = code
    union, difference = change
    for l in range(k):
        union[l], difference[l] = support[l], -x[l]
    both = k
    for i in range(size):
        p, value = other.support[i], other.x[i]
        l = position(support, k, p)
        if l == k:
            union[both], difference[both] = p, value
            both += 1
        else:
            difference[l] += value
    return both
