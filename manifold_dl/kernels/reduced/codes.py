"""Codes that follow the dictionary, compiled: value, gradient and Hessian product of one block of signals.

The functions of `reference.py`, with nothing allocated per signal. Every signal solves its own small normal
equations by Cholesky, with the Gram matrix of the atoms computed once, many signals side by side
(`batches.py`). Signals whose pivots break down are solved by singular values, in the reference. The loops
release the interpreter lock, so blocks of signals run in threads.
"""

from typing import Any, NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled, internal
from manifold_dl.kernels.memory import aligned_zeros
from manifold_dl.kernels.reduced import reference
from manifold_dl.kernels.reduced.batches import BATCH_SIZE, Batches, longest, matrix, padded_size, zeros
from manifold_dl.kernels.reduced.cholesky import (
    dots,
    factorize,
    free_diagonal,
    make_scratch,
    solve_lower,
    solve_upper,
    subtract,
)
from manifold_dl.kernels.reduced.minimum_norm import PIVOT_RATIO, padded_inverses, take
from manifold_dl.kernels.reduced.structures import Block, Fit, Solutions

NO_FACTORS = np.zeros(0)
NO_INVERSES = np.zeros((0, 0, 0))
NO_SIGNALS = np.zeros(0, dtype=np.intp)


class FitArrays(NamedTuple):
    """Where the compiled pass writes to."""

    gradient: np.ndarray
    energies: np.ndarray
    codes: np.ndarray
    factors: np.ndarray  # empty if they are not kept
    rank_deficient: np.ndarray  # n booleans
    residual: np.ndarray  # 1×m: memory for that of one signal


def fit_codes(block: Block, atoms: np.ndarray, gram: np.ndarray, mu: float, keep_factors: bool = True) -> Fit:
    """See `reference.fit_codes`."""
    out = FitArrays(
        gradient=aligned_zeros(atoms.shape, atoms.dtype),
        energies=np.zeros(len(atoms)),
        codes=np.zeros(len(block.indices), block.signals.dtype),
        factors=np.empty(block.batches.factor_place[-1]) if keep_factors else NO_FACTORS,
        rank_deficient=np.zeros(len(block.signals), np.bool_),
        residual=np.empty((1, block.signals.shape[1]), block.signals.dtype),
    )
    # The ratio is an argument, because Numba's cache on disk would not notice a change of the constant.
    batches = tuple(block.batches)
    value, n_rank_deficient = _fit(block.signals, batches, atoms, gram, float(mu), PIVOT_RATIO, tuple(out))
    value += _energy_without_atoms(block)
    factors = out.factors if keep_factors else None
    if n_rank_deficient == 0:
        solutions = Solutions(out.codes, factors, NO_SIGNALS, NO_INVERSES)
        return Fit(value, out.gradient, out.energies, solutions)
    rank_deficient = np.flatnonzero(out.rank_deficient)
    indptr, indices, places = take(block.indptr, block.indices, rank_deficient)
    rest = reference.fit_codes(Block(block.signals[rank_deficient], indptr, indices, None), atoms, gram, mu)
    out.gradient[:] += rest.gradient
    out.energies[:] += rest.energies
    out.codes[places] = rest.solutions.codes
    solutions = Solutions(out.codes, factors, rank_deficient, padded_inverses(atoms, indptr, indices, mu))
    return Fit(value + rest.value, out.gradient, out.energies, solutions)


def _energy_without_atoms(block: Block) -> float:
    """Σ ‖y‖² of the signals that use no atom: no batch holds them."""
    if len(block.batches.signals) == len(block.signals):
        return 0.0
    unused = block.signals[np.diff(block.indptr) == 0]
    return float(np.sum(np.square(unused, dtype=float)))


