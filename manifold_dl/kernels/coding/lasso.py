"""The lasso, compiled: min ½‖y − Dx‖² + λ‖x‖₁ by an active-set method on the Gram matrix.

With the active atoms A and their signs s known, the solution is a linear system: G_AA x_A = a_A − λs, where
a = Dᵀy. The method solves it, moves there until the first coefficient would change sign, drops that atom,
and repeats; then it lets in the atom that violates |⟨d, r⟩| ≤ λ most. Every move lowers the objective, so it
ends, and it ends at the solution rather than near it. From the codes of an earlier dictionary it usually
ends after a few moves. This is the feature-sign search of Lee, Battle, Raina and Ng (2007), one atom at a
time, as Lawson and Hanson solve non-negative least squares.

Stopping at |⟨d, r⟩| ≤ λ(1 + tol) for all atoms leaves a duality gap of at most tol times the objective: with
c = 1/(1 + tol) the point c·r is feasible for the dual, and the gap is (1 − c)²‖r‖²/2 + (1 − c)λ‖x‖₁.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering
from manifold_dl.kernels.coding.common import (
    ROUNDINGS,
    ROWS,
    argmax_abs,
    contains,
    correlate,
    keep_largest,
    residual_correlations,
    sort_by_index,
)
from manifold_dl.kernels.coding.factor import append_row, empty_factor, least_squares, solve


def lasso(dictionary, signals, path, relative, tol, refit, start):
    """Lasso codes of each row of `signals`, for the penalties of `path` in turn, each from the one before.

    With `relative` they are fractions of max |Dᵀy|, signal by signal. The last codes count; if `refit` is
    positive, only the `refit` largest of them, solved again by least squares. `start` holds initial codes:
    indptr, indices, values, signal by signal. Returns counts, indices and values as `coding.omp` does.
    """
    n, capacity = len(signals), min(dictionary.atoms.shape)
    counts, indices = np.empty(n, np.int32), np.empty((n, capacity), np.int32)
    values = np.empty((n, capacity), signals.dtype)
    eps = np.finfo(signals.dtype).eps
    path = np.asarray(path, signals.dtype)
    _lasso(*dictionary, signals, path, relative, tol, refit, eps, *start, counts, indices, values)
    return counts, indices, values


@compiled_reordering
def _lasso(
    atoms, tiles, gram, signals, path, relative, tol, refit, eps, start_indptr, start_indices, start_values,
    counts, indices, values,
):  # fmt: skip
    n, capacity = values.shape
    padded = len(gram)
    correlations = np.empty((ROWS, padded), gram.dtype)
    product = np.empty((ROWS, tiles.shape[2]), gram.dtype)
    quarter, sixteenth = np.empty(padded // 4, gram.dtype), np.empty(padded // 16, gram.dtype)
    factor, h = empty_factor(capacity, gram), np.empty(padded, gram.dtype)
    residual = np.empty(atoms.shape[1], gram.dtype)
    signs, goal = np.empty(capacity, gram.dtype), np.empty(capacity, gram.dtype)
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], tiles, product, correlations)
        a, active, x = correlations[j % ROWS], indices[j], values[j]
        k = 0
        for i in range(start_indptr[j], start_indptr[j + 1]):
            k = add(gram, factor, active, x, signs, k, start_indices[i], start_values[i], eps)
        largest = abs(a[argmax_abs(a, quarter, sixteenth)])
        for i in range(len(path)):
            penalty = path[i] * largest if relative else path[i]
            # A correlation that is only rounding violates nothing, however small the penalty.
            allowed = max(penalty * (1 + tol), ROUNDINGS * eps * largest)
            limits = penalty, allowed, eps
            k = descend(a, gram, limits, factor, active, x, signs, k, goal, h, quarter, sixteenth)
        if refit > 0:
            k = keep_largest(active, x, k, refit)
            k = least_squares(a, gram, factor, signals[j], atoms, active, x, k, eps, residual)
        sort_by_index(active, x, k)
        counts[j] = k


@compiled_reordering
def descend(a, gram, limits, factor, active, x, signs, k, goal, h, quarter, sixteenth):
    """The lasso solution for one signal, from the k active atoms given; returns how many are active."""
    penalty, allowed, eps = limits
    entered = -1
    for _ in range(64 + 16 * len(x)):  # the method ends by itself; rounding must not keep it going
        while k > 0:
            for l in range(k):
                goal[l] = a[active[l]] - penalty * signs[l]
            solve(factor.L, goal, k)
            out, step = -1, x.dtype.type(1)
            for l in range(k):
                if goal[l] * signs[l] <= 0:
                    until_zero = x[l] / (x[l] - goal[l]) if x[l] != 0 else x[l]
                    if until_zero < step or out < 0:
                        out, step = l, until_zero
            for l in range(k):
                x[l] += step * (goal[l] - x[l]) if out >= 0 else goal[l] - x[l]
            if out < 0:
                break
            gone = active[out]
            k = remove(gram, factor, active, x, signs, k, out, eps)
            if gone == entered:
                return k  # the atom let in moved the wrong way: what it could gain is only rounding
        residual_correlations(a, gram, active, x, k, h)
        entered = argmax_abs(h, quarter, sixteenth)
        if abs(h[entered]) <= allowed or contains(active, k, entered):
            return k
        sign = np.sign(h[entered])
        before = k
        k = add(gram, factor, active, x, signs, k, entered, sign, eps)
        if k > before:
            x[before] = 0
        else:
            k = exchange(gram, factor, active, x, signs, k, entered, sign, goal, eps)
            if not contains(active, k, entered):
                return k
    return k


@compiled_reordering
def add(gram, factor, active, x, signs, k, p, value, eps):
    """Append atom p, with coefficient `value`, unless it is zero or depends on the active atoms."""
    if value == 0 or k == len(x) or not append_row(gram, factor, active, k, p, eps):
        return k
    active[k], x[k], signs[k] = p, value, np.sign(value)
    return k + 1


@compiled_reordering
def remove(gram, factor, active, x, signs, k, out, eps):
    """Take out one atom; the rows of the Cholesky factor below it are computed again."""
    kept = out
    for l in range(out + 1, k):
        kept = add(gram, factor, active, x, signs, kept, active[l], x[l], eps)
    return kept


@compiled_reordering
def exchange(gram, factor, active, x, signs, k, p, sign, goal, eps):
    """Let in an atom that depends on the active ones, d_p = Σ c_l d_l, in place of one of them.

    Moving x_p up and x_A by −c leaves the fit as it is and lowers ‖x‖₁, until a coefficient meets zero. Where
    it would not lower ‖x‖₁ the violation that called p was only rounding, and nothing is done.
    """
    for l in range(k):
        goal[l] = sign * gram[p, active[l]]
    solve(factor.L, goal, k)
    fall = x.dtype.type(0)
    for l in range(k):
        fall += goal[l] * signs[l]
    if not fall > 1:
        return k
    out, step = -1, x.dtype.type(0)
    for l in range(k):
        if goal[l] * signs[l] > 0:
            until_zero = x[l] / goal[l]
            if until_zero < step or out < 0:
                out, step = l, until_zero
    for l in range(k):
        x[l] -= step * goal[l]
    k = remove(gram, factor, active, x, signs, k, out, eps)
    return add(gram, factor, active, x, signs, k, p, sign * step, eps)
