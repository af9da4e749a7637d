"""The lasso from signs that are nearly right, compiled: what an objective with ℓ₁ codes solves all the time.

With the atoms A of a signal and their signs s known, its codes are x = (AᵀA)⁻¹(Aᵀy − λs). Those of a
dictionary nearby are usually right, or wrong in a few atoms. `descend` is the active-set method of `lasso.py`
on plain arrays, without the checks of rank that need a call per atom, in half the time. It gives up (−1)
where a pivot is small, and the caller lets `lasso.py` decide. `kernels/reduced/lasso.py` calls it.

Arrays are passed one by one here: each time that a tuple of arrays is taken apart, Numba counts references to
them, which took 0.2 of the 1 µs per signal at 16×32.
"""

import numpy as np

from manifold_dl.kernels.backend import internal, internal_in_order
from manifold_dl.kernels.coding.common import argmax_abs, contains, residual_correlations

# An atom may depend on those before it if its squared distance from their span is a smaller fraction of its
# square.
PIVOT = 1e-6


@internal
def descend(gram, a, penalty, allowed, support, x, signs, k, L, z, goal, h, quarter, sixteenth):
    """The solution for one signal from k atoms with their codes and signs; how many there are then, or −1."""
    first = np.int64(0)
    for _ in range(16 + 4 * len(x)):
        if not solve(gram, a, penalty, support, signs, first, k, L, z, goal):
            return np.int64(-1)
        out = move(x, goal, signs, k)
        if out >= 0:
            for l in range(out + 1, k):
                support[l - 1], x[l - 1], signs[l - 1] = support[l], x[l], signs[l]
            first, k = out, k - 1
            continue
        residual_correlations(gram, a, support, x, k, h)
        entered = argmax_abs(h, quarter, sixteenth)
        if abs(h[entered]) <= allowed:
            return k
        if k == len(x) or contains(support, k, entered):
            return np.int64(-1)
        support[k], x[k], signs[k] = entered, 0, 1 if h[entered] > 0 else -1
        first, k = k, k + 1
    return np.int64(-1)


@internal_in_order
def solve(gram, a, penalty, support, signs, first, k, L, z, x):
    """x = (AᵀA)⁻¹(Aᵀy − λs) by Cholesky, of which the first rows are known; False if a pivot is small.

    The diagonal of L is stored inverted; z = L⁻¹(Aᵀy − λs).
    """
    for p in range(first, k):
        row, i = L[p], support[p]
        w, v = gram[i, i], a[i] - penalty * signs[p]
        least = PIVOT * w
        for q in range(p):
            other, t = L[q], gram[i, support[q]]
            for l in range(q):
                t -= other[l] * row[l]
            t *= other[q]
            row[q] = t
            w -= t * t
            v -= t * z[q]
        if not w > least:
            return False
        row[p] = 1 / np.sqrt(w)
        z[p] = v * row[p]
    for p in range(k):
        x[p] = z[p]
    for p in range(k - 1, -1, -1):
        row = L[p]
        t = x[p] * row[p]
        x[p] = t
        for q in range(p):
            x[q] -= t * row[q]
    return True


@internal
def move(x, goal, signs, k):
    """Move x to the goal, or to where the first coefficient meets zero: which one that is, or −1."""
    out, step = np.int64(-1), x.dtype.type(1)
    for l in range(k):
        if goal[l] * signs[l] <= 0:
            until_zero = x[l] / (x[l] - goal[l]) if x[l] != 0 else x[l]
            if until_zero < step or out < 0:
                out, step = l, until_zero
    for l in range(k):
        x[l] = x[l] + step * (goal[l] - x[l]) if out >= 0 else goal[l]
    return out
