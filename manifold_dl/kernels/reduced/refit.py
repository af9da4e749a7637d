"""Codes at a point of a geodesic, compiled: the gain over the codes of the start, and its slope.

With x = x₀ + δ the gain is a quadratic form in δ, computed without cancellation from inner products that
`geodesic.py` prepared. Many signals are solved side by side (`batches.py`), and none of it depends on m.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled, internal
from manifold_dl.kernels.reduced import reference
from manifold_dl.kernels.reduced.batches import (
    BATCH_SIZE,
    Batches,
    largest_support,
    longest,
    matrix,
    padded_size,
    zeros,
)
from manifold_dl.kernels.reduced.cholesky import (
    factorize,
    free_diagonal,
    make_scratch,
    solve_lower,
    solve_upper,
)
from manifold_dl.kernels.reduced.geodesic import PointArrays
from manifold_dl.kernels.reduced.minimum_norm import PIVOT_RATIO, take
from manifold_dl.kernels.reduced.structures import Block, GeodesicPoint, Products, Refit


def refit_codes(
    block: Block,
    products: Products,
    mu: float,
    point: GeodesicPoint,
    with_slope: bool = True,
    codes: np.ndarray | None = None,
) -> Refit:
    """See `reference.refit_codes`."""
    rank_deficient = np.zeros(len(block.batches.signals), dtype=np.bool_)
    out = products.codes[:0] if codes is None else codes
    angles, slopes = point.geodesic.angles, with_slope or codes is not None
    arrays = tuple(block.batches), tuple(products), tuple(point.arrays)
    gain, slope, n_rank_deficient = _refit(
        *arrays, float(mu), PIVOT_RATIO, angles, slopes, rank_deficient, out
    )
    if n_rank_deficient:
        rest = _refit_rank_deficient(
            block, products, mu, point, with_slope, np.flatnonzero(rank_deficient), codes
        )
        gain, slope = gain + rest.gain, slope + rest.slope
    return Refit(gain, slope, n_rank_deficient)


def _refit_rank_deficient(
    block: Block,
    products: Products,
    mu: float,
    point: GeodesicPoint,
    with_slope: bool,
    ranks: np.ndarray,
    codes: np.ndarray | None,
) -> Refit:
    """The rank-deficient signals (given by rank in the batches), by the reference."""
    rank_deficient, start = unbatch(products.codes, block.batches, ranks)
    indptr, indices, places = take(block.indptr, block.indices, rank_deficient)
    by_reference = point._replace(arrays=reference.positions(point.geodesic, point.t))
    found = None if codes is None else np.empty(len(places), codes.dtype)
    part = Block(block.signals[rank_deficient], indptr, indices, None)
    rest = reference.refit_codes(part, Products(start, start, start), mu, by_reference, with_slope, found)
    if codes is not None:
        codes[places] = found
    return rest


def unbatch(codes: np.ndarray, batches: Batches, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some of the signals, with their codes one after the other."""
    inside = np.searchsorted(batches.first, ranks, side="right") - 1
    begins, ends = batches.place[inside] + ranks - batches.first[inside], batches.place[inside + 1]
    stretches = zip(begins, ends, batches.widths[inside], strict=True)
    parts = [codes[begin:end:width] for begin, end, width in stretches]
    return batches.signals[ranks], np.concatenate(parts)


