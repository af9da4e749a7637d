"""Codes that follow the dictionary by Gram matrices of single signals, compiled: value, gradient, Hessian.

The functions of `reference_weighted.py` for one block of signals. They differ from `codes.py` in that every
signal has a Gram matrix of its own (`weighted_gram.py`), and that residuals are multiplied by the weights,
where there are any. Nothing here grows with the number of pairs of atoms. Signals whose pivots break down,
because the observed entries do not determine their codes, are solved by singular values, in the reference.
"""

from typing import Any, NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled, internal
from manifold_dl.kernels.memory import aligned_zeros
from manifold_dl.kernels.reduced import reference_weighted as reference
from manifold_dl.kernels.reduced.batches import (
    BATCH_SIZE,
    Batches,
    largest_support,
    longest,
    matrix,
    padded_size,
)
from manifold_dl.kernels.reduced.cholesky import dots, make_scratch, solve_lower, solve_upper, subtract
from manifold_dl.kernels.reduced.codes import (
    NO_FACTORS,
    NO_INVERSES,
    NO_SIGNALS,
    FitArrays,
    evaluate_fixed,
    use_inverses,
)
from manifold_dl.kernels.reduced.minimum_norm import PIVOT_RATIO, padded_inverses, take
from manifold_dl.kernels.reduced.structures import Block, Fit, Solutions
from manifold_dl.kernels.reduced.weighted_gram import (
    factorize_in_place,
    gather_rows,
    gather_signal,
    lower_products,
    make_gathered,
    multiply_row,
    pad,
)


def weights_or_empty(block: Block, weights: np.ndarray | None) -> np.ndarray:
    """The weights of a block as compiled kernels take them: an empty array for none."""
    return block.signals[:0] if weights is None else weights


def fit_weighted_codes(
    block: Block, weights: np.ndarray | None, atoms: np.ndarray, mu: float, keep_factors: bool = True
) -> Fit:
    """See `reference_weighted.fit_weighted_codes`."""
    out = FitArrays(
        gradient=aligned_zeros(atoms.shape, atoms.dtype),
        energies=np.zeros(len(atoms)),
        codes=np.zeros(len(block.indices), block.signals.dtype),
        factors=np.empty(block.batches.factor_place[-1]) if keep_factors else NO_FACTORS,
        rank_deficient=np.zeros(len(block.signals), np.bool_),
        residual=np.empty((1, block.signals.shape[1]), block.signals.dtype),
    )
    signals, batches = (block.signals, weights_or_empty(block, weights)), tuple(block.batches)
    value, n_rank_deficient = _fit(*signals, batches, atoms, float(mu), PIVOT_RATIO, tuple(out))
    factors = out.factors if keep_factors else None
    if n_rank_deficient == 0:
        solutions = Solutions(out.codes, factors, NO_SIGNALS, NO_INVERSES)
        return Fit(value, out.gradient, out.energies, solutions)
    rank_deficient = np.flatnonzero(out.rank_deficient)
    indptr, indices, places = take(block.indptr, block.indices, rank_deficient)
    part = Block(block.signals[rank_deficient], indptr, indices, None)
    own = None if weights is None else weights[rank_deficient]
    rest = reference.fit_weighted_codes(part, own, atoms, mu)
    out.gradient[:] += rest.gradient
    out.energies[:] += rest.energies
    out.codes[places] = rest.solutions.codes
    inverses = padded_inverses(atoms, indptr, indices, mu, None if own is None else np.sqrt(own))
    solutions = Solutions(out.codes, factors, rank_deficient, inverses)
    return Fit(value + rest.value, out.gradient, out.energies, solutions)


def evaluate_weighted_fixed(
    block: Block, weights: np.ndarray | None, atoms: np.ndarray, codes: np.ndarray
) -> tuple[float, np.ndarray]:
    """See `reference_weighted.evaluate_weighted_fixed`."""
    if weights is None:
        return evaluate_fixed(block, atoms, codes)
    gradient = np.zeros_like(atoms)
    value = _evaluate_fixed(block.signals, weights, block.indptr, block.indices, atoms, codes, gradient)
    return value, gradient


