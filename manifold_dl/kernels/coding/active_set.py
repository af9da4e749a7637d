"""The active-set method for one signal, compiled: min ½‖y − Dx‖² + λ‖x‖₁, with x ≥ 0 where it is asked for.

With the active atoms A and their signs s known, the solution is a linear system: G_AA x_A = a_A − λs, where
a = Dᵀy. The method solves it, moves there until the first coefficient would change sign, drops that atom,
and repeats (`settle`); then it adds the atom that violates |⟨d, r⟩| ≤ λ most. Every move lowers the
objective, so it ends, and it ends at the solution rather than near it. This is the feature-sign search of
Lee, Battle, Raina and Ng (2007), one atom at a time, as Lawson and Hanson solve non-negative least squares.
For x ≥ 0 the condition is ⟨d, r⟩ ≤ λ: negative correlations are set to zero, and no atom enters with a
negative sign.

Stopping at |⟨d, r⟩| ≤ λ(1 + tol) for all atoms leaves a duality gap of at most tol times the objective: with
c = 1/(1 + tol) the point c·r is feasible for the dual, and the gap is (1 − c)²‖r‖²/2 + (1 − c)λ‖x‖₁.

`checked_lasso.py` and `nonnegative.py` call it, for signals with weights too: `observed.OwnDictionary` then
computes the rows of G when an atom enters.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering, internal_reordering
from manifold_dl.kernels.coding.common import argmax_abs, contains, residual_correlations
from manifold_dl.kernels.coding.dictionary import Products
from manifold_dl.kernels.coding.factor import Factor, append_row, empty_factor, solve
from manifold_dl.kernels.coding.observed import OwnDictionary, require_row
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
    nonnegative: bool  # whether no coefficient may be negative


class Workspace(NamedTuple):
    """Memory of one thread, used for one signal after the other."""

    factor: Factor
    folded: np.ndarray  # for `argmax_abs`
    h: np.ndarray  # padded: the products of all atoms with the residual
    goal: np.ndarray  # the solution for the current signs


@internal_reordering
def empty_workspace(size: int, gram: np.ndarray, products: Products) -> Workspace:
    """Memory for at most `size` active atoms."""
    factor, h, goal = empty_factor(size, gram), np.empty(len(gram), gram.dtype), np.empty(size, gram.dtype)
    return Workspace(factor, products.folded, h, goal)


@compiled_reordering
def descend(
    own: OwnDictionary, count: int, a: np.ndarray, limits: Limits, active: Active, k: int, work: Workspace
) -> tuple[int, int]:
    """The solution for one signal with `count` observed entries, from the k active atoms given.

    Returns how many atoms are active at its end, and OK or NOT_OPTIMAL.
    """
    gram = own.prepared.gram
    support, x, signs = active
    factor, h, goal, entered = work.factor, work.h, work.goal, np.int64(-1)
    for _ in range(64 + 16 * len(x)):  # the method ends by itself; rounding must not keep it going
        is_last = False
        while k > 0:  # `settle`, written out: as a call it makes the lasso a fifth slower
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
        if limits.nonnegative:
            clip(h)
        entered = argmax_abs(h, work.folded)
        if is_last or abs(h[entered]) <= limits.allowed or contains(support, k, entered):
            return k, _status(h, abs(h[entered]), active, k, limits)
        sign = np.sign(h[entered])
        if len(own.known) > 0:
            require_row(own, count, entered)
        before = k
        k = add(gram, factor, active, k, entered, sign, limits.eps)
        if k > before:
            x[before] = 0
        else:
            k = _exchange(gram, work, active, k, entered, sign, limits.eps)
            if not contains(support, k, entered):
                return k, _status(h, _largest(gram, a, limits, active, k, work), active, k, limits)
    return k, NOT_OPTIMAL


@internal_reordering
def settle(
    gram: np.ndarray, a: np.ndarray, limits: Limits, active: Active, k: int, entered: int, work: Workspace
) -> tuple[int, bool]:
    """Solve for the coefficients of the active atoms, dropping those that would change sign on the way.

    Returns how many are left, and whether the last one dropped is the one that `entered`: it moved the wrong
    way, so what it could gain is only rounding.
    """
    support, x, signs = active
    goal = work.goal
    while k > 0:
        for l in range(k):
            goal[l] = a[support[l]] - limits.penalty * signs[l]
        solve(work.factor.L, goal, k)
        out, step = _first_sign_change(active, goal, k)
        for l in range(k):
            x[l] += step * (goal[l] - x[l]) if out >= 0 else goal[l] - x[l]
        if out < 0:
            break
        is_last = support[out] == entered
        k = _remove(gram, work.factor, active, k, out, limits.eps)
        if is_last:
            return k, True
    return k, False


@internal_reordering
def clip(h: np.ndarray) -> None:
    """h = max(h, 0): no atom may enter with a negative sign."""
    for i in range(len(h)):
        h[i] = max(h[i], 0)


@internal_reordering
def _largest(
    gram: np.ndarray, a: np.ndarray, limits: Limits, active: Active, k: int, work: Workspace
) -> float:
    """The largest correlation with the residual, after computing them anew."""
    residual_correlations(gram, a, active.support, active.x, k, work.h)
    if limits.nonnegative:
        clip(work.h)
    return abs(work.h[argmax_abs(work.h, work.folded)])


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
def add(gram: np.ndarray, factor: Factor, active: Active, k: int, p: int, value: float, eps: float) -> int:
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
        kept = add(gram, factor, active, kept, np.int64(active.support[l]), active.x[l], eps)
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
    return add(gram, work.factor, active, k, p, sign * step, eps)