@compiled
def _refit(
    batches_tuple, products_tuple, point_tuple, mu, pivot_ratio, angles, with_slope, rank_deficient, out
):
    """With x = x₀ + δ: M δ = g = b(t) − M x₀, and the gain is −gᵀδ = −hᵀΔ⁻¹h with h = L⁻¹g."""
    batches, products = Batches(*batches_tuple), Products(*products_tuple)
    point, first, place = PointArrays(*point_tuple), batches.first, batches.place
    L_memory, scratch = zeros(longest(batches.factor_place)), make_scratch()
    memory = np.empty((3, largest_support(first, place), BATCH_SIZE))
    gains, slopes = zeros(np.int64(BATCH_SIZE)), zeros(np.int64(BATCH_SIZE))
    order, indptr, indices = batches.signals, batches.indptr, batches.indices
    start_codes, at_atoms, at_directions = products.codes, products.at_atoms, products.at_directions
    gram, gram_rate, rank_deficient_in_batch = point.gram, point.gram_rate, scratch.rank_deficient
    diagonal = free_diagonal(gram)
    n_rank_deficient = 0
    for batch in range(len(first) - 1):
        begin, end, n = place[batch], place[batch + 1], first[batch + 1] - first[batch]
        width = padded_size(n)
        s = (end - begin) // width
        atom, x0 = matrix(indices, begin, s, width), matrix(start_codes, begin, s, width)
        by, bu = matrix(at_atoms, begin, s, width), matrix(at_directions, begin, s, width)
        g, turn = memory[0, :s], memory[1, :s]
        L = matrix(L_memory, np.int64(0), s * (s + 1) // 2, width)
        _right_hand_sides(atom, by, bu, point.cosine, point.sine, angles, with_slope, g, turn)
        if factorize(gram, diagonal, atom, mu, pivot_ratio, x0, g, L, scratch):
            for w in range(width):  # left to the reference: they add nothing here
                if rank_deficient_in_batch[w]:
                    rank_deficient_in_batch[w] = 0
                    clear(L, g, w)
                    if w < n:
                        rank_deficient[first[batch] + w] = True
                        n_rank_deficient += 1
        solve_lower(L, g)
        for a in range(s):
            for w in range(width):
                gains[w] -= g[a, w] * g[a, w] * L[a * (a + 1) // 2 + a, w]
        if with_slope:
            solve_upper(L, g)
            _add_slopes(gram_rate, atom, x0, g, turn, memory[2, :s], slopes)
            if len(out):
                for w in range(n):
                    at = indptr[order[first[batch] + w]]
                    for a in range(s):
                        out[at + a] = x0[a, w] + g[a, w]
    gain, slope = 0.0, 0.0
    for w in range(BATCH_SIZE):
        gain += gains[w]
        slope += slopes[w]
    return gain, slope, n_rank_deficient


@internal
def _right_hand_sides(atom, by, bu, cosine, sine, angles, with_slope, g, turn):
    """b(t) = A(t)ᵀy, and its derivative."""
    s, width = atom.shape
    for a in range(s):
        if with_slope:
            for w in range(width):
                i = atom[a, w]
                g[a, w] = cosine[i] * by[a, w] + sine[i] * bu[a, w]
                turn[a, w] = angles[i] * (cosine[i] * bu[a, w] - sine[i] * by[a, w])
        else:
            for w in range(width):
                g[a, w] = cosine[atom[a, w]] * by[a, w] + sine[atom[a, w]] * bu[a, w]


@internal
def clear(L, g, w):
    """Take a signal out of a batch: no right-hand side, no factor."""
    for a in range(len(g)):
        g[a, w] = 0.0
        for b in range(a):
            L[a * (a + 1) // 2 + b, w] = 0.0


@internal
def _add_slopes(gram_rate, atom, x0, g, turn, rate, slopes):
    """The derivative of the gain, signal by signal; g is δ by now."""
    (s, width), dG, k = atom.shape, gram_rate.ravel(), len(gram_rate)
    for a in range(s):
        for w in range(width):
            slopes[w] -= 2.0 * turn[a, w] * g[a, w]
            rate[a, w] = 2.0 * x0[a, w] + g[a, w]
        for b in range(a):  # dG has a zero diagonal: the atoms keep their norms
            for w in range(width):
                by_both = rate[a, w] * g[b, w] + rate[b, w] * g[a, w]
                slopes[w] += dG[k * atom[a, w] + atom[b, w]] * by_both
