"""The lasso, compiled: min ½‖y − Dx‖² + λ‖x‖₁ by an active-set method on the Gram matrix.

With the active atoms A and their signs s known, the solution is a linear system: G_AA x_A = a_A − λs, where
a = Dᵀy. The method solves it, moves there until the first coefficient would change sign, drops that atom,
and repeats; then it adds the atom that violates |⟨d, r⟩| ≤ λ most. Every move lowers the objective, so it
ends, and it ends at the solution rather than near it. From the codes of an earlier dictionary it usually
ends after a few moves. This is the feature-sign search of Lee, Battle, Raina and Ng (2007), one atom at a
time, as Lawson and Hanson solve non-negative least squares.

Stopping at |⟨d, r⟩| ≤ λ(1 + tol) for all atoms leaves a duality gap of at most tol times the objective: with
c = 1/(1 + tol) the point c·r is feasible for the dual, and the gap is (1 − c)²‖r‖²/2 + (1 − c)λ‖x‖₁.

The Gram matrix has half the digits of the atoms. In single precision, with 30 and more active atoms that are
nearly dependent, the solution of the linear system can be wrong in every digit, and the method ends far from
the minimum. So the optimality conditions are checked at the end of every signal (`_status`); where they do
not hold, the signal is coded again in double precision: one picture patch in 300 at λ = 0.03·max |Dᵀy|.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering, internal_reordering
from manifold_dl.kernels.coding.common import (
    ROUNDINGS,
    Code,
    argmax_abs,
    contains,
    keep_largest,
    residual_correlations,
    sort_by_index,
)
from manifold_dl.kernels.coding.dictionary import ROWS, correlate, empty_products, prepare
from manifold_dl.kernels.coding.factor import Factor, append_row, empty_factor, least_squares, solve
from manifold_dl.kernels.coding.interface import (
    Codes,
    LassoSettings,
    PreparedDictionary,
    StartingCodes,
    empty_codes,
    no_codes,
)
from manifold_dl.kernels.status import NOT_OPTIMAL, OK, RANK_DEFICIENT

# Codes count as optimal if every optimality condition holds to this many units of rounding of the largest
# correlation, and to `tol`. On picture patches single precision leaves at most 4, or, where it fails, 1e3
# and more: few numbers lie between.
SLACK = 16


class Active(NamedTuple):
    """The active atoms of one signal: the first k entries of each count."""

    support: np.ndarray
    x: np.ndarray
    signs: np.ndarray


class Limits(NamedTuple):
    """The penalty of one signal, and what counts as rounding."""

    penalty: float
    allowed: float  # the largest correlation that does not violate the penalty
    slack: float  # by how much the optimality conditions may be violated at the end
    eps: np.floating


class Workspace(NamedTuple):
    """Memory of one thread, used for one signal after the other."""

    factor: Factor
    quarter: np.ndarray  # for `argmax_abs`
    sixteenth: np.ndarray
    h: np.ndarray  # padded: the products of all atoms with the residual
    goal: np.ndarray  # the solution for the current signs


def lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes | None = None,
) -> Codes:
    """Lasso codes of each row of `signals`, for the penalties of the path in turn, each from the one before.

    The last codes count; with `settings.refit` only the largest of them, solved again by least squares.
    Signals whose codes in single precision are not optimal to its rounding are coded again in double.
    """
    codes, statuses = _encode(dictionary, signals, settings, no_codes(signals) if start is None else start)
    again = np.flatnonzero(statuses != OK)
    if len(again) and signals.dtype == np.float32:
        # Dependent atoms were rounded to single precision: their squared distance is now of the order eps².
        eps = np.float64(dictionary.eps) ** 2
        in_double = prepare(dictionary.atoms.astype(np.float64))._replace(eps=eps)
        rows = signals[again].astype(np.float64)
        better, _ = _encode(in_double, rows, settings, no_codes(rows))
        for single, double in zip(codes, better, strict=True):
            single[again] = double
    return codes


def _encode(
    dictionary: PreparedDictionary, signals: np.ndarray, settings: LassoSettings, start: StartingCodes
) -> tuple[Codes, np.ndarray]:
    """The codes in the precision of `signals`, and for each of them OK or NOT_OPTIMAL."""
    codes = empty_codes(signals, min(dictionary.atoms.shape))
    codes.values[:] = 0  # entries that do not count may be converted to another precision
    statuses = np.empty(len(signals), np.int8)
    settings = settings._replace(path=np.asarray(settings.path, signals.dtype))
    _lasso(dictionary, signals, settings, start, codes, statuses)
    return codes, statuses


@compiled_reordering
def _lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes,
    codes: Codes,
    statuses: np.ndarray,
) -> None:
    gram, eps, capacity = dictionary.gram, dictionary.eps, codes.values.shape[1]
    products, factor = empty_products(dictionary), empty_factor(capacity, gram)
    correlations, _, quarter, sixteenth = products
    h, goal = np.empty(len(gram), gram.dtype), np.empty(capacity, gram.dtype)
    work, signs = Workspace(factor, quarter, sixteenth, h, goal), np.empty(capacity, gram.dtype)
    for j in range(len(signals)):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], dictionary, products)
        a, support, x = correlations[j % ROWS], codes.indices[j], codes.values[j]
        active = Active(support, x, signs)
        k = np.int64(0)
        for i in range(start.indptr[j], start.indptr[j + 1]):
            k = _add(gram, factor, active, k, np.int64(start.indices[i]), start.values[i], eps)
        largest = abs(a[argmax_abs(a, quarter, sixteenth)])
        for i in range(len(settings.path)):
            penalty = settings.path[i] * largest if settings.relative else settings.path[i]
            # A correlation that is only rounding violates nothing, however small the penalty.
            allowed = max(penalty * (1 + settings.tol), ROUNDINGS * eps * largest)
            limits = Limits(penalty, allowed, penalty * settings.tol + SLACK * eps * largest, eps)
            k, statuses[j] = _descend(gram, a, limits, active, k, work)
        if settings.refit > 0:
            k = keep_largest(support, x, k, settings.refit)
            k = least_squares(dictionary, signals[j], a, Code(support, x), k, factor)
        sort_by_index(support, x, k)
        codes.counts[j] = k


@compiled_reordering
def _descend(
    gram: np.ndarray, a: np.ndarray, limits: Limits, active: Active, k: int, work: Workspace
) -> tuple[int, int]:
    """The lasso solution for one signal, from the k active atoms given.

    Returns how many atoms are active at its end, and OK or NOT_OPTIMAL.
    """
    support, x, signs = active
    factor, quarter, sixteenth, h, goal = work
    entered = np.int64(-1)
    for _ in range(64 + 16 * len(x)):  # the method ends by itself; rounding must not keep it going
        is_last = False
        while k > 0:
            for l in range(k):
                goal[l] = a[support[l]] - limits.penalty * signs[l]
            solve(factor.L, goal, k)
            out, step = _first_sign_change(active, goal, k)
            for l in range(k):
                x[l] += step * (goal[l] - x[l]) if out >= 0 else goal[l] - x[l]
            if out < 0:
                break
            is_last = support[out] == entered
            k = _remove(gram, factor, active, k, out, limits.eps)
            if is_last:
                break  # the atom that entered moved the wrong way: what it could gain is only rounding
        residual_correlations(gram, a, support, x, k, h)
        entered = argmax_abs(h, quarter, sixteenth)
        if is_last or abs(h[entered]) <= limits.allowed or contains(support, k, entered):
            return k, _status(h, abs(h[entered]), active, k, limits)
        sign = np.sign(h[entered])
        before = k
        k = _add(gram, factor, active, k, entered, sign, limits.eps)
        if k > before:
            x[before] = 0
        else:
            k = _exchange(gram, work, active, k, entered, sign, limits.eps)
            if not contains(support, k, entered):
                residual_correlations(gram, a, support, x, k, h)
                return k, _status(h, abs(h[argmax_abs(h, quarter, sixteenth)]), active, k, limits)
    return k, NOT_OPTIMAL


@internal_reordering
def _status(h: np.ndarray, largest: float, active: Active, k: int, limits: Limits) -> int:
    """OK where h = Dᵀr, at most `largest`, is ≤ λ for all atoms and λs for the active ones, up to the slack.

    The duality gap is then at most 2·slack/λ of the objective.
    """
    worst = largest - limits.penalty
    for l in range(k):
        worst = max(worst, abs(h[active.support[l]] - limits.penalty * active.signs[l]))
    return OK if worst <= limits.slack else NOT_OPTIMAL


@internal_reordering
def _first_sign_change(active: Active, goal: np.ndarray, k: int) -> tuple[int, float]:
    """Which coefficient meets zero first on the way to `goal`, and after which fraction; −1 for none."""
    x, signs = active.x, active.signs
    out, step = np.int64(-1), x.dtype.type(1)
    for l in range(k):
        if goal[l] * signs[l] <= 0:
            until_zero = x[l] / (x[l] - goal[l]) if x[l] != 0 else x[l]
            if until_zero < step or out < 0:
                out, step = l, until_zero
    return out, step


@internal_reordering
def _add(gram: np.ndarray, factor: Factor, active: Active, k: int, p: int, value: float, eps: float) -> int:
    """Append atom p, with coefficient `value`, unless it is zero or depends on the active atoms."""
    support, x, signs = active
    if value == 0 or k == len(x) or append_row(gram, factor, support, k, p, eps) == RANK_DEFICIENT:
        return k
    support[k], x[k], signs[k] = p, value, np.sign(value)
    return k + 1


@internal_reordering
def _remove(gram: np.ndarray, factor: Factor, active: Active, k: int, out: int, eps: float) -> int:
    """Take out one atom; the rows of the Cholesky factor below it are computed again."""
    kept = out
    for l in range(out + 1, k):
        kept = _add(gram, factor, active, kept, np.int64(active.support[l]), active.x[l], eps)
    return kept


@internal_reordering
def _exchange(
    gram: np.ndarray, work: Workspace, active: Active, k: int, p: int, sign: float, eps: float
) -> int:
    """Exchange one of the active atoms for an atom that depends on them, d_p = Σ c_l d_l.

    Moving x_p up and x_A by −c leaves the fit as it is and lowers ‖x‖₁, until a coefficient meets zero. Where
    it would not lower ‖x‖₁ the violation by p was only rounding, and nothing is done.
    """
    support, x, signs = active
    goal = work.goal
    for l in range(k):
        goal[l] = sign * gram[p, support[l]]
    solve(work.factor.L, goal, k)
    fall = x.dtype.type(0)
    for l in range(k):
        fall += goal[l] * signs[l]
    if not fall > 1:
        return k
    out, step = np.int64(-1), x.dtype.type(0)
    for l in range(k):
        if goal[l] * signs[l] > 0:
            until_zero = x[l] / goal[l]
            if until_zero < step or out < 0:
                out, step = l, until_zero
    for l in range(k):
        x[l] -= step * goal[l]
    k = _remove(gram, work.factor, active, k, out, eps)
    return _add(gram, work.factor, active, k, p, sign * step, eps)
