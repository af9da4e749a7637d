"""The active-set method for atoms that are clearly independent, compiled: the lasso of nearly all signals.

With the atoms A of a signal and their signs s known, its codes are x = (AᵀA)⁻¹(Aᵀy − λs). Those of a
dictionary nearby are usually right, or wrong in a few atoms. `descend` is the method of `active_set.py` on
plain arrays, without the checks of rank that need a call per atom, in half the time. It returns −1
where a pivot is small, and the caller uses `active_set.py` instead. `lasso.py` calls it.

Arrays are passed one by one here: each time that a tuple of arrays is taken apart, Numba counts references to
them, which took 0.2 of the 1 µs per signal at 16×32.
"""

import numpy as np

from manifold_dl.kernels.backend import internal, internal_in_order
from manifold_dl.kernels.coding.common import argmax_abs, contains, residual_correlations, sort_by_index
from manifold_dl.kernels.coding.factor import are_accurate, inverse_row_bound

# An atom may depend on those before it if its squared distance from their span is a smaller fraction of its
# square.
PIVOT = 1e-6


@internal
def take(begin, end, indices, values, support, x, signs):
    """The codes that a signal begins with; how many atoms they have."""
    k = np.int64(0)
    for i in range(begin, end):
        if values[i] != 0 and k < len(x):
            support[k], x[k], signs[k] = indices[i], values[i], 1 if values[i] > 0 else -1
            k += 1
    return k


@internal
def descend(gram, a, penalty, allowed, support, x, signs, k, L, z, goal, h, folded):
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
        entered = argmax_abs(h, folded)
        if abs(h[entered]) <= allowed or contains(support, k, entered):
            return k  # an active atom exceeds the penalty by rounding: `are_optimal` says whether by more
        sign = x.dtype.type(1 if h[entered] > 0 else -1)
        if k < len(x):
            support[k], x[k], signs[k] = entered, 0, sign
            first, k = k, k + 1
        else:
            first = exchange(gram, support, x, signs, k, L, goal, entered, sign)
            if first < 0:
                return np.int64(-1)
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
def exchange(gram, support, x, signs, k, L, c, p, sign):
    """Exchange an active atom for p, where the active ones span all signals: d_p = Σ c_l d_l.

    Moving x_p up and x_A by −c leaves the fit as it is and lowers ‖x‖₁, until a coefficient meets zero.
    Returns the first place that changed, or −1 where ‖x‖₁ would not fall.
    """
    for l in range(k):
        t = sign * gram[p, support[l]]
        for q in range(l):
            t -= L[l, q] * c[q]
        c[l] = t * L[l, l]
    for l in range(k - 1, -1, -1):
        c[l] *= L[l, l]
        for q in range(l):
            c[q] -= c[l] * L[l, q]
    fall, out, step = x.dtype.type(0), np.int64(-1), x.dtype.type(0)
    for l in range(k):
        fall += c[l] * signs[l]
        if c[l] * signs[l] > 0 and (out < 0 or x[l] / c[l] < step):
            out, step = l, x[l] / c[l]
    if not fall > 1:
        return np.int64(-1)
    for l in range(k):
        x[l] -= step * c[l]
    for l in range(out + 1, k):
        support[l - 1], x[l - 1], signs[l - 1] = support[l], x[l], signs[l]
    support[k - 1], x[k - 1], signs[k - 1] = p, sign * step, sign
    return out


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


@internal
def are_optimal(h, penalty, slack, support, signs, k):
    """Whether ⟨d, r⟩ = λs for the active atoms, up to the slack."""
    worst = h.dtype.type(0)
    for l in range(k):
        worst = max(worst, abs(h[support[l]] - penalty * signs[l]))
    return worst <= slack


@internal_in_order
def solve_in_order(gram, a, penalty, support, x, signs, k, L, z):
    """The same solution with the atoms in increasing order; False if a pivot is small.

    The codes then depend on the support and the signs alone, and not on how they were found.
    """
    ascends = True
    for l in range(1, k):
        ascends &= support[l] > support[l - 1]
    if ascends:
        return True
    sort_by_index(support, x, k)
    for l in range(k):
        signs[l] = 1 if x[l] > 0 else -1
    return solve(gram, a, penalty, support, signs, np.int64(0), k, L, z, x)


@internal
def solve_accurately(gram, a, support, x, signs, k, L, z, eps):
    """Least squares on the support; False if the normal equations alone may leave a larger residual."""
    if not solve(gram, a, a.dtype.type(0), support, signs, np.int64(0), k, L, z, x):
        return False
    spread, largest, scale = 0.0, 0.0, 0.0
    for l in range(k):
        i = support[l]
        spread += inverse_row_bound(1 / (L[l, l] * L[l, l]), gram[i, i], spread)
        largest, scale = max(largest, abs(x[l])), max(scale, abs(a[i]))
    return largest == 0 or are_accurate(largest / scale, spread, eps)
