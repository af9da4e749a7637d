"""K-SVD over one atom after the other, in plain NumPy: written to be read, not to be fast.

For atom i let E be the residual of its users with its own part put back, a signal in every row. The best unit
vector u is the leading right singular vector of E, for every ridge μ; the codes are x = E u/(1 + μ), and
E − x uᵀ is the new residual. Where Numba exists `compiled_ksvd` does the same; `stage.py` calls either.
"""

import numpy as np

# How close the two largest eigenvalues may come, relatively, before the vector is left to somebody else:
# in a tie it is any vector of a plane, and the answer is a matter of convention.
TIE = 1e-8

# Codes above so many times the largest entry of their signal cost its residual more than three bits.
LARGE_CODES = 8.0


def ksvd(
    order, begin, entries, signal_of, residual, atoms, codes, mu, power, signals, indptr, indices, large
):  # fmt: skip
    """Update the atoms `order`, one after the other, in place, with their codes and the residual.

    Atom i stands at the codes `entries[begin[i]:begin[i + 1]]`, and the entry e belongs to the signal (row
    of `residual`) `signal_of[e]`. With `power` the vector is one step of the power method from the old atom.

    Where the codes are `large` against their signal, its residual has lost the digits that matter, and
    putting the part of atom i back does not restore them: E is then computed from the signal itself, and
    from the support `indptr`, `indices`.

    Returns how many atoms of `order` were done. If not all, the next one has no clear leading vector; nothing
    of it has been touched, and the caller goes on behind it.
    """
    for done, i in enumerate(order):
        places = entries[begin[i] : begin[i + 1]]
        if len(places) == 0:
            continue
        users, start = signal_of[places], atoms[i].astype(float)
        E = residual[users] + codes[places, None] * start
        for k in np.flatnonzero(large[users]):
            own = slice(indptr[users[k]], indptr[users[k] + 1])
            others = codes[own] * (indices[own] != i)
            E[k] = signals[users[k]] - others.astype(float) @ atoms[indices[own]]
        u = _unit(E.T @ (E @ start)) if power else _leading(E)
        if u is None:
            return done
        if not u.any():  # the signals have nothing to say
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
    return len(order)


def large_codes(signals, indptr, codes):
    """Which signals have codes so large that y − D x has lost digits of y: its rounding grows with |x|."""
    pairs = zip(signals, indptr[:-1], indptr[1:], strict=True)
    return np.array(
        [np.abs(codes[a:b]).max(initial=0) > LARGE_CODES * np.abs(y).max() for y, a, b in pairs], dtype=bool
    )


def _leading(E):
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


def _unit(vector):
    norm = np.linalg.norm(vector)
    return vector / norm if norm > 0 else vector


def _fit(E, u, mu, dtype):
    """Σ ‖r‖² + μ x², from the residual, and the codes x that minimise it."""
    u = u.astype(float)
    x = (E @ u / (u @ u + mu)).astype(dtype)
    return np.sum((E - np.outer(x, u)) ** 2) + mu * np.sum(x.astype(float) ** 2), x
