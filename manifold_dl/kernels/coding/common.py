"""What the compiled coding kernels have in common: searches, order, norms, residuals.

The code of one signal is a pair of arrays of which the first k entries count. Nothing here allocates memory.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering, internal_in_order, internal_reordering
from manifold_dl.kernels.coding.dictionary import copy

# Below this many units of rounding a number that should be zero is taken to be zero.
ROUNDINGS = 64


class Code(NamedTuple):
    """The code of one signal while it is computed: the first k entries of both count."""

    support: np.ndarray  # which atoms
    x: np.ndarray  # their coefficients


@internal_in_order
def argmax_abs(a: np.ndarray, folded: np.ndarray) -> int:
    """Index of the entry largest in magnitude, among a multiple of 32; `folded` has a sixteenth as many.

    Entries i, i + q, i + 2q, ..., q = len(folded), are folded onto entry i, which compiles to vector
    instructions; then both halves of `folded` are searched together, as each comparison waits for the last.
    """
    q = len(folded)
    for i in range(q):
        largest = abs(a[i])
        for l in range(1, 16):
            largest = abs(a[l * q + i]) if abs(a[l * q + i]) > largest else largest
        folded[i] = largest
    half = q // 2
    p, largest, r, other = np.int64(0), folded[0], half, folded[half]
    for i in range(1, half):
        p = i if folded[i] > largest else p
        largest = folded[i] if folded[i] > largest else largest
        r = half + i if folded[half + i] > other else r
        other = folded[half + i] if folded[half + i] > other else other
    p = r if other > largest else p
    largest = other if other > largest else largest
    found = p
    for l in range(1, 16):  # no branch: it could not be predicted
        found = l * q + p if abs(a[l * q + p]) == largest else found
    return found


@internal_in_order
def contains(support: np.ndarray, k: int, p: int) -> bool:
    """Whether atom p is in the support. `p in support[:k]` takes longer to compile."""
    return position(support, k, p) < k


@internal_in_order
def position(support: np.ndarray, k: int, p: int) -> int:
    """Where atom p stands in the support, k if it does not."""
    for l in range(k):
        if support[l] == p:
            return l
    return k


@internal_in_order
def take_largest(h: np.ndarray, support: np.ndarray, k: int, end: int, folded: np.ndarray) -> int:
    """Append the atoms of the largest entries of h, up to `end`, setting those entries to zero."""
    while k < min(end, len(support)):
        p = argmax_abs(h, folded)
        if h[p] == 0:
            break
        support[k] = p
        h[p] = 0
        k += 1
    return k


@internal_in_order
def sort_by_index(support: np.ndarray, x: np.ndarray, k: int) -> None:
    """Bring the atoms into increasing order."""
    for i in range(1, k):
        p, v, l = support[i], x[i], i - 1
        while l >= 0 and support[l] > p:
            support[l + 1], x[l + 1] = support[l], x[l]
            l -= 1
        support[l + 1], x[l + 1] = p, v


@internal_in_order
def keep_largest(support: np.ndarray, x: np.ndarray, k: int, size: int) -> int:
    """Move the `size` coefficients largest in magnitude to the front; returns how many are kept."""
    for i in range(min(size, k)):
        best = i
        for l in range(i + 1, k):
            if abs(x[l]) > abs(x[best]):
                best = l
        support[i], support[best] = support[best], support[i]
        x[i], x[best] = x[best], x[i]
    return min(size, k)


@internal_in_order
def residual_budget(y: np.ndarray, tol: float) -> tuple[float, float, float]:
    """The norm of a signal, and the squared residual allowed and left, as fractions of its square."""
    if tol < 0:
        return 1.0, -1.0, 1.0
    norm = euclidean_norm(y)
    if norm <= np.sqrt(tol):  # a signal of zeros too
        return norm, 0.0, 0.0
    return norm, (np.sqrt(tol) / norm) ** 2, 1.0


@internal_reordering
def euclidean_norm(y: np.ndarray) -> float:
    """The norm of a signal or residual in the units of the kernels, whose squares are safe."""
    total = 0.0  # in double precision: it is compared with a tolerance
    for i in range(len(y)):
        total += np.float64(y[i]) * np.float64(y[i])
    return np.sqrt(total)


@internal_in_order
def residual_norm(atoms: np.ndarray, y: np.ndarray, code: Code, k: int, residual: np.ndarray) -> float:
    """‖y − Dx‖ from the residual itself: 1 − Σz² has lost every digit once the fit is nearly exact."""
    subtract_fit(atoms, y, code, k, residual)
    return euclidean_norm(residual)


@internal_in_order
def subtract_fit(atoms: np.ndarray, y: np.ndarray, code: Code, k: int, residual: np.ndarray) -> None:
    """residual = y − Dx."""
    support, x = code
    copy(y, residual)
    for l in range(k):
        atom = atoms[support[l]]
        for i in range(len(residual)):
            residual[i] -= x[l] * atom[i]


@internal_reordering
def residual_correlations(
    gram: np.ndarray, a: np.ndarray, support: np.ndarray, x: np.ndarray, k: int, h: np.ndarray
) -> None:
    """h = a − G_I x_I: the products of all atoms with the residual, four rows of G at a time."""
    copy(a, h)
    for l in range(0, k - 3, 4):
        g0, g1, g2, g3 = gram[support[l]], gram[support[l + 1]], gram[support[l + 2]], gram[support[l + 3]]
        x0, x1, x2, x3 = x[l], x[l + 1], x[l + 2], x[l + 3]
        for i in range(len(h)):
            h[i] -= x0 * g0[i] + x1 * g1[i] + x2 * g2[i] + x3 * g3[i]
    for l in range(k - k % 4, k):
        g0, x0 = gram[support[l]], x[l]
        for i in range(len(h)):
            h[i] -= x0 * g0[i]


@compiled_reordering
def product(a: np.ndarray, b: np.ndarray) -> float:
    """⟨a, b⟩."""
    total = a.dtype.type(0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
