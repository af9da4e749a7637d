"""Greedy pursuits, compiled: orthogonal matching pursuit and orthogonal least squares.

Both grow a support one atom at a time and differ in one line, the choice of the next atom. Both run on
the Gram matrix G = DᵀD, and keep, for every signal, the correlations a = Dᵀr of all atoms with the
residual. Choosing atom p adds one row to the Cholesky factor of G_II and one row q to Q, the products of
all atoms with the new direction of an orthonormal basis of the support:

    q = (G_p − Σ_l Q_l[p] Q_l) / √w,    w = G_pp − Σ_l Q_l[p]²,    a ← a − z q,    z = a_p / √w.

The factor is read off Q (L_kl = Q_l[p]), and the codes solve Lᵀx = z once, at the end. Rubinstein,
Zibulevsky and Elad's Batch-OMP computes a = a₀ − G_I x_I instead: as many operations, but it reads k rows
of G per step from the second-level cache, where this reads one.

`coding_reference` has the same functions in plain NumPy. The coders call whichever exists.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled_in_order
from manifold_dl.kernels.coding.common import (
    ROUNDINGS,
    ROWS,
    argmax_abs,
    contains,
    copy,
    correlate,
    empty_codes,
    prepare,
    relative_error,
    residual_budget,
    sort_by_index,
)
from manifold_dl.kernels.coding.factor import CHEAP, are_accurate, inverse_row, inverse_row_bound, refine

__all__ = ["forward_selection", "omp", "prepare"]


def omp(dictionary, signals, sparsity, tol):
    """Orthogonal matching pursuit of each row of `signals`.

    Returns the number of atoms of each signal, their indices (increasing) and coefficients, n×sparsity, of
    which the first `counts[j]` of row j are meaningful. A negative `tol` asks for no stop at a residual.
    """
    counts, indices, values = empty_codes(signals, sparsity)
    _omp(*dictionary, signals, tol, np.finfo(signals.dtype).eps, counts, indices, values)
    return counts, indices, values


def forward_selection(dictionary, signals, sparsity, tol):
    """Orthogonal least squares of each row of `signals`; arguments and results as `omp`."""
    counts, indices, values = empty_codes(signals, sparsity)
    _forward_selection(*dictionary, signals, tol, np.finfo(signals.dtype).eps, counts, indices, values)
    return counts, indices, values


@compiled_in_order
def _omp(atoms, tiles, gram, signals, tol, eps, counts, indices, values):
    n, sparsity = values.shape
    padded = len(gram)
    correlations = np.empty((ROWS, padded), gram.dtype)
    product = np.empty((ROWS, tiles.shape[2]), gram.dtype)
    quarter, sixteenth = np.empty(padded // 4, gram.dtype), np.empty(padded // 16, gram.dtype)
    Q, L = np.empty((sparsity, padded), gram.dtype), np.empty((sparsity, sparsity), gram.dtype)
    scratch = np.empty(sparsity, gram.dtype)
    z, residual = np.empty(sparsity, gram.dtype), np.empty(atoms.shape[1], gram.dtype)
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], tiles, product, correlations)
        a, support, x = correlations[j % ROWS], indices[j], values[j]
        norm, limit, left = residual_budget(signals[j], tol)
        largest_ever = 0.0
        k, spread = 0, 0.0
        while k < sparsity and left > limit:
            p = argmax_abs(a, quarter, sixteenth)
            largest_ever = max(largest_ever, abs(a[p]))
            if abs(a[p]) <= ROUNDINGS * eps * largest_ever or contains(support, k, p):
                break  # the residual is orthogonal to every atom, as far as this arithmetic can tell
            w = extend_factor(L, Q, gram, k, p)
            inverse = inverse_row_bound(w, gram[p, p], spread)
            if inverse > 1 / (CHEAP * ROUNDINGS * eps):
                inverse = inverse_row(gram, L, support, k, w, gram[p, p], scratch)
            if not inverse <= 1 / (ROUNDINGS * eps):
                a[p] = 0  # atom p depends on the support: the next one
                continue
            spread += inverse
            L[k, k] = 1 / np.sqrt(w)
            z[k] = a[p] * L[k, k]
            support[k] = p
            k += 1
            if k < sparsity:
                update(a, gram[p], Q, k - 1, p, L[k - 1, k - 1], z[k - 1])
            if tol >= 0:
                left -= (z[k - 1] / norm) ** 2
                if left <= limit + ROUNDINGS * eps or is_close_to_dependent(L, k):
                    growth = solve_upper(L, z, 1.0, x, k)
                    if not are_accurate(growth, spread, eps):
                        refine(L, signals[j], atoms, support, x, k, residual, scratch)
                    left = relative_error(signals[j], norm, atoms, support, x, k, residual)
        growth = solve_upper(L, z, 1.0, x, k)
        if not are_accurate(growth, spread, eps):
            refine(L, signals[j], atoms, support, x, k, residual, scratch)
        sort_by_index(support, x, k)
        counts[j] = k


@compiled_in_order
def _forward_selection(atoms, tiles, gram, signals, tol, eps, counts, indices, values):
    n, sparsity = values.shape
    padded = len(gram)
    correlations = np.empty((ROWS, padded), gram.dtype)
    product = np.empty((ROWS, tiles.shape[2]), gram.dtype)
    quarter, sixteenth = np.empty(padded // 4, gram.dtype), np.empty(padded // 16, gram.dtype)
    Q, L = np.empty((sparsity, padded), gram.dtype), np.empty((sparsity, sparsity), gram.dtype)
    scratch = np.empty(sparsity, gram.dtype)
    z, residual = np.empty(sparsity, gram.dtype), np.empty(atoms.shape[1], gram.dtype)
    gains, remaining = np.empty(padded, gram.dtype), np.empty(padded, gram.dtype)
    squares = np.empty(padded, gram.dtype)
    floor = np.empty(1, gram.dtype)
    floor[0] = ROUNDINGS * eps
    for i in range(padded):
        squares[i] = gram[i, i]
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], tiles, product, correlations)
        a, support, x = correlations[j % ROWS], indices[j], values[j]
        norm, limit, left = residual_budget(signals[j], tol)
        # The atoms have norm 1, so the first choice is that of OMP. Later ones square the correlations,
        # which are therefore brought to 1 first: no signal is too small or too large.
        p = argmax_abs(a, quarter, sixteenth)
        scale = abs(a[p])
        if scale > 0:
            divide(a, scale)
        copy(squares, remaining)
        k, spread = 0, 0.0
        while k < sparsity and left > limit and scale > 0:
            if contains(support, k, p) or not abs(a[p]) > ROUNDINGS * eps:
                break
            w = extend_factor(L, Q, gram, k, p)
            inverse = inverse_row_bound(w, gram[p, p], spread)
            if inverse > 1 / (CHEAP * ROUNDINGS * eps):
                inverse = inverse_row(gram, L, support, k, w, gram[p, p], scratch)
            if not inverse <= 1 / (ROUNDINGS * eps):
                remaining[p] = 0  # atom p depends on the support: the next one
                gains[p] = 0
                p = argmax_abs(gains, quarter, sixteenth)
                continue
            spread += inverse
            L[k, k] = 1 / np.sqrt(w)
            z[k] = a[p] * L[k, k]
            support[k] = p
            k += 1
            if k < sparsity:
                update(a, gram[p], Q, k - 1, p, L[k - 1, k - 1], z[k - 1])
                rate(a, Q[k - 1], remaining, squares, floor[0], gains)
                p = argmax_abs(gains, quarter, sixteenth)
            if tol >= 0:
                left -= (z[k - 1] * scale / norm) ** 2
                if left <= limit + ROUNDINGS * eps or is_close_to_dependent(L, k):
                    growth = solve_upper(L, z, scale, x, k)
                    if not are_accurate(growth, spread, eps):
                        refine(L, signals[j], atoms, support, x, k, residual, scratch)
                    left = relative_error(signals[j], norm, atoms, support, x, k, residual)
        growth = solve_upper(L, z, scale, x, k)
        if not are_accurate(growth, spread, eps):
            refine(L, signals[j], atoms, support, x, k, residual, scratch)
        sort_by_index(support, x, k)
        counts[j] = k


@compiled_in_order
def extend_factor(L, Q, gram, k, p):
    """Row k of the factor when atom p joins, read off Q; returns the square of its diagonal entry."""
    w = gram[p, p]
    for l in range(k):
        L[k, l] = Q[l, p]
        w -= Q[l, p] * Q[l, p]
    return w


@compiled_in_order
def update(a, gram_row, Q, k, p, inverse, z):
    """Row k of Q, and the correlations with the new residual, in as few passes over memory as can be."""
    q, source, l = Q[k], gram_row, 0
    while k - l > 3:
        q0, q1, q2, q3 = Q[l], Q[l + 1], Q[l + 2], Q[l + 3]
        c0, c1, c2, c3 = q0[p], q1[p], q2[p], q3[p]
        for i in range(len(a)):
            q[i] = source[i] - c0 * q0[i] - c1 * q1[i] - c2 * q2[i] - c3 * q3[i]
        source = q
        l += 4
    if k - l == 3:
        q0, q1, q2 = Q[l], Q[l + 1], Q[l + 2]
        c0, c1, c2 = q0[p], q1[p], q2[p]
        for i in range(len(a)):
            t = (source[i] - c0 * q0[i] - c1 * q1[i] - c2 * q2[i]) * inverse
            q[i] = t
            a[i] -= z * t
    elif k - l == 2:
        q0, q1 = Q[l], Q[l + 1]
        c0, c1 = q0[p], q1[p]
        for i in range(len(a)):
            t = (source[i] - c0 * q0[i] - c1 * q1[i]) * inverse
            q[i] = t
            a[i] -= z * t
    elif k - l == 1:
        q0 = Q[l]
        c0 = q0[p]
        for i in range(len(a)):
            t = (source[i] - c0 * q0[i]) * inverse
            q[i] = t
            a[i] -= z * t
    else:
        for i in range(len(a)):
            t = source[i] * inverse
            q[i] = t
            a[i] -= z * t


@compiled_in_order
def rate(a, q, remaining, squares, floor, gains):
    """By how much each atom would lower the squared residual: a²/w, and nothing where w is only rounding."""
    for i in range(len(a)):
        w = remaining[i] - q[i] * q[i]
        remaining[i] = w
        gain = a[i] * a[i] / w
        gains[i] = gain if w > floor * squares[i] else 0


@compiled_in_order
def divide(a, scale):
    for i in range(len(a)):
        a[i] /= scale


@compiled_in_order
def is_close_to_dependent(L, k):
    """Whether an atom is so close to the span of those before that 1 − Σz² is no measure of the residual."""
    largest = abs(L[0, 0])
    for l in range(1, k):
        largest = max(largest, L[l, l])
    return largest > 8


@compiled_in_order
def solve_upper(L, z, scale, x, k):
    """Lᵀx = scale·z, with the inverse of the diagonal stored; returns max |x| / max |scale·z|."""
    before, after = z.dtype.type(0), z.dtype.type(0)
    for i in range(k - 1, -1, -1):
        t = z[i] * scale
        before = max(before, abs(t))
        for l in range(i + 1, k):
            t -= L[l, i] * x[l]
        x[i] = t * L[i, i]
        after = max(after, abs(x[i]))
    return after / before if k > 0 else before
