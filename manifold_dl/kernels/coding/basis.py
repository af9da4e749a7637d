"""The support of a greedy pursuit, compiled: an orthonormal basis that grows atom by atom.

With the Gram matrix G = DᵀD, choosing atom p adds one row to the Cholesky factor of G_II and one row q to Q,
the products of all atoms with the new direction of an orthonormal basis of the support:

    q = (G_p − Σ_l Q_l[p] Q_l) / √w,    w = G_pp − Σ_l Q_l[p]²,    a ← a − z q,    z = a_p / √w.

The factor is read off Q (L_kl = Q_l[p]), and the codes solve Lᵀx = z once, at the end. Rubinstein, Zibulevsky
and Elad's Batch-OMP computes a = a₀ − G_I x_I instead: as many operations, but it reads k rows of G per step
from the second-level cache, where this reads one.
"""

import numpy as np

from manifold_dl.kernels.backend import internal_in_order


@internal_in_order
def extend_factor(L: np.ndarray, Q: np.ndarray, gram: np.ndarray, k: int, p: int) -> float:
    """Row k of the factor when atom p joins, read off Q; returns the square of its diagonal entry."""
    w = gram[p, p]
    for l in range(k):
        L[k, l] = Q[l, p]
        w -= Q[l, p] * Q[l, p]
    return w


@internal_in_order
def update(a: np.ndarray, gram: np.ndarray, Q: np.ndarray, k: int, p: int, inverse: float, z: float) -> None:
    """Row k of Q, and the correlations with the new residual, in as few passes over memory as can be.

    Every loop names its rows by two indices: a view of a row is counted as a reference, which takes as long
    as a hundred entries. None writes a and reads three rows of Q, which LLVM would not vectorise.
    """
    if k == 0:
        for i in range(len(a)):
            t = gram[p, i] * inverse
            Q[0, i] = t
            a[i] -= z * t
    elif k == 1:
        c0 = Q[0, p]
        for i in range(len(a)):
            t = (gram[p, i] - c0 * Q[0, i]) * inverse
            Q[1, i] = t
            a[i] -= z * t
    elif k == 2:
        c0, c1 = Q[0, p], Q[1, p]
        for i in range(len(a)):
            t = (gram[p, i] - c0 * Q[0, i] - c1 * Q[1, i]) * inverse
            Q[2, i] = t
            a[i] -= z * t
    else:
        _orthogonalize(gram, Q, k, p)
        for i in range(len(a)):
            t = Q[k, i] * inverse
            Q[k, i] = t
            a[i] -= z * t


@internal_in_order
def _orthogonalize(gram: np.ndarray, Q: np.ndarray, k: int, p: int) -> None:
    """Row k of Q before it is divided by its norm, from three or more rows."""
    c0, c1, c2 = Q[0, p], Q[1, p], Q[2, p]
    for i in range(len(gram)):
        Q[k, i] = gram[p, i] - c0 * Q[0, i] - c1 * Q[1, i] - c2 * Q[2, i]
    for l in range(3, k):
        c0 = Q[l, p]
        for i in range(len(gram)):
            Q[k, i] -= c0 * Q[l, i]


@internal_in_order
def is_close_to_dependent(L: np.ndarray, k: int) -> bool:
    """Whether an atom is so close to the span of those before that 1 − Σz² is no measure of the residual."""
    largest = abs(L[0, 0])
    for l in range(1, k):
        largest = max(largest, L[l, l])
    return largest > 8


@internal_in_order
def solve_upper(L: np.ndarray, z: np.ndarray, scale: float, x: np.ndarray, k: int) -> float:
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
