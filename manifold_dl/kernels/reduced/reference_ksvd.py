"""K-SVD over one atom after the other, in plain NumPy: written to be read, not to be fast.

For atom i let E be the residual of its users with its own contribution added again, a signal in every row.
The best unit vector u is the leading right singular vector of E, for every ridge μ; the codes are x = E u/(1
+ μ), and E − x uᵀ is the new residual. `ksvd.py` has the same compiled; `updates/ksvd.py` calls either.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.status import NOT_UNIQUE, OK

# How close the two largest eigenvalues may come, relatively, before there is no clear leading vector:
# in a tie it is any vector of a plane.
TIE = 1e-8

# Codes above so many times the largest entry of their signal cost its residual more than three bits.
LARGE_CODES = 8.0


class SweepData(NamedTuple):
    """What a sweep reads: the signals, their supports by signal and by atom."""

    signals: np.ndarray  # n×m, a signal in every row
    indptr: np.ndarray
    indices: np.ndarray
    first: np.ndarray  # atom i has the codes entries[first[i]:first[i + 1]]
    entries: np.ndarray
    signal_of: np.ndarray  # the signal of every code
    large: np.ndarray  # n booleans: `large_codes`


class SweepState(NamedTuple):
    """What a sweep changes, in place."""

    atoms: np.ndarray  # k×m
    codes: np.ndarray
    residual: np.ndarray  # n×m: Y − D X


class Sweep(NamedTuple):
    """How far a sweep came, and why it ended."""

    status: int  # OK, or NOT_UNIQUE for the atom after the last one
    n_updated: int  # atoms of `order`


def ksvd_sweep(order: np.ndarray, data: SweepData, state: SweepState, mu: float, power: bool) -> Sweep:
    """Update the atoms `order`, one after the other, with their codes and the residual.

    With `power` the vector is one step of the power method from the old atom. Where the codes of a signal are
    large, its residual has lost the digits that matter, and adding the contribution of atom i again does not
    restore them: E is then computed from the signal itself.

    A sweep ends before an atom that has no clear leading vector (NOT_UNIQUE); nothing of it is changed then.
    """
    atoms, codes, residual = state
    signals, indptr, indices = data.signals, data.indptr, data.indices
    for done, i in enumerate(order):
        places = data.entries[data.first[i] : data.first[i + 1]]
        if len(places) == 0:
            continue
        users, start = data.signal_of[places], atoms[i].astype(float)
        E = residual[users] + codes[places, None] * start
        for k in np.flatnonzero(data.large[users]):
            own = slice(indptr[users[k]], indptr[users[k] + 1])
            others = codes[own] * (indices[own] != i)
            E[k] = signals[users[k]] - others.astype(float) @ atoms[indices[own]]
        u = _unit(E.T @ (E @ start)) if power else _leading(E)
        if u is None:
            return Sweep(NOT_UNIQUE, done)
        if not u.any():  # the signals determine no direction
            u = start
        if u @ start < 0:
            u = -u  # of the two signs, the one nearer to where the atom was
        u = u.astype(atoms.dtype)
        before, x_before = _fit(E, atoms[i], mu, codes.dtype)
        after, x = _fit(E, u, mu, codes.dtype)
        # Within the rounding of the sums a rise means nothing.
        if not (np.isfinite(u).all() and after <= before + 4 * np.finfo(float).eps * before):
            u, x = atoms[i].copy(), x_before
        atoms[i], codes[places] = u, x
        residual[users] = E - np.outer(x, u)
    return Sweep(OK, len(order))


def large_codes(signals: np.ndarray, indptr: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Which signals have codes so large that y − D x has lost digits of y: its rounding grows with |x|."""
    pairs = zip(signals, indptr[:-1], indptr[1:], strict=True)
    return np.array(
        [np.abs(codes[a:b]).max(initial=0) > LARGE_CODES * np.abs(y).max() for y, a, b in pairs], dtype=bool
    )


def _leading(E: np.ndarray) -> np.ndarray | None:
    """The leading right singular vector of E, from the smaller of its two Gram matrices; None if unclear."""
    gram = E.T @ E if len(E) >= E.shape[1] else E @ E.T
    energy = np.trace(gram)
    if energy == 0:
        return np.zeros(E.shape[1])
    if not np.isfinite(energy):
        return None
    values, vectors = np.linalg.eigh(gram / energy)
    if len(values) > 1 and values[-1] - values[-2] <= TIE * values[-1]:
        return None
    return vectors[:, -1] if len(E) >= E.shape[1] else _unit(E.T @ vectors[:, -1])


def _unit(vector: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(vector)
    return vector / norm if norm > 0 else vector


def _fit(E: np.ndarray, u: np.ndarray, mu: float, dtype: np.dtype) -> tuple[float, np.ndarray]:
    """Σ ‖r‖² + μ x², from the residual, and the codes x that minimise it."""
    u = u.astype(float)
    x = (E @ u / (u @ u + mu)).astype(dtype)
    return np.sum((E - np.outer(x, u)) ** 2) + mu * np.sum(x.astype(float) ** 2), x