def evaluate_fixed(block: Block, atoms: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
    """See `reference.evaluate_fixed`."""
    gradient = np.zeros_like(atoms)
    value = _evaluate_fixed(block.signals, block.indptr, block.indices, atoms, codes, gradient)
    return value, gradient


class HessianArrays(NamedTuple):
    """What a Hessian product reads besides signals and supports."""

    atoms: np.ndarray
    direction: np.ndarray
    cross: np.ndarray  # k×k: inner products of atoms and directions
    codes: np.ndarray
    factors: Any  # never None: a Hessian product needs them
    inverse_of: np.ndarray  # which of the inverses belongs to a signal, −1 for none; empty if there are none
    inverses: np.ndarray


def hessian_product(
    block: Block,
    atoms: np.ndarray,
    cross: np.ndarray,
    mu: float,
    solutions: Solutions,
    direction: np.ndarray,
) -> np.ndarray:
    """See `reference.hessian_product`."""
    inverse_of = NO_SIGNALS
    codes, factors, rank_deficient, inverses = solutions
    if len(rank_deficient):
        inverse_of = np.full(len(block.signals), -1)
        inverse_of[rank_deficient] = np.arange(len(rank_deficient))
    product = aligned_zeros(atoms.shape, atoms.dtype)
    known = HessianArrays(atoms, direction, cross, codes, factors, inverse_of, inverses)
    _hessian_product(block.signals, tuple(block.batches), tuple(known), product)
    return product


@compiled
def _fit(signals, batches_tuple, atoms, gram, mu, pivot_ratio, out_tuple):
    batches, out = Batches(*batches_tuple), FitArrays(*out_tuple)
    order, indptr, indices = batches.signals, batches.indptr, batches.indices
    first, place, factor_place = batches.first, batches.place, batches.factor_place
    factors = out.factors
    keep = len(factors) > 0
    factor_memory = zeros(np.int64(0) if keep else longest(factor_place))
    g_memory, scratch = zeros(longest(place)), make_scratch()
    diagonal = free_diagonal(gram)
    rank_deficient = scratch.rank_deficient
    value, n_rank_deficient = 0.0, 0
    for batch in range(len(first) - 1):
        begin, end, n = place[batch], place[batch + 1], first[batch + 1] - first[batch]
        width = padded_size(n)
        s = (end - begin) // width
        atom, g = matrix(indices, begin, s, width), matrix(g_memory, np.int64(0), s, width)
        factor, at = (factors, factor_place[batch]) if keep else (factor_memory, np.int64(0))
        L = matrix(factor, at, s * (s + 1) // 2, width)
        for w in range(n):
            dots(atoms, atom, w, signals, np.int64(order[first[batch] + w]), g)
        any_rank_deficient = factorize(gram, diagonal, atom, mu, pivot_ratio, g[:0], g, L, scratch)
        solve_lower(L, g)
        solve_upper(L, g)
        for w in range(n):
            j = np.int64(order[first[batch] + w])
            if any_rank_deficient and rank_deficient[w]:  # left to the reference
                out.rank_deficient[j] = True
                n_rank_deficient += 1
            else:
                value += _add_signal(signals, j, atoms, atom, g, w, indptr[j], mu, out)
        if any_rank_deficient:
            for w in range(width):
                rank_deficient[w] = 0
    return value, n_rank_deficient


@internal
def _add_signal(signals, j, atoms, atom, g, w, at, mu, out):
    """Write the codes of signal j, and add what it contributes to gradient and energies; its value."""
    codes, energies, gradient, r = out.codes, out.energies, out.gradient, out.residual
    m, s, energy, total = signals.shape[1], len(atom), 0.0, 0.0
    for a in range(s):
        codes[at + a] = g[a, w]
        energy += g[a, w] * g[a, w]
    for p in range(m):
        r[0, p] = signals[j, p]
    subtract(atoms, atom, w, codes, at, r, np.int64(0))
    for p in range(m):
        total += r[0, p] * r[0, p]
    for a in range(s):
        i, x = atom[a, w], codes[at + a]
        energies[i] += np.float64(x) * x
        for p in range(m):
            gradient[i, p] -= 2 * x * r[0, p]
    return mu * energy + total


@compiled
def _evaluate_fixed(signals, indptr, indices, atoms, codes, gradient):
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
            total += r[p] * r[p]
        value += total
        for a in range(indptr[j], indptr[j + 1]):
            i, x = indices[a], 2 * codes[a]
            for p in range(m):
                gradient[i, p] -= x * r[p]
    return value


@compiled
def _hessian_product(signals, batches_tuple, known_tuple, product):
    batches, known = Batches(*batches_tuple), HessianArrays(*known_tuple)
    atoms, direction, codes, factors = known.atoms, known.direction, known.codes, known.factors
    order, indptr, indices = batches.signals, batches.indptr, batches.indices
    first, place, factor_place = batches.first, batches.place, batches.factor_place
    m = signals.shape[1]
    r, v = np.empty((BATCH_SIZE, m), dtype=signals.dtype), np.empty((BATCH_SIZE, m), dtype=signals.dtype)
    g_memory, x_memory = zeros(longest(place)), zeros(longest(place))
    dx = np.empty(longest(indptr), dtype=signals.dtype)
    C, k = known.cross.ravel(), len(known.cross)
    for batch in range(len(first) - 1):
        begin, end, n = place[batch], place[batch + 1], first[batch + 1] - first[batch]
        width = padded_size(n)
        s = (end - begin) // width
        atom = matrix(indices, begin, s, width)
        g, x = matrix(g_memory, np.int64(0), s, width), matrix(x_memory, np.int64(0), s, width)
        L = matrix(factors, factor_place[batch], s * (s + 1) // 2, width)
        for w in range(n):
            j = order[first[batch] + w]
            for p in range(m):
                r[w, p] = signals[j, p]
                v[w, p] = 0
            subtract(atoms, atom, w, codes, indptr[j], r, w)
            subtract(direction, atom, w, codes, indptr[j], v, w)  # v = −Eᵀx
            dots(direction, atom, w, r, w, g)
            for a in range(s):
                x[a, w] = codes[indptr[j] + a]
        for a in range(s):  # g = E r − A Eᵀx
            for b in range(s):
                for w in range(width):
                    g[a, w] -= C[k * atom[a, w] + atom[b, w]] * x[b, w]
        if len(known.inverse_of):
            use_inverses(order[first[batch] : first[batch] + n], known.inverse_of, known.inverses, g, L)
        solve_lower(L, g)
        solve_upper(L, g)
        for w in range(n):
            at = indptr[order[first[batch] + w]]
            for a in range(s):
                dx[a] = g[a, w]
            subtract(atoms, atom, w, dx, np.int64(0), v, w)  # v = dr
            for a in range(s):
                i, xa, da = atom[a, w], 2 * codes[at + a], 2 * dx[a]
                for p in range(m):
                    product[i, p] -= xa * v[w, p] + da * r[w, p]


@internal
def use_inverses(signals, inverse_of, inverses, g, L):
    """g becomes M⁺g for the rank-deficient signals of a batch, and their factors the identity."""
    s = len(g)
    before = np.empty(s)
    for w in range(len(signals)):
        inverse = inverse_of[signals[w]]
        if inverse >= 0:
            for a in range(s):
                before[a] = g[a, w]
            for a in range(s):
                g[a, w] = 0.0
                for b in range(s):
                    g[a, w] += inverses[inverse, a, b] * before[b]
                    if b <= a:
                        L[a * (a + 1) // 2 + b, w] = 1.0 if a == b else 0.0
