"""The objective with ℓ₁ codes, compiled: value, gradient and codes of one block of signals in one pass.

    Σ_j min_x ½‖y_j − Dx‖² + α‖x‖₁ + (μ/2)‖x‖²,   gradient −Σ_j r_j x_jᵀ

The functions of `reference_lasso.py`. With the atoms A of a signal and their signs s known, its codes are
x = (AᵀA + μI)⁻¹(Aᵀy − αs). Those of the last dictionary are nearly right, so the active-set method begins
with them: that of `coding/signs.py`, or of `coding/active_set.py` where atoms are nearly dependent. With μ on
the diagonal of the Gram matrix both solve the elastic net, too: there the conditions are |Dᵀr − μx| ≤ α.

The last solution of a signal is computed with its atoms in increasing order. So the codes depend on the
dictionary, the signal, the support and the signs alone, and not on the codes that the method began with.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering, internal, internal_reordering
from manifold_dl.kernels.coding.active_set import SLACK, Active, Limits, Workspace, add
from manifold_dl.kernels.coding.active_set import descend as descend_with_factor
from manifold_dl.kernels.coding.common import (
    ROUNDINGS,
    Code,
    argmax_abs,
    sort_by_index,
    subtract_fit,
)
from manifold_dl.kernels.coding.dictionary import ROWS, correlate, empty_products, prepare
from manifold_dl.kernels.coding.factor import append_row, empty_factor
from manifold_dl.kernels.coding.factor import solve as solve_with
from manifold_dl.kernels.coding.interface import PreparedDictionary, StartingCodes, no_codes
from manifold_dl.kernels.coding.observed import own_dictionary
from manifold_dl.kernels.coding.signs import descend, solve
from manifold_dl.kernels.memory import aligned_zeros
from manifold_dl.kernels.reduced.structures import InnerFit
from manifold_dl.kernels.status import NOT_OPTIMAL, OK

# Of the penalty: by how much a correlation may exceed it before its atom joins the support.
TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-6}


class LassoArrays(NamedTuple):
    """Where the compiled pass writes to."""

    gradient: np.ndarray
    energies: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray  # with room for the most atoms that a signal can have; the first indptr[n] count
    values: np.ndarray


def prepare_lasso(atoms: np.ndarray, mu: float) -> PreparedDictionary:
    """See `reference_lasso.prepare_lasso`."""
    dictionary = prepare(atoms)
    if mu > 0:
        diagonal = np.arange(len(atoms))
        dictionary.gram[diagonal, diagonal] += atoms.dtype.type(mu)
    return dictionary


def fit_lasso(
    signals: np.ndarray,
    dictionary: PreparedDictionary,
    alpha: float,
    mu: float,
    start: StartingCodes | None = None,
) -> InnerFit:
    """See `reference_lasso.fit_lasso`. In single precision, blocks with codes that are not optimal to its
    rounding are solved again in double."""
    fit, status = _fit(signals, dictionary, alpha, mu, start)
    if status != OK and signals.dtype == np.float32:
        in_double = prepare_lasso(dictionary.atoms.astype(np.float64), mu)
        eps = np.float64(dictionary.eps) ** 2  # dependent atoms were rounded to single precision
        fit, status = _fit(signals.astype(np.float64), in_double._replace(eps=eps), alpha, mu, None)
        indptr, indices, values = fit.codes
        codes = StartingCodes(indptr, indices, values.astype(np.float32))
        fit = fit._replace(gradient=fit.gradient.astype(np.float32), codes=codes)
    return fit._replace(status=status)


def _fit(
    signals: np.ndarray,
    dictionary: PreparedDictionary,
    alpha: float,
    mu: float,
    start: StartingCodes | None,
) -> tuple[InnerFit, int]:
    """The pass in the precision of `signals`, and OK or NOT_OPTIMAL."""
    atoms, dtype, (n, _) = dictionary.atoms, signals.dtype, signals.shape
    room = n * (len(atoms) if mu > 0 else min(atoms.shape))  # a ridge lets dependent atoms be active together
    out = LassoArrays(
        aligned_zeros(atoms.shape, dtype),
        np.zeros(len(atoms)),
        np.zeros(n + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, dtype),
    )
    start = no_codes(signals) if start is None else start
    penalties = dtype.type(alpha), dtype.type(mu), dtype.type(TOLERANCE[dtype])
    value, status = _fit_lasso(signals, tuple(dictionary), penalties, tuple(start), tuple(out))
    size = out.indptr[-1]
    codes = StartingCodes(out.indptr, out.indices[:size].copy(), out.values[:size].copy())
    return InnerFit(value, out.gradient, out.energies, codes, status), status


@compiled_reordering
def _fit_lasso(signals, dictionary_tuple, penalties, start_tuple, out_tuple):
    dictionary, start = PreparedDictionary(*dictionary_tuple), StartingCodes(*start_tuple)
    out, (alpha, mu, tol) = LassoArrays(*out_tuple), penalties
    gram, eps, n = dictionary.gram, dictionary.eps, len(signals)
    capacity = len(out.values) // max(n, 1)
    products, factor = empty_products(dictionary), empty_factor(capacity, gram)
    correlations, _, quarter, sixteenth = products
    h, goal = np.empty(len(gram), gram.dtype), np.empty(capacity, gram.dtype)
    L, z = factor.L, factor.scratch
    work = Workspace(factor, quarter, sixteenth, h, goal)
    support, x, signs = np.empty(capacity, np.int32), np.empty_like(goal), np.empty_like(goal)
    active, r = Active(support, x, signs), np.empty(signals.shape[1], gram.dtype)
    value, status, at = 0.0, OK, np.int64(0)
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], dictionary, products)
        a = correlations[j % ROWS]
        largest = abs(a[argmax_abs(a, quarter, sixteenth)])
        # A correlation that is only rounding violates nothing, however small the penalty.
        allowed = max(alpha * (1 + tol), ROUNDINGS * eps * largest)
        limits = Limits(alpha, allowed, alpha * tol + SLACK * eps * largest, eps, False)
        k = _take(start.indptr[j], start.indptr[j + 1], start.indices, start.values, support, x, signs)
        k = descend(gram, a, alpha, allowed, support, x, signs, k, L, z, goal, h, quarter, sixteenth)
        if k < 0 or not _is_sorted(support, k):
            limits = Limits(alpha, allowed, alpha * tol + SLACK * eps * largest, eps, False)
            k, found = _solve_in_order(dictionary, a, limits, start, j, active, k, work)
            if found != OK:
                status = NOT_OPTIMAL
        subtract_fit(dictionary.atoms, signals[j], Code(support, x), k, r)
        value += _add_signal(r, active, k, alpha, mu, at, out)
        at += k
        out.indptr[j + 1] = at
    return value, status


@internal
def _take(begin, end, indices, values, support, x, signs):
    """The last codes of a signal; how many atoms they have."""
    k = np.int64(0)
    for i in range(begin, end):
        if values[i] != 0 and k < len(x):
            support[k], x[k], signs[k] = indices[i], values[i], 1 if values[i] > 0 else -1
            k += 1
    return k


@internal
def _is_sorted(support, k):
    ascends = True
    for l in range(1, k):
        ascends &= support[l] > support[l - 1]
    return ascends


@internal_reordering
def _solve_in_order(dictionary, a, limits, start, j, active, k, work):
    """The solution with increasing indices; without one (k < 0) by the method that knows dependent atoms.

    Returns how many atoms there are, and OK or NOT_OPTIMAL.
    """
    support, x, signs = active
    gram, L, z, status = dictionary.gram, work.factor.L, work.factor.scratch, OK
    if k < 0:
        k = np.int64(0)
        for i in range(start.indptr[j], start.indptr[j + 1]):
            k = add(gram, work.factor, active, k, np.int64(start.indices[i]), start.values[i], limits.eps)
        own = own_dictionary(dictionary, False)
        k, status = descend_with_factor(own, np.int64(0), a, limits, active, k, work)
    sort_by_index(support, x, k)
    for l in range(k):
        signs[l] = 1 if x[l] > 0 else -1
    if not solve(gram, a, limits.penalty, support, signs, np.int64(0), k, L, z, x):
        for l in range(k):
            append_row(gram, work.factor, support, l, np.int64(support[l]), limits.eps)
            x[l] = a[support[l]] - limits.penalty * signs[l]
        solve_with(L, x, k)
    return k, status


@internal
def _add_signal(r, active, k, alpha, mu, at, out):
    """Write the codes of a signal, and add what it contributes to gradient and energies; its value."""
    support, x, _ = active
    total, absolute, square = 0.0, 0.0, 0.0
    for p in range(len(r)):
        total += np.float64(r[p]) * r[p]
    for l in range(k):
        i, xl = support[l], x[l]
        absolute += abs(np.float64(xl))
        square += np.float64(xl) * xl
        out.energies[i] += np.float64(xl) * xl
        out.indices[at + l], out.values[at + l] = i, xl
        for p in range(len(r)):
            out.gradient[i, p] -= xl * r[p]
    return 0.5 * total + alpha * absolute + 0.5 * mu * square
