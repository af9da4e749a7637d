"""Greedy pursuits, compiled: orthogonal matching pursuit and orthogonal least squares.

Both grow a support one atom at a time and differ in one line, the choice of the next atom. Both run on
the Gram matrix G = DᵀD, and keep, for every signal, the correlations a = Dᵀr of all atoms with the
residual; `basis.py` says how they follow the support.

A signal takes a microsecond. So what a step calls takes single arrays: a named tuple of five arrays costs
some 30 ns at every call, and with those OMP was 1.7 times as slow. A view of a row costs 15 ns, because its
array is counted as used: what belongs to one signal is kept in arrays of its own, which all signals share.

What few calls need is compiled for those: with `tol` None nothing measures residuals, and with `careful` None
a signal whose cheap bounds of rank and accuracy decide nothing is only marked (`_encode`).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_in_order, internal_in_order
from manifold_dl.kernels.coding.basis import extend_factor, is_close_to_dependent, solve_upper, update
from manifold_dl.kernels.coding.common import (
    ROUNDINGS,
    Code,
    argmax_abs,
    contains,
    residual_budget,
    residual_norm,
)
from manifold_dl.kernels.coding.dictionary import ROWS, copy, multiply_tiles, take_row
from manifold_dl.kernels.coding.factor import (
    CHEAP,
    are_accurate,
    inverse_row,
    inverse_row_bound,
    refine,
)
from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary, PursuitSettings, empty_codes
from manifold_dl.kernels.coding.pursuit_memory import (
    Workspace,
    borrowed_codes,
    borrowed_dictionary,
    borrowed_workspace,
    empty_workspace,
)


def omp(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """Orthogonal matching pursuit of each row of `signals`: the next atom is the one most correlated."""
    return _encode(_omp, dictionary, signals, settings)


def forward_selection(
    dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings
) -> Codes:
    """Orthogonal least squares of each row of `signals`: the next atom leaves the smallest residual."""
    return _encode(_forward_selection, dictionary, signals, settings)


def _encode(
    kernel: Callable[..., None],
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    settings: PursuitSettings,
) -> Codes:
    """Codes by a kernel without costly checks, and with them for the signals where bounds decide nothing."""
    sparsity, tol = settings.sparsity, None if settings.tol < 0 else settings.tol
    codes, undecided = empty_codes(signals, sparsity), np.zeros(len(signals), np.bool_)
    work = empty_workspace(dictionary, sparsity)
    kernel(dictionary, signals, tol, None, codes, undecided, work)
    again = np.flatnonzero(undecided)
    if len(again):
        rest, careful = empty_codes(signals[again], sparsity), np.empty(sparsity, signals.dtype)
        kernel(dictionary, signals[again], tol, careful, rest, undecided, work)
        for given, found in zip(codes, rest, strict=True):
            given[again] = found
    return codes


@compiled_in_order
def _omp(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    tol: float | None,
    careful: np.ndarray | None,
    codes: Codes,
    undecided: np.ndarray,
    work: Workspace,
) -> None:
    atoms, tiles, gram, eps = borrowed_dictionary(dictionary)
    a, folded, products, Q, z, L, code, residual = borrowed_workspace(work)
    (support, x), codes = code, borrowed_codes(codes)
    n, sparsity = codes.values.shape
    for j in range(n):
        if j % ROWS == 0:
            multiply_tiles(signals[j : j + ROWS], tiles, products)
        take_row(products, j % ROWS, a)
        norm, limit, left = 1.0, -1.0, 1.0
        if tol is not None:
            norm, limit, left = residual_budget(signals[j], tol)
        largest_ever, k, spread = 0.0, np.int64(0), 0.0
        while k < sparsity and left > limit:
            p = argmax_abs(a, folded)
            largest_ever = max(largest_ever, abs(a[p]))
            if abs(a[p]) <= ROUNDINGS * eps * largest_ever or contains(support, k, p):
                break  # the residual is orthogonal to every atom, as far as this arithmetic can tell
            w = extend_factor(L, Q, gram, k, p)
            inverse = inverse_row_bound(w, gram[p, p], spread)
            if inverse > 1 / (CHEAP * ROUNDINGS * eps):
                if careful is None:
                    undecided[j] = True
                    break
                inverse = inverse_row(gram, L, support, k, gram[p, p], w, careful)
            rank_deficient = not inverse <= 1 / (ROUNDINGS * eps)
            if rank_deficient:
                a[p] = 0  # atom p depends on the support: the next one
                continue
            spread += inverse
            L[k, k] = 1 / np.sqrt(w)
            support[k], z[k] = p, a[p] * L[k, k]
            k += 1
            if tol is not None:
                left -= (z[k - 1] / norm) ** 2
                if left <= limit + ROUNDINGS * eps or is_close_to_dependent(L, k):
                    growth = solve_upper(L, z, 1.0, x, k)
                    if not are_accurate(growth, spread, eps):
                        undecided[j] = _is_left_over(atoms, signals[j], code, k, L, careful)
                    left = (residual_norm(atoms, signals[j], code, k, residual) / norm) ** 2
            if k < sparsity and left > limit:
                update(a, gram, Q, k - 1, p, L[k - 1, k - 1], z[k - 1])
        growth = solve_upper(L, z, 1.0, x, k)
        if not are_accurate(growth, spread, eps):
            undecided[j] = _is_left_over(atoms, signals[j], code, k, L, careful)
        _store(codes, j, code, k)


@internal_in_order
def _is_left_over(
    atoms: np.ndarray, y: np.ndarray, code: Code, k: int, L: np.ndarray, careful: np.ndarray | None
) -> bool:
    """Correct coefficients that may be inaccurate, or leave the signal to the pass with costly checks."""
    if careful is None:
        return True
    refine(atoms, y, code, k, L, careful)
    return False


@internal_in_order
def _store(codes: Codes, j: int, code: Code, k: int) -> None:
    """Row j of the codes, in the order of the atoms.

    An atom's place is how many of the others come before it: no branch, which could not be predicted.
    """
    support, x = code
    codes.counts[j] = k
    for l in range(k):
        place = np.int64(0)
        for i in range(k):
            place += support[i] < support[l]
        codes.indices[j, place], codes.values[j, place] = support[l], x[l]


class Candidates(NamedTuple):
    """What forward selection keeps of every atom."""

    gains: np.ndarray  # padded: by how much the squared residual would fall
    remaining: np.ndarray  # padded: the squared distance from the span of the support
    squares: np.ndarray  # padded: the squared norm
    floor: np.floating  # squared distances below this fraction of the squared norm are rounding


@compiled_in_order
def _forward_selection(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    tol: float | None,
    careful: np.ndarray | None,
    codes: Codes,
    undecided: np.ndarray,
    work: Workspace,
) -> None:
    atoms, tiles, gram, eps = borrowed_dictionary(dictionary)
    a, folded, products, Q, z, L, code, residual = borrowed_workspace(work)
    (support, x), codes = code, borrowed_codes(codes)
    n, sparsity = codes.values.shape
    gains, remaining, squares, floor = _candidates(gram, eps)
    for j in range(n):
        if j % ROWS == 0:
            multiply_tiles(signals[j : j + ROWS], tiles, products)
        take_row(products, j % ROWS, a)
        norm, limit, left = 1.0, -1.0, 1.0
        if tol is not None:
            norm, limit, left = residual_budget(signals[j], tol)
        # The atoms have norm 1, so the first choice is that of OMP. Later ones square the correlations,
        # which are therefore brought to 1 first: no signal is too small or too large.
        p = argmax_abs(a, folded)
        scale = _divide_by(a, abs(a[p]))
        copy(squares, remaining)
        k, spread = np.int64(0), 0.0
        while k < sparsity and left > limit and scale > 0:
            if contains(support, k, p) or not abs(a[p]) > ROUNDINGS * eps:
                break
            w = extend_factor(L, Q, gram, k, p)
            inverse = inverse_row_bound(w, gram[p, p], spread)
            if inverse > 1 / (CHEAP * ROUNDINGS * eps):
                if careful is None:
                    undecided[j] = True
                    break
                inverse = inverse_row(gram, L, support, k, gram[p, p], w, careful)
            rank_deficient = not inverse <= 1 / (ROUNDINGS * eps)
            if rank_deficient:
                remaining[p], gains[p] = 0, 0  # atom p depends on the support: the next one
                p = argmax_abs(gains, folded)
                continue
            spread += inverse
            L[k, k] = 1 / np.sqrt(w)
            support[k], z[k] = p, a[p] * L[k, k]
            k += 1
            if tol is not None:
                left -= (z[k - 1] * scale / norm) ** 2
                if left <= limit + ROUNDINGS * eps or is_close_to_dependent(L, k):
                    growth = solve_upper(L, z, scale, x, k)
                    if not are_accurate(growth, spread, eps):
                        undecided[j] = _is_left_over(atoms, signals[j], code, k, L, careful)
                    left = (residual_norm(atoms, signals[j], code, k, residual) / norm) ** 2
            if k < sparsity and left > limit:
                update(a, gram, Q, k - 1, p, L[k - 1, k - 1], z[k - 1])
                _rate(a, Q, k - 1, remaining, squares, floor, gains)
                p = argmax_abs(gains, folded)
        growth = solve_upper(L, z, scale, x, k)
        if not are_accurate(growth, spread, eps):
            undecided[j] = _is_left_over(atoms, signals[j], code, k, L, careful)
        _store(codes, j, code, k)


@internal_in_order
def _candidates(gram: np.ndarray, eps: float) -> Candidates:
    """Memory of one thread, with the squared norms of the atoms."""
    squares = np.empty(len(gram), gram.dtype)
    for i in range(len(gram)):
        squares[i] = gram[i, i]
    gains, remaining = np.empty(len(gram), gram.dtype), np.empty(len(gram), gram.dtype)
    return Candidates(gains, remaining, squares, gram.dtype.type(ROUNDINGS * eps))


@internal_in_order
def _rate(
    a: np.ndarray,
    Q: np.ndarray,
    k: int,
    remaining: np.ndarray,
    squares: np.ndarray,
    floor: float,
    gains: np.ndarray,
) -> None:
    """By how much each atom would lower the squared residual: a²/w, and nothing where w is only rounding."""
    for i in range(len(a)):
        w = remaining[i] - Q[k, i] * Q[k, i]
        remaining[i] = w
        gain = a[i] * a[i] / w
        gains[i] = gain if w > floor * squares[i] else 0


@internal_in_order
def _divide_by(a: np.ndarray, scale: float) -> float:
    """a /= scale, unless it is zero; returns `scale`."""
    if scale > 0:
        for i in range(len(a)):
            a[i] /= scale
    return scale
