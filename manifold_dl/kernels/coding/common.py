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
def argmax_abs(a: np.ndarray, quarter: np.ndarray, sixteenth: np.ndarray) -> int:
    """Index of the entry largest in magnitude, by two foldings that compile to vector instructions."""
    _fold(a, quarter)
    _fold(quarter, sixteenth)
    p, largest = np.int64(0), sixteenth[0]
    for i in range(1, len(sixteenth)):
        p = i if sixteenth[i] > largest else p
        largest = sixteenth[i] if sixteenth[i] > largest else largest
    return _unfold(a, _unfold(quarter, p, len(sixteenth), largest), len(quarter), largest)


@internal_in_order
def _fold(a: np.ndarray, quarter: np.ndarray) -> None:
    """The largest magnitude of entries i, i + q, i + 2q and i + 3q, for every i < q."""
    q = len(quarter)
    first, second, third, fourth = a[:q], a[q : 2 * q], a[2 * q : 3 * q], a[3 * q : 4 * q]
    for i in range(q):
        left = abs(first[i]) if abs(first[i]) > abs(second[i]) else abs(second[i])
        right = abs(third[i]) if abs(third[i]) > abs(fourth[i]) else abs(fourth[i])
        quarter[i] = left if left > right else right


@internal_in_order
def _unfold(a: np.ndarray, p: int, q: int, largest: float) -> int:
    """Which of the four entries folded onto p was the largest. No branch: it could not be predicted."""
    found = p
    for i in range(1, 4):
        found = p + i * q if abs(a[p + i * q]) == largest else found
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
def take_largest(
    h: np.ndarray, support: np.ndarray, k: int, end: int, quarter: np.ndarray, sixteenth: np.ndarray
) -> int:
    """Append the atoms of the largest entries of h, up to `end`, setting those entries to zero."""
    while k < min(end, len(support)):
        p = argmax_abs(h, quarter, sixteenth)
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


@internal_in_order
def euclidean_norm(y: np.ndarray) -> float:
    """The norm, with the largest entry brought to 1 so that no square under- or overflows."""
    largest = 0.0
    for i in range(len(y)):
        largest = max(largest, abs(y[i]))
    if largest == 0:
        return 0.0
    total = 0.0
    for i in range(len(y)):
        total += (y[i] / largest) ** 2
    return largest * np.sqrt(total)


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
