"""Matching pursuit and gradient pursuit, compiled, on the Gram matrix.

Both add one atom at a time, and revise the codes from step to step without solving for them.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled_in_order, internal_in_order
from manifold_dl.kernels.coding.common import (
    ROUNDINGS,
    Code,
    argmax_abs,
    position,
    product,
    residual_budget,
    residual_correlations,
    residual_norm,
    sort_by_index,
)
from manifold_dl.kernels.coding.dictionary import ROWS, copy, correlate, empty_products
from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary, PursuitSettings, empty_codes


def matching_pursuit(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """Subtract from the residual its product with the atom most correlated, and repeat."""
    codes = empty_codes(signals, settings.sparsity)
    _matching_pursuit(dictionary, signals, settings, codes)
    return codes


def gradient_pursuit(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """Add the atom most correlated, then go to the minimum along the gradient on the support."""
    codes = empty_codes(signals, settings.sparsity)
    _gradient_pursuit(dictionary, signals, settings, codes)
    return codes


@compiled_in_order
def _matching_pursuit(
    dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings, codes: Codes
) -> None:
    atoms, _, gram, eps = dictionary
    sparsity, tol, max_iter = settings
    products = empty_products(dictionary)
    correlations, _, folded = products
    residual = np.empty(atoms.shape[1], gram.dtype)
    for j in range(len(signals)):
        if j % ROWS == 0:
            correlate(dictionary.tiles, signals[j : j + ROWS], products)
        h, support, x = correlations[j % ROWS], codes.indices[j], codes.values[j]
        norm, limit, left = residual_budget(signals[j], tol)
        largest_ever, k = 0.0, np.int64(0)
        for _ in range(max_iter):
            if left <= limit:
                break
            p = argmax_abs(h, folded)
            largest_ever = max(largest_ever, abs(h[p]))
            if abs(h[p]) <= ROUNDINGS * eps * largest_ever:
                break
            l = position(support, k, p)
            if l == sparsity:
                break
            if l == k:
                support[k], x[k] = p, 0
                k += 1
            step = h[p] / gram[p, p]
            x[l] += step
            if tol >= 0:
                left -= (step / norm) * (h[p] / norm)
                if left <= limit + ROUNDINGS * eps:
                    left = (residual_norm(atoms, signals[j], Code(support, x), k, residual) / norm) ** 2
            add_multiple(h, -step, gram[p])
        sort_by_index(support, x, k)
        codes.counts[j] = k


@compiled_in_order
def _gradient_pursuit(
    dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings, codes: Codes
) -> None:
    atoms, _, gram, eps = dictionary
    sparsity, _, max_iter = settings
    products = empty_products(dictionary)
    correlations, _, folded = products
    gradient, image = np.empty(sparsity, gram.dtype), np.empty(atoms.shape[1], gram.dtype)
    h = np.empty(len(gram), gram.dtype)
    for j in range(len(signals)):
        if j % ROWS == 0:
            correlate(dictionary.tiles, signals[j : j + ROWS], products)
        a, support, x = correlations[j % ROWS], codes.indices[j], codes.values[j]
        copy(a, h)
        largest_ever, k = 0.0, np.int64(0)
        for _ in range(max_iter):
            p = argmax_abs(h, folded)
            largest_ever = max(largest_ever, abs(h[p]))
            if abs(h[p]) <= ROUNDINGS * eps * largest_ever:
                break
            l = position(support, k, p)
            if l == sparsity:
                break
            if l == k:
                support[k], x[k] = p, 0
                k += 1
            for i in range(k):
                gradient[i] = h[support[i]]
            square = squared_image(atoms, support, gradient, k, image)
            if not square > 0:
                break
            step = squared_norm(gradient, k) / square  # to the minimum along the gradient
            for i in range(k):
                x[i] += step * gradient[i]
            residual_correlations(gram, a, support, x, k, h)
        sort_by_index(support, x, k)
        codes.counts[j] = k


@internal_in_order
def add_multiple(h: np.ndarray, c: float, row: np.ndarray) -> None:
    """h += c·row."""
    for i in range(len(h)):
        h[i] += c * row[i]


@internal_in_order
def squared_norm(x: np.ndarray, k: int) -> float:
    """Σ x_l² of the first k entries."""
    total = x.dtype.type(0)
    for l in range(k):
        total += x[l] * x[l]
    return total


@internal_in_order
def squared_image(atoms: np.ndarray, support: np.ndarray, x: np.ndarray, k: int, image: np.ndarray) -> float:
    """‖Dx‖², from the atoms: xᵀGx would be rounding where they are nearly dependent."""
    for i in range(len(image)):
        image[i] = 0
    for l in range(k):
        add_multiple(image, x[l], atoms[support[l]])
    return product(image, image)
