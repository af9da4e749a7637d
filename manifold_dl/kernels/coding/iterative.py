"""Pursuits that revise their codes from step to step, compiled, on the Gram matrix.

Matching and gradient pursuit add one atom at a time without solving for the codes; subspace pursuit and
iterative hard thresholding replace whole supports. Arguments and results are those of `coding.omp`, except
where a function says so.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled_in_order
from manifold_dl.kernels.coding.common import (
    ROUNDINGS,
    ROWS,
    argmax_abs,
    copy,
    correlate,
    empty_codes,
    euclidean_norm,
    keep_largest,
    product,
    relative_error,
    residual_budget,
    residual_correlations,
    sort_by_index,
)
from manifold_dl.kernels.coding.factor import empty_factor, least_squares


def matching_pursuit(dictionary, signals, sparsity, tol, max_iter):
    codes = empty_codes(signals, sparsity)
    _matching_pursuit(*dictionary, signals, tol, max_iter, np.finfo(signals.dtype).eps, *codes)
    return codes


def gradient_pursuit(dictionary, signals, sparsity, max_iter):
    codes = empty_codes(signals, sparsity)
    _gradient_pursuit(*dictionary, signals, max_iter, np.finfo(signals.dtype).eps, *codes)
    return codes


def subspace_pursuit(dictionary, signals, sparsity, max_iter):
    codes = empty_codes(signals, sparsity)
    _subspace_pursuit(*dictionary, signals, max_iter, np.finfo(signals.dtype).eps, *codes)
    return codes


def iht(dictionary, signals, sparsity, max_iter):
    codes = empty_codes(signals, sparsity)
    _iht(*dictionary, signals, max_iter, np.finfo(signals.dtype).eps, *codes)
    return codes


@compiled_in_order
def _matching_pursuit(atoms, tiles, gram, signals, tol, max_iter, eps, counts, indices, values):
    n, sparsity = values.shape
    correlations, products, quarter, sixteenth = scratch(gram, tiles)
    residual = np.empty(atoms.shape[1], gram.dtype)
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], tiles, products, correlations)
        h, support, x = correlations[j % ROWS], indices[j], values[j]
        norm, limit, left = residual_budget(signals[j], tol)
        largest_ever = 0.0
        k = 0
        for _ in range(max_iter):
            if left <= limit:
                break
            p = argmax_abs(h, quarter, sixteenth)
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
                    left = relative_error(signals[j], norm, atoms, support, x, k, residual)
            add_multiple(h, -step, gram[p])
        sort_by_index(support, x, k)
        counts[j] = k


@compiled_in_order
def _gradient_pursuit(atoms, tiles, gram, signals, max_iter, eps, counts, indices, values):
    n, sparsity = values.shape
    correlations, products, quarter, sixteenth = scratch(gram, tiles)
    gradient, image = np.empty(sparsity, gram.dtype), np.empty(atoms.shape[1], gram.dtype)
    h = np.empty(len(gram), gram.dtype)
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], tiles, products, correlations)
        a, support, x = correlations[j % ROWS], indices[j], values[j]
        copy(a, h)
        largest_ever = 0.0
        k = 0
        for _ in range(max_iter):
            p = argmax_abs(h, quarter, sixteenth)
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
            residual_correlations(a, gram, support, x, k, h)
        sort_by_index(support, x, k)
        counts[j] = k


@compiled_in_order
def _subspace_pursuit(atoms, tiles, gram, signals, max_iter, eps, counts, indices, values):
    n, sparsity = values.shape
    correlations, products, quarter, sixteenth = scratch(gram, tiles)
    h, residual = np.empty(len(gram), gram.dtype), np.empty(atoms.shape[1], gram.dtype)
    factor = empty_factor(2 * sparsity, gram)
    merged, trial = np.empty(2 * sparsity, np.int32), np.empty(2 * sparsity, gram.dtype)
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], tiles, products, correlations)
        a, support, x = correlations[j % ROWS], indices[j], values[j]
        norm = euclidean_norm(signals[j])
        copy(a, h)
        k = take_largest(h, support, 0, sparsity, quarter, sixteenth)
        k = least_squares(a, gram, factor, signals[j], atoms, support, x, k, eps, residual)
        error = relative_error(signals[j], norm, atoms, support, x, k, residual) if norm > 0 else 0.0
        for _ in range(max_iter):
            if error <= (ROUNDINGS * eps) ** 2:
                break
            residual_correlations(a, gram, support, x, k, h)
            for l in range(k):
                merged[l] = support[l]
                h[support[l]] = 0
            both = take_largest(h, merged, k, k + sparsity, quarter, sixteenth)
            both = least_squares(a, gram, factor, signals[j], atoms, merged, trial, both, eps, residual)
            both = keep_largest(merged, trial, both, sparsity)
            both = least_squares(a, gram, factor, signals[j], atoms, merged, trial, both, eps, residual)
            lower = relative_error(signals[j], norm, atoms, merged, trial, both, residual)
            if not lower < error:
                break
            k, error = both, lower
            for l in range(k):
                support[l], x[l] = merged[l], trial[l]
        sort_by_index(support, x, k)
        counts[j] = k


@compiled_in_order
def _iht(atoms, tiles, gram, signals, max_iter, eps, counts, indices, values):
    n, sparsity = values.shape
    correlations, products, quarter, sixteenth = scratch(gram, tiles)
    h, moved = np.empty(len(gram), gram.dtype), np.empty(len(gram), gram.dtype)
    factor, residual = empty_factor(sparsity, gram), np.empty(atoms.shape[1], gram.dtype)
    fresh, trial = np.empty(sparsity, np.int32), np.empty(sparsity, gram.dtype)
    union, change = np.empty(2 * sparsity, np.int32), np.empty(2 * sparsity, gram.dtype)
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], tiles, products, correlations)
        a, support, x = correlations[j % ROWS], indices[j], values[j]
        copy(a, h)
        k = take_largest(h, support, 0, sparsity, quarter, sixteenth)
        for l in range(k):
            x[l] = 0
        for _ in range(max_iter):
            residual_correlations(a, gram, support, x, k, h)
            for l in range(k):
                trial[l] = h[support[l]]
            square = squared_image(atoms, support, trial, k, residual)
            if not square > 0:
                break
            step = squared_norm(trial, k) / square
            # Normalised thresholding (Blumensath and Davies, 2010): the step that would be best on the
            # support may be too long once the support changes; shorten it until it surely descends.
            while True:
                for i in range(len(h)):
                    moved[i] = step * h[i]
                for l in range(k):
                    moved[support[l]] += x[l]
                size = threshold(moved, fresh, trial, sparsity, quarter, sixteenth)
                both = difference(support, x, k, fresh, trial, size, union, change)
                length = squared_norm(change, both)
                safe = 0.99 * length / squared_image(atoms, union, change, both, residual)
                if both == k or not step > safe:
                    break
                step = min(step / 2, safe)
            k = size
            for l in range(k):
                support[l], x[l] = fresh[l], trial[l]
            if length <= (ROUNDINGS * eps) * squared_norm(x, k):
                break
        k = least_squares(a, gram, factor, signals[j], atoms, support, x, k, eps, residual)
        sort_by_index(support, x, k)
        counts[j] = k


@compiled_in_order
def scratch(gram, tiles):
    """Correlations of a few signals, their product with a tile, and the foldings of `argmax_abs`."""
    padded = len(gram)
    return (
        np.empty((ROWS, padded), gram.dtype),
        np.empty((ROWS, tiles.shape[2]), gram.dtype),
        np.empty(padded // 4, gram.dtype),
        np.empty(padded // 16, gram.dtype),
    )


@compiled_in_order
def position(support, k, p):
    """Where atom p stands in the support, k if it does not."""
    for l in range(k):
        if support[l] == p:
            return l
    return k


@compiled_in_order
def add_multiple(h, c, row):
    for i in range(len(h)):
        h[i] += c * row[i]


@compiled_in_order
def take_largest(h, support, k, end, quarter, sixteenth):
    """Append the atoms of the largest entries of h, up to `end`, setting those entries to zero."""
    while k < min(end, len(support)):
        p = argmax_abs(h, quarter, sixteenth)
        if h[p] == 0:
            break
        support[k] = p
        h[p] = 0
        k += 1
    return k


@compiled_in_order
def threshold(moved, support, x, sparsity, quarter, sixteenth):
    """Hard thresholding: the `sparsity` largest entries of `moved`, which is used up."""
    for k in range(sparsity):
        p = argmax_abs(moved, quarter, sixteenth)
        if moved[p] == 0:
            return k
        support[k], x[k] = p, moved[p]
        moved[p] = 0
    return sparsity


@compiled_in_order
def difference(support, x, k, fresh, trial, size, union, change):
    """The entries of two codes where either is not zero: atoms and differences. Their number is returned."""
    for l in range(k):
        union[l], change[l] = support[l], -x[l]
    both = k
    for i in range(size):
        l = position(support, k, fresh[i])
        if l == k:
            union[both], change[both] = fresh[i], trial[i]
            both += 1
        else:
            change[l] += trial[i]
    return both


@compiled_in_order
def squared_norm(x, k):
    total = x.dtype.type(0)
    for l in range(k):
        total += x[l] * x[l]
    return total


@compiled_in_order
def squared_image(atoms, support, x, k, image):
    """‖Dx‖², from the atoms: xᵀGx would be rounding where they are nearly dependent."""
    for i in range(len(image)):
        image[i] = 0
    for l in range(k):
        add_multiple(image, x[l], atoms[support[l]])
    return product(image, image)
