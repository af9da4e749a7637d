"""The K-SVD sweep of `reference_ksvd.py`, compiled: no Python between one atom and the next.

`leading.py` finds the vectors. What it cannot decide (a tie, numbers that are not finite) is left to the
caller.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled, internal
from manifold_dl.kernels.reduced.leading import LIMITS, leading, memory_for
from manifold_dl.kernels.reduced.reference_ksvd import LARGE_CODES, Sweep, SweepData, SweepState
from manifold_dl.kernels.reduced.squares import normalise
from manifold_dl.kernels.status import NOT_UNIQUE, OK


def ksvd_sweep(order: np.ndarray, data: SweepData, state: SweepState, mu: float, power: bool) -> Sweep:
    """See `reference_ksvd.ksvd_sweep`."""
    most_users = int(np.diff(data.first)[order].max(initial=0))
    squares, large = memory_for(state.atoms.shape[1], most_users)
    return Sweep(*_sweep(order, data, state, float(mu), power, most_users, squares, large, LIMITS))


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
def _sweep(order, data, state, mu, power, most_users, squares, large, limits):
    atoms, codes, residual = state.atoms, state.codes, state.residual
    m = atoms.shape[1]
    E_memory = np.empty((most_users, m))
    u, start, point, rounded = np.empty(m), np.empty(m), np.empty(m), np.empty(m, atoms.dtype)
    x_memory, x_before_memory = np.empty(most_users, codes.dtype), np.empty(most_users, codes.dtype)
    any_large = data.large.any()
    for done in range(len(order)):
        i = order[done]
        places = data.entries[data.first[i] : data.first[i + 1]]
        n = len(places)
        if n == 0:
            continue
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
        elif leading(E, start, squares, large, limits, u) == NOT_UNIQUE:
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
