"""The orthonormal basis of a pursuit with weights, on the entries that have one: √w∘d = QᵀR for each atom.

The diagonal of R is stored inverted. `weighted.py` calls it.
"""

import numpy as np

from manifold_dl.kernels.backend import internal_in_order, internal_reordering


@internal_reordering
def extend(
    atoms: np.ndarray,
    p: int,
    s: np.ndarray,
    places: np.ndarray,
    count: int,
    Q: np.ndarray,
    R: np.ndarray,
    k: int,
) -> float:
    """Row k of Q, not yet of norm 1, and column k of R when an atom joins; returns its squared norm.

    Where the projection takes more than half of the norm it is made once more, so that the row is orthogonal
    to the others in spite of rounding.
    """
    for i in range(count):
        Q[k, i] = s[i] * atoms[p, places[i]]
    for l in range(k):
        R[l, k] = 0
    after = squared_norm(Q[k], count)
    for _ in range(2 if k > 0 else 0):
        before = after
        for l in range(k):
            t = after * 0
            for i in range(count):
                t += Q[l, i] * Q[k, i]
            R[l, k] += t
            for i in range(count):
                Q[k, i] -= t * Q[l, i]
        after = squared_norm(Q[k], count)
        if after > 0.25 * before:
            break
    return after


@internal_in_order
def size_of_fit(
    squares: np.ndarray, support: np.ndarray, p: int, R: np.ndarray, c: np.ndarray, k: int
) -> float:
    """‖d_p‖² + Σ_l c_l²‖d_l‖², where Σ_l c_l d_l is closest to d_p: the scale of its rounding."""
    size = squares[p]
    for l in range(k):
        c[l] = R[l, k]
    solve(R, c, c, k)
    for l in range(k):
        size += c[l] * c[l] * squares[support[l]]
    return size


@internal_reordering
def project(residual: np.ndarray, count: int, Q: np.ndarray, k: int, inverse: float, z: np.ndarray) -> float:
    """Take direction k, multiplied by `inverse`, out of the residual; returns its squared norm."""
    t = residual[0] * 0
    for i in range(count):
        Q[k, i] *= inverse
        t += Q[k, i] * residual[i]
    z[k] = t
    for i in range(count):
        residual[i] -= t * Q[k, i]
    return squared_norm(residual, count)


@internal_in_order
def as_direction(c: np.ndarray, k: int, inverse: float) -> None:
    """The coefficients of direction k, from those of the point closest to its atom."""
    for l in range(k):
        c[l] *= -inverse
    c[k] = inverse


@internal_in_order
def solve(R: np.ndarray, z: np.ndarray, x: np.ndarray, k: int) -> None:
    """Rx = z, with the inverse of the diagonal stored; x may be z."""
    for i in range(k - 1, -1, -1):
        t = z[i]
        for l in range(i + 1, k):
            t -= R[i, l] * x[l]
        x[i] = t * R[i, i]


@internal_reordering
def squared_norm(a: np.ndarray, count: int) -> float:
    """‖a‖² of the first `count` entries."""
    total = a.dtype.type(0)
    for i in range(count):
        total += a[i] * a[i]
    return total
