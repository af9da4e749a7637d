"""The Cholesky factor of the Gram matrix of a support: grown atom by atom, checked for rank, solved with.

For the atoms I of one signal G_II = LLᵀ; the diagonal of L is stored inverted. The pursuits work with G
rather than with the atoms, because that is fast, and G has half the digits. Two checks make up for it.

Rank. Atom p is at the squared distance w from the span of the support, where Σ_l c_l d_l is closest to it.
Rounding of the products in G makes w wrong by about eps·(‖d_p‖² + Σ_l c_l²‖d_l‖²), so an atom joins only if w
is well above that (`inverse_row`). Comparing w with eps·‖d_p‖² is not enough: with c of 1e3 an atom in
the span appears to be outside of it, and in single precision its coefficient was 1e13.

Accuracy. Where the coefficients are large and the atoms nearly dependent, the normal equations alone leave a
squared residual well above the least one. `refine` corrects them from the residual itself (the corrected
seminormal equations; Björck, 1987, Stability analysis of the method of seminormal equations).
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering, internal_in_order, internal_reordering
from manifold_dl.kernels.coding.common import ROUNDINGS, Code, product, subtract_fit
from manifold_dl.kernels.coding.interface import PreparedDictionary
from manifold_dl.kernels.status import OK, RANK_DEFICIENT

# Bounds are good enough up to this fraction of what is allowed: `are_accurate` uses their sum, too.
CHEAP = 16

# Each refinement multiplies the error by about eps·‖L⁻¹‖², usually far below 1; four are enough at 1/2.
REFINEMENTS = 4


class Factor(NamedTuple):
    """The factor of one support, and what its checks need."""

    L: np.ndarray  # the first k rows count; the diagonal is inverted
    spread: np.ndarray  # spread[k]: an upper bound of ‖L⁻¹‖_F² of the first k + 1 rows, for atoms of norm 1
    scratch: np.ndarray  # as long as a row


@internal_in_order
def empty_factor(size: int, gram: np.ndarray) -> Factor:
    """Memory for supports of at most `size` atoms."""
    return Factor(np.empty((size, size), gram.dtype), np.empty(size, gram.dtype), np.empty(size, gram.dtype))


@internal_reordering
def append_row(gram: np.ndarray, factor: Factor, support: np.ndarray, k: int, p: int, eps: float) -> int:
    """Row k of the factor when atom p joins; RANK_DEFICIENT where p depends on the k atoms before it."""
    L, spread, c = factor
    row = L[k]
    w = gram[p, p]
    for l in range(k):
        other, t = L[l], gram[p, support[l]]
        for i in range(l):
            t -= other[i] * row[i]
        t *= other[l]
        row[l] = t
        w -= t * t
    before = spread[k - 1] if k > 0 else w * 0
    inverse = inverse_row_bound(w, gram[p, p], before)
    if inverse > 1 / (CHEAP * ROUNDINGS * eps):
        inverse = inverse_row(gram, L, support, k, gram[p, p], w, c)
    if not inverse <= 1 / (ROUNDINGS * eps):
        return RANK_DEFICIENT
    row[k] = 1 / np.sqrt(w)
    spread[k] = before + inverse
    return OK


@internal_in_order
def inverse_row_bound(w: float, square: float, spread: float) -> float:
    """An upper bound of `inverse_row` that costs nothing.

    ‖c‖² is at most `spread`, which bounds ‖L⁻¹‖_F² of the rows before, times the squared norm of row k of L.
    """
    return (square + spread * (square - w)) / w if w > 0 else np.inf


@internal_reordering
def inverse_row(
    gram: np.ndarray, L: np.ndarray, support: np.ndarray, k: int, square: float, w: float, c: np.ndarray
) -> float:
    """(‖d_p‖² + Σ_l c_l²‖d_l‖²)/w, the squared norm of row k of L⁻¹ for atoms of norm 1."""
    if not w > 0:
        return np.inf
    for l in range(k):
        c[l] = L[k, l]
    solve_transposed(L, c, k)
    for l in range(k):
        square += c[l] * c[l] * gram[support[l], support[l]]
    return square / w


@internal_reordering
def solve_transposed(L: np.ndarray, b: np.ndarray, k: int) -> None:
    """Lᵀx = b, in place."""
    for l in range(k - 1, -1, -1):
        row = L[l]
        t = b[l] * row[l]
        b[l] = t
        for i in range(l):
            b[i] -= t * row[i]


@compiled_reordering
def solve(L: np.ndarray, b: np.ndarray, k: int) -> None:
    """L Lᵀx = b, in place."""
    for l in range(k):
        row, t = L[l], b[l]
        for i in range(l):
            t -= row[i] * b[i]
        b[l] = t * row[l]
    solve_transposed(L, b, k)


@internal_reordering
def least_squares(
    dictionary: PreparedDictionary, y: np.ndarray, a: np.ndarray, code: Code, k: int, factor: Factor
) -> int:
    """Least-squares coefficients of y on a support, without the atoms that depend on those before them.

    a = Dᵀy. Returns the number of atoms that remain.
    """
    support, x = code
    kept, scale, largest = np.int64(0), x.dtype.type(0), x.dtype.type(0)
    for l in range(k):
        if append_row(dictionary.gram, factor, support, kept, np.int64(support[l]), dictionary.eps) == OK:
            support[kept] = support[l]
            x[kept] = a[support[l]]
            scale = max(scale, abs(x[kept]))
            kept += 1
    solve(factor.L, x, kept)
    for l in range(kept):
        largest = max(largest, abs(x[l]))
    if kept > 0 and not are_accurate(largest / scale, factor.spread[kept - 1], dictionary.eps):
        refine(dictionary.atoms, y, code, kept, factor.L, factor.scratch)
    return kept


@internal_in_order
def are_accurate(growth: float, spread: float, eps: float) -> bool:
    """Whether coefficients from the normal equations alone leave the least residual, to rounding.

    Its square is too large by up to about eps²·‖L⁻¹‖²·‖x‖². A fraction of eps times the squared coefficients
    of orthogonal atoms is allowed; `growth` says how many times as large the coefficients are.
    """
    return eps * spread * growth**2 <= 1 / ROUNDINGS


@internal_reordering
def refine(
    atoms: np.ndarray, y: np.ndarray, code: Code, k: int, L: np.ndarray, correction: np.ndarray
) -> None:
    """Correct coefficients of the normal equations from the residual itself; `correction` is scratch."""
    support, x = code
    residual = np.empty(len(y), y.dtype)
    for _ in range(REFINEMENTS):
        subtract_fit(atoms, y, code, k, residual)
        for l in range(k):
            correction[l] = product(atoms[support[l]], residual)
        solve(L, correction, k)
        for l in range(k):
            x[l] += correction[l]