class WeightedHessianArrays(NamedTuple):
    """What a Hessian product reads besides signals, weights and supports."""

    atoms: np.ndarray
    direction: np.ndarray
    codes: np.ndarray
    factors: Any  # never None: a Hessian product needs them
    inverse_of: np.ndarray  # which of the inverses belongs to a signal, −1 for none; empty if there are none
    inverses: np.ndarray


def weighted_hessian_product(
    block: Block,
    weights: np.ndarray | None,
    atoms: np.ndarray,
    mu: float,
    solutions: Solutions,
    direction: np.ndarray,
) -> np.ndarray:
    """See `reference_weighted.weighted_hessian_product`."""
    inverse_of = NO_SIGNALS
    codes, factors, rank_deficient, inverses = solutions
    if len(rank_deficient):
        inverse_of = np.full(len(block.signals), -1)
        inverse_of[rank_deficient] = np.arange(len(rank_deficient))
    product = aligned_zeros(atoms.shape, atoms.dtype)
    known = WeightedHessianArrays(atoms, direction, codes, factors, inverse_of, inverses)
    own = weights_or_empty(block, weights)
    _hessian_product(block.signals, own, tuple(block.batches), tuple(known), product)
    return product


@compiled
def _fit(signals, weights, batches_tuple, atoms, mu, pivot_ratio, out_tuple):
    batches, out = Batches(*batches_tuple), FitArrays(*out_tuple)
    order, indptr, indices = batches.signals, batches.indptr, batches.indices
    first, place, factor_place = batches.first, batches.place, batches.factor_place
    factors, m = out.factors, signals.shape[1]
    keep = len(factors) > 0
    factor_memory = np.empty(0 if keep else longest(factor_place))
    g_memory, scratch = np.zeros(longest(place)), make_scratch()
    gathered, r = make_gathered(largest_support(first, place), m), out.residual
    rank_deficient = scratch.rank_deficient
    value, n_rank_deficient = _energy_without_atoms(signals, weights, indptr), 0
    for batch in range(len(first) - 1):
        begin, end, n = place[batch], place[batch + 1], first[batch + 1] - first[batch]
        width = padded_size(n)
        s = (end - begin) // width
        atom, g = matrix(indices, begin, s, width), matrix(g_memory, np.int64(0), s, width)
        factor, at = (factors, factor_place[batch]) if keep else (factor_memory, np.int64(0))
        L = matrix(factor, at, s * (s + 1) // 2, width)
        for w in range(n):
            j = np.int64(order[first[batch] + w])
            gather_signal(signals, weights, j, gathered)
            gather_rows(atoms, atom, w, len(weights) > 0, gathered.roots, gathered.rows)
            lower_products(gathered.rows, s, w, gathered.tile, L)
            multiply_row(gathered.signal, np.int64(0), gathered.rows, s, w, g, np.int64(0))
        pad(L, g, n)
        any_rank_deficient = factorize_in_place(L, s, mu, pivot_ratio, scratch)
        solve_lower(L, g)
        solve_upper(L, g)
        for w in range(n):
            j = np.int64(order[first[batch] + w])
            if any_rank_deficient and rank_deficient[w]:  # left to the reference
                out.rank_deficient[j] = True
                n_rank_deficient += 1
            else:
                value += _add_signal(signals, weights, j, atoms, atom, g, w, indptr[j], mu, r, out)
        if any_rank_deficient:
            for w in range(width):
                rank_deficient[w] = 0
    return value, n_rank_deficient


@internal
def _energy_without_atoms(signals, weights, indptr):
    """Σ w y² of the signals that use no atom."""
    value = 0.0
    for j in range(len(signals)):
        if indptr[j] == indptr[j + 1]:
            for p in range(signals.shape[1]):
                square = np.float64(signals[j, p]) * signals[j, p]
                value += weights[j, p] * square if len(weights) else square
    return value


@internal
def _add_signal(signals, weights, j, atoms, atom, g, w, at, mu, r, out):
    """Write the codes of signal j, and add what it contributes to gradient and energies; its value."""
    codes, energies, gradient = out.codes, out.energies, out.gradient
    m, s, energy, total, weight = signals.shape[1], len(atom), 0.0, 0.0, 0.0
    for a in range(s):
        codes[at + a] = g[a, w]
        energy += g[a, w] * g[a, w]
    for p in range(m):
        r[0, p] = signals[j, p]
    subtract(atoms, atom, w, codes, at, r, np.int64(0))
    if len(weights):
        for p in range(m):
            weighted = weights[j, p] * r[0, p]
            total += weighted * r[0, p]
            weight += weights[j, p]
            r[0, p] = weighted
    else:
        weight = np.float64(m)
        for p in range(m):
            total += r[0, p] * r[0, p]
    for a in range(s):
        i, x = atom[a, w], codes[at + a]
        energies[i] += weight / m * np.float64(x) * x
        for p in range(m):
            gradient[i, p] -= 2 * x * r[0, p]
    return mu * energy + total


@compiled
def _evaluate_fixed(signals, weights, indptr, indices, atoms, codes, gradient):
    m = signals.shape[1]
    r = np.empty(m, dtype=signals.dtype)
    value = 0.0
    for j in range(signals.shape[0]):
        for p in range(m):
            r[p] = signals[j, p]
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], codes[a]
            for p in range(m):
                r[p] -= x * atoms[i, p]
        total = 0.0
        for p in range(m):
            weighted = weights[j, p] * r[p]
            total += weighted * r[p]
            r[p] = weighted
        value += total
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], 2 * codes[a]
            for p in range(m):
                gradient[i, p] -= x * r[p]
    return value


