"""The K-SVD sweep of `reference_ksvd.py`, compiled: no Python between one atom and the next.

The leading eigenvector of a Gram matrix G comes from squaring it: G, G², G⁴, ..., each divided by its trace,
until only one eigenvalue is left. Every squaring rounds like one product, and the gap between the first two
eigenvalues doubles each time, so the error is that of the first product: ε over the gap, as for any other
method. What the squares cannot decide (a tie, numbers that are not finite), and matrices so large that
LAPACK is faster, are left to the caller.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled, internal
from manifold_dl.kernels.reduced.reference_ksvd import LARGE_CODES, Sweep, SweepData, SweepState
from manifold_dl.kernels.status import NOT_UNIQUE, OK

# 30 squarings tell eigenvalues apart whose ratio is 1 − 2e-8.
SQUARINGS = 30

# When this much is left of the other eigenvalues, the next square has 1e-18 of them.
NEGLIGIBLE = 1e-9

# The largest Gram matrix to be squared. Up to here OpenBLAS runs a product on the calling thread, and the
# bits do not depend on its number of threads; for the same reason tall products are made in pieces.
LARGEST = 64
MULTIPLICATIONS = LARGEST**3


class Limits(NamedTuple):
    """The constants above, as arguments: Numba's cache on disk would not notice a change."""

    squarings: int
    negligible: float
    largest: int
    multiplications: int


def ksvd_sweep(order: np.ndarray, data: SweepData, state: SweepState, mu: float, power: bool) -> Sweep:
    """See `reference_ksvd.ksvd_sweep`."""
    most_users = int(np.diff(data.first)[order].max(initial=0))
    limits = Limits(SQUARINGS, NEGLIGIBLE, LARGEST, MULTIPLICATIONS)
    return Sweep(*_sweep(order, data, state, float(mu), power, most_users, limits))


def large_codes(signals: np.ndarray, indptr: np.ndarray, codes: np.ndarray) -> np.ndarray:
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
def _sweep(order, data, state, mu, power, most_users, limits):
    atoms, codes, residual = state.atoms, state.codes, state.residual
    m = atoms.shape[1]
    E_memory = np.empty((most_users, m))
    u, start, point, rounded = np.empty(m), np.empty(m), np.empty(m), np.empty(m, atoms.dtype)
    x_memory, x_before_memory = np.empty(most_users, codes.dtype), np.empty(most_users, codes.dtype)
    gram_memory = np.empty((2, min(m, most_users, limits.largest) ** 2))
    any_large = data.large.any()
    for done in range(len(order)):
        i = order[done]
        places = data.entries[data.first[i] : data.first[i + 1]]
        n = len(places)
        if n == 0:
            continue
        if min(n, m) > limits.largest and not power:
            return NOT_UNIQUE, done  # none that squaring finds in time
        E, x, x_before, atom = E_memory[:n], x_memory[:n], x_before_memory[:n], atoms[i]
        for p in range(m):
            start[p] = atom[p]
        _add_own_contribution(data, state, places, start, E)
        if any_large:
            for k in range(n):
                j = data.signal_of[places[k]]
                if data.large[j]:
                    _subtract_others(data, state, j, i, E, k)
        if power:
            power_step(E, start, u)
        elif leading(E, gram_memory, limits, u) == NOT_UNIQUE:
            return NOT_UNIQUE, done
        is_zero = _nearer_sign(u, start, rounded, point)
        before, after = fit(E, start, mu, x_before), fit(E, point, mu, x)
        # Within the rounding of the sums a rise means nothing. Zero: the signals determine no direction.
        if after <= before + 4 * np.finfo(np.float64).eps * before and not is_zero:
            for p in range(m):
                atom[p] = start[p] = rounded[p]
        else:
            x = x_before
        for k in range(n):
            j = data.signal_of[places[k]]
            codes[places[k]] = x[k]
            for p in range(m):
                residual[j, p] = E[k, p] - x[k] * start[p]
    return OK, len(order)


@internal
def _add_own_contribution(data, state, places, atom, E):
    """E becomes the residual of the users of an atom, with the contribution of the atom added again."""
    for k in range(len(places)):
        j, code = data.signal_of[places[k]], state.codes[places[k]]
        for p in range(len(atom)):
            E[k, p] = state.residual[j, p] + code * atom[p]


@internal
def _subtract_others(data, state, j, i, E, k):
    """Row k of E becomes signal j without what its atoms other than i contribute."""
    for p in range(E.shape[1]):
        E[k, p] = data.signals[j, p]
    for a in range(data.indptr[j], data.indptr[j + 1]):
        other, x = data.indices[a], state.codes[a]
        if other != i:
            for p in range(E.shape[1]):
                E[k, p] -= x * state.atoms[other, p]


@internal
def _nearer_sign(u, start, rounded, point):
    """u or −u, the one nearer to `start`, rounded to the precision of the atoms; whether it is zero."""
    aligned, is_zero = 0.0, True
    for p in range(len(u)):
        aligned += u[p] * start[p]
    for p in range(len(u)):
        rounded[p] = -u[p] if aligned < 0 else u[p]
        point[p] = rounded[p]
        is_zero = is_zero and u[p] == 0
    return is_zero


@internal
def power_step(E, atom, u):
    u[:] = 0
    for k in range(len(E)):
        product = 0.0
        for p in range(len(u)):
            product += E[k, p] * atom[p]
        for p in range(len(u)):
            u[p] += product * E[k, p]
    normalise(u)


@internal
def leading(E, memory, limits, u):
    """u becomes the leading right singular vector of E, zero if E is; NOT_UNIQUE where it cannot be told."""
    n, m = E.shape
    size = min(n, m)
    A = memory[0, : size * size].reshape((size, size))
    B = memory[1, : size * size].reshape((size, size))
    if n < m:
        np.dot(E, E.T, A)
    else:
        rows = max(1, limits.multiplications // (m * m))
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
        return OK
    left = np.inf
    for _ in range(limits.squarings):
        scale(A, energy)
        np.dot(A, A, B)
        A, B = B, A
        energy = trace(A)  # Σ λ² of eigenvalues with Σ λ = 1
        left = 1 - energy
        if left <= limits.negligible:
            break
    if not left <= limits.negligible:
        return NOT_UNIQUE
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
    return OK


@internal
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


@internal
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


@internal
def normalise(u):
    total = 0.0
    for p in range(len(u)):
        total += u[p] * u[p]
    if total > 0:
        norm = np.sqrt(total)
        for p in range(len(u)):
            u[p] /= norm
