"""The K-SVD sweep of `reference_ksvd.py`, compiled: no Python between one atom and the next.

The leading eigenvector of a Gram matrix G comes from squaring it: G, G², G⁴, ..., each divided by its trace,
until only one eigenvalue is left. Every squaring rounds like one product, and the gap between the first two
eigenvalues doubles each time, so the error is that of the first product: ε over the gap, as for any other
method. What the squares cannot decide (a tie, numbers that are not finite), and matrices so large that
LAPACK is faster, are left to the caller.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled
from manifold_dl.kernels.reduced.reference_ksvd import LARGE_CODES

# 30 squarings tell eigenvalues apart whose ratio is 1 − 2e-8.
SQUARINGS = 30

# When this much is left of the other eigenvalues, the next square has 1e-18 of them.
NEGLIGIBLE = 1e-9

# The largest Gram matrix to be squared. Up to here OpenBLAS runs a product on the calling thread, and the
# bits do not depend on its number of threads; for the same reason tall products are made in pieces.
LARGEST = 64
MULTIPLICATIONS = LARGEST**3


def ksvd(
    order, begin, entries, signal_of, residual, atoms, codes, mu, power, signals, indptr, indices, large
):  # fmt: skip
    """See `reference_ksvd.ksvd`."""
    largest = np.diff(begin)[order].max(initial=0)
    # Constants are arguments, because Numba's cache on disk would not notice a change.
    limits = (SQUARINGS, NEGLIGIBLE, LARGEST, MULTIPLICATIONS)
    return _sweep(
        order, begin, entries, signal_of, residual, atoms, codes, float(mu), power,
        signals, indptr, indices, large, largest, limits,
    )  # fmt: skip


def large_codes(signals, indptr, codes):
    """See `reference_ksvd.large_codes`."""
    large = np.empty(len(signals), np.bool_)
    _large_codes(signals, indptr, codes, LARGE_CODES, large)
    return large


@compiled
def _large_codes(signals, indptr, codes, ratio, large):
    for j in range(len(signals)):
        code, entry = 0.0, 0.0
        for a in range(indptr[j], indptr[j + 1]):
            code = max(code, abs(codes[a]))
        for p in range(signals.shape[1]):
            entry = max(entry, abs(signals[j, p]))
            if code <= ratio * entry:  # as a rule the first entries tell
                break
        large[j] = code > ratio * entry


@compiled
def _sweep(
    order, begin, entries, signal_of, residual, atoms, codes, mu, power,
    signals, indptr, indices, large, largest, limits,
):  # fmt: skip
    m = atoms.shape[1]
    E_all = np.empty((largest, m))
    u, start, point, rounded = np.empty(m), np.empty(m), np.empty(m), np.empty(m, atoms.dtype)
    x_all, x_before_all = np.empty(largest, codes.dtype), np.empty(largest, codes.dtype)
    memory = np.empty((2, min(m, largest, limits[2]) ** 2))
    any_large = large.any()
    for done in range(len(order)):
        i = order[done]
        places = entries[begin[i] : begin[i + 1]]
        n = len(places)
        if n == 0:
            continue
        if min(n, m) > limits[2] and not power:
            return done
        E, x, x_before, atom = E_all[:n], x_all[:n], x_before_all[:n], atoms[i]
        for p in range(m):
            start[p] = atom[p]
        for k in range(n):
            j, code = signal_of[places[k]], codes[places[k]]
            for p in range(m):
                E[k, p] = residual[j, p] + code * start[p]
        if any_large:
            for k in range(n):
                j = signal_of[places[k]]
                if large[j]:
                    without(signals, j, indptr, indices, codes, i, atoms, E, k)
        if power:
            power_step(E, start, u)
        elif not leading(E, memory, limits, u):
            return done
        aligned = 0.0
        for p in range(m):
            aligned += u[p] * start[p]
        zero = True
        for p in range(m):
            rounded[p] = -u[p] if aligned < 0 else u[p]  # of the two signs, the one nearer to the old atom
            point[p] = rounded[p]
            zero = zero and u[p] == 0
        before, after = fit(E, start, mu, x_before), fit(E, point, mu, x)
        # Within the rounding of the sums a rise means nothing. Zeros: the signals have nothing to say.
        if after <= before + 4 * np.finfo(np.float64).eps * before and not zero:
            for p in range(m):
                atom[p] = start[p] = rounded[p]
        else:
            x = x_before
        for k in range(n):
            j = signal_of[places[k]]
            codes[places[k]] = x[k]
            for p in range(m):
                residual[j, p] = E[k, p] - x[k] * start[p]
    return len(order)


@compiled
def without(signals, j, indptr, indices, codes, i, atoms, E, k):
    """Row k of E becomes signal j without what its atoms other than i contribute."""
    for p in range(E.shape[1]):
        E[k, p] = signals[j, p]
    for a in range(indptr[j], indptr[j + 1]):
        other, x = indices[a], codes[a]
        if other != i:
            for p in range(E.shape[1]):
                E[k, p] -= x * atoms[other, p]


@compiled
def power_step(E, atom, u):
    u[:] = 0
    for k in range(len(E)):
        product = 0.0
        for p in range(len(u)):
            product += E[k, p] * atom[p]
        for p in range(len(u)):
            u[p] += product * E[k, p]
    normalise(u)


@compiled
def leading(E, memory, limits, u):
    """The leading right singular vector of E, zero if E is; False where it is left to others."""
    squarings, negligible, _, multiplications = limits
    n, m = E.shape
    size = min(n, m)
    A = memory[0, : size * size].reshape((size, size))
    B = memory[1, : size * size].reshape((size, size))
    if n < m:
        np.dot(E, E.T, A)
    else:
        rows = max(1, multiplications // (m * m))
        A[:] = 0
        for start in range(0, n, rows):
            some = E[start : min(start + rows, n)]
            np.dot(some.T, some, B)
            for p in range(m):
                for q in range(m):
                    A[p, q] += B[p, q]
    energy = trace(A)
    if energy == 0:
        u[:] = 0
        return True
    left = np.inf
    for _ in range(squarings):
        scale(A, energy)
        np.dot(A, A, B)
        A, B = B, A
        energy = trace(A)  # Σ λ² of eigenvalues with Σ λ = 1
        left = 1 - energy
        if left <= negligible:
            break
    if not left <= negligible:
        return False
    top = 0
    for k in range(size):
        if A[k, k] > A[top, top]:
            top = k
    v = A[top]  # all rows are multiples of the vector, and this one is the longest
    if n < m:
        normalise(v)
        u[:] = 0
        for k in range(n):
            for p in range(m):
                u[p] += v[k] * E[k, p]
    else:
        for p in range(m):
            u[p] = v[p]
    normalise(u)
    return True


@compiled
def fit(E, atom, mu, x):
    """Σ ‖r‖² + μ x², from the residual, and the codes x that minimise it."""
    m = len(atom)
    gram, value = mu, 0.0
    for p in range(m):
        gram += atom[p] * atom[p]
    for k in range(len(E)):
        product = 0.0
        for p in range(m):
            product += E[k, p] * atom[p]
        x[k] = product / gram
        for p in range(m):
            rest = E[k, p] - x[k] * atom[p]
            value += rest * rest
        value += mu * x[k] * x[k]
    return value


@compiled
def trace(A):
    total = 0.0
    for k in range(len(A)):
        total += A[k, k]
    return total


@compiled
def scale(A, divisor):
    for k in range(len(A)):
        for l in range(len(A)):
            A[k, l] /= divisor


@compiled
def normalise(u):
    total = 0.0
    for p in range(len(u)):
        total += u[p] * u[p]
    if total > 0:
        norm = np.sqrt(total)
        for p in range(len(u)):
            u[p] /= norm