@compiled
def _hessian_product(signals, weights, batches_tuple, known_tuple, product):
    batches, known = Batches(*batches_tuple), WeightedHessianArrays(*known_tuple)
    atoms, direction, codes, factors = known.atoms, known.direction, known.codes, known.factors
    order, indptr, indices = batches.signals, batches.indptr, batches.indices
    first, place, factor_place = batches.first, batches.place, batches.factor_place
    m = signals.shape[1]
    r, v = np.empty((BATCH_SIZE, m), dtype=signals.dtype), np.empty((BATCH_SIZE, m), dtype=signals.dtype)
    wv, g_memory = np.empty((1, m), dtype=signals.dtype), np.zeros(longest(place))
    along = np.empty((largest_support(first, place), BATCH_SIZE))
    dx, one = np.empty(longest(indptr), dtype=signals.dtype), signals.dtype.type(1)
    for batch in range(len(first) - 1):
        begin, end, n = place[batch], place[batch + 1], first[batch + 1] - first[batch]
        width = padded_size(n)
        s = (end - begin) // width
        atom, g = matrix(indices, begin, s, width), matrix(g_memory, np.int64(0), s, width)
        L = matrix(factors, factor_place[batch], s * (s + 1) // 2, width)
        for w in range(n):
            j = order[first[batch] + w]
            for p in range(m):
                r[w, p] = signals[j, p]
                v[w, p] = 0
            subtract(atoms, atom, w, codes, indptr[j], r, w)
            subtract(direction, atom, w, codes, indptr[j], v, w)  # v = −Eᵀx
            for p in range(m):
                weight = weights[j, p] if len(weights) else one
                r[w, p] *= weight
                wv[0, p] = weight * v[w, p]
            dots(direction, atom, w, r, w, g)  # E (w∘r)
            dots(atoms, atom, w, wv, np.int64(0), along)
            for a in range(s):
                g[a, w] += along[a, w]
        if len(known.inverse_of):
            use_inverses(order[first[batch] : first[batch] + n], known.inverse_of, known.inverses, g, L)
        solve_lower(L, g)
        solve_upper(L, g)
        for w in range(n):
            j = order[first[batch] + w]
            for a in range(s):
                dx[a] = g[a, w]
            subtract(atoms, atom, w, dx, np.int64(0), v, w)  # v = dr
            if len(weights):
                for p in range(m):
                    v[w, p] *= weights[j, p]
            for a in range(s):
                i, xa, da = atom[a, w], 2 * codes[indptr[j] + a], 2 * dx[a]
                for p in range(m):
                    product[i, p] -= xa * v[w, p] + da * r[w, p]
