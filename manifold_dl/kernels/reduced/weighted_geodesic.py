"""The objective along a geodesic where every signal has a Gram matrix of its own, compiled.

The Gram matrix of a signal at D(t) = D cos θt + U sin θt follows from A diag(w) Aᵀ, A diag(w) Uᵀ and
U diag(w) Uᵀ of its support, with its weights w, or with none. `precompute_weighted_products` forms these once
per search, 2s² + s numbers for a signal with s atoms; after that φ(t) and φ′(t) cost O(s³) per signal and do
not depend on m. The formulas are in `reference_weighted.py`.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled, internal
from manifold_dl.kernels.reduced import reference
from manifold_dl.kernels.reduced import reference_weighted as weighted_reference
from manifold_dl.kernels.reduced.batches import (
    BATCH_SIZE,
    Batches,
    largest_support,
    longest,
    matrix,
    padded_size,
)
from manifold_dl.kernels.reduced.cholesky import make_scratch, solve_lower, solve_upper
from manifold_dl.kernels.reduced.minimum_norm import PIVOT_RATIO, take
from manifold_dl.kernels.reduced.refit import clear, unbatch
from manifold_dl.kernels.reduced.structures import Block, GeodesicPoint, Refit, WeightedProducts
from manifold_dl.kernels.reduced.weighted import weights_or_empty
from manifold_dl.kernels.reduced.weighted_gram import (
    all_products,
    factorize_in_place,
    gather_rows,
    gather_signal,
    lower_products,
    make_gathered,
    multiply_row,
)


def precompute_weighted_products(
    block: Block, weights: np.ndarray | None, atoms: np.ndarray, mu: float, codes: np.ndarray, U: np.ndarray
) -> WeightedProducts:
    """See the reference. The order is that of the batches, padded with zeros."""
    n_codes, n_lower = len(block.batches.indices), int(block.batches.factor_place[-1])
    sizes = n_codes, n_codes, n_codes, n_lower, 2 * n_lower - n_codes, n_lower
    products = WeightedProducts(*(np.zeros(size) for size in sizes))
    arrays, own = (tuple(block.batches), tuple(products)), weights_or_empty(block, weights)
    _precompute_products(block.signals, own, *arrays, atoms, float(mu), codes, U)
    return products


def refit_weighted_codes(
    block: Block,
    weights: np.ndarray | None,
    products: WeightedProducts,
    mu: float,
    point: GeodesicPoint,
    with_slope: bool = True,
    codes: np.ndarray | None = None,
) -> Refit:
    """See `reference_weighted.refit_weighted_codes`."""
    rank_deficient = np.zeros(len(block.batches.signals), dtype=np.bool_)
    out = np.empty(0, block.signals.dtype) if codes is None else codes
    slopes, angles = with_slope or codes is not None, point.geodesic.angles * point.t
    lag = 2 * np.sin(angles / 2) ** 2  # 1 − cos without cancellation
    motion = Motion(np.cos(angles), np.sin(angles), lag, point.geodesic.angles)
    arrays = tuple(block.batches), tuple(products), tuple(motion)
    gain, slope, n_rank_deficient = _refit(*arrays, float(mu), PIVOT_RATIO, slopes, rank_deficient, out)
    if n_rank_deficient:
        ranks = np.flatnonzero(rank_deficient)
        rest = _refit_rank_deficient(block, weights, products, mu, point, ranks, codes)
        gain, slope = gain + rest.gain, slope + rest.slope
    return Refit(gain, slope, n_rank_deficient)


def _refit_rank_deficient(
    block: Block,
    weights: np.ndarray | None,
    products: WeightedProducts,
    mu: float,
    point: GeodesicPoint,
    ranks: np.ndarray,
    codes: np.ndarray | None,
) -> Refit:
    """The rank-deficient signals (given by rank in the batches), by the reference."""
    signals, start = unbatch(products.codes, block.batches, ranks)
    indptr, indices, places = take(block.indptr, block.indices, signals)
    by_reference = point._replace(arrays=reference.positions(point.geodesic, point.t))
    found = None if codes is None else np.empty(len(places), codes.dtype)
    part = Block(block.signals[signals], indptr, indices, None)
    known = WeightedProducts(start, start, start, start, start, start)
    rest = weighted_reference.refit_weighted_codes(
        part, None if weights is None else weights[signals], known, mu, by_reference, True, found
    )
    if codes is not None:
        codes[places] = found
    return rest


class Motion(NamedTuple):
    """Where every atom stands on its great circle at t."""

    cosine: np.ndarray
    sine: np.ndarray
    lag: np.ndarray  # 1 − cosine
    angles: np.ndarray  # θ


@compiled
def _precompute_products(signals, weights, batches_tuple, products_tuple, atoms, mu, codes, U):
    batches, products = Batches(*batches_tuple), WeightedProducts(*products_tuple)
    first, place, factor_place, indptr = batches.first, batches.place, batches.factor_place, batches.indptr
    order, m = batches.signals, signals.shape[1]
    gathered = make_gathered(largest_support(first, place), m)
    rows, roots, tile = gathered.rows, gathered.roots, gathered.tile
    rows_of_U = np.empty(rows.shape)
    for batch in range(len(first) - 1):
        begin, end, n = place[batch], place[batch + 1], first[batch + 1] - first[batch]
        low = factor_place[batch]
        width = padded_size(n)
        s = (end - begin) // width
        atom = matrix(batches.indices, begin, s, width)
        x0, by = matrix(products.codes, begin, s, width), matrix(products.at_atoms, begin, s, width)
        bu = matrix(products.at_directions, begin, s, width)
        DD = matrix(products.DD, low, s * (s + 1) // 2, width)
        UU = matrix(products.UU, low, s * (s + 1) // 2, width)
        DU = matrix(products.DU, 2 * low - begin, s * s, width)
        for w in range(n):
            j = np.int64(order[first[batch] + w])
            gather_signal(signals, weights, j, gathered)
            gather_rows(atoms, atom, w, len(weights) > 0, roots, rows)
            gather_rows(U, atom, w, len(weights) > 0, roots, rows_of_U)
            multiply_row(gathered.signal, np.int64(0), rows_of_U, s, w, bu, np.int64(0))
            lower_products(rows, s, w, tile, DD)
            lower_products(rows_of_U, s, w, tile, UU)
            all_products(rows_of_U, rows, s, w, tile, DU)  # DU[b·s + a] = ⟨w∘u_b, d_a⟩
            for a in range(s):
                x0[a, w] = codes[indptr[j] + a]
        # M x₀ and not A (w∘y), which it is but for rounding: at t = 0 there is then exactly nothing to gain.
        for a in range(s):
            row = a * (a + 1) // 2
            for w in range(width):
                by[a, w] += (DD[row + a, w] + mu) * x0[a, w]
            for b in range(a):
                for w in range(width):
                    by[a, w] += DD[row + b, w] * x0[b, w]
                    by[b, w] += DD[row + b, w] * x0[a, w]


@compiled
def _refit(batches_tuple, products_tuple, motion_tuple, mu, pivot_ratio, with_slope, rank_deficient, out):
    """Per signal ‖√w∘Px₀‖² − gᵀM⁻¹g, with M δ = g = b(t) − M x₀ at t, and its derivative."""
    batches, products = Batches(*batches_tuple), WeightedProducts(*products_tuple)
    motion, first, place = Motion(*motion_tuple), batches.first, batches.place
    factor_place, order, indptr = batches.factor_place, batches.signals, batches.indptr
    L_memory, scratch = np.empty(longest(factor_place)), make_scratch()
    memory = np.empty((7, largest_support(first, place), BATCH_SIZE))
    gains, slopes = np.zeros(BATCH_SIZE), np.zeros(BATCH_SIZE)
    is_left_out, n_rank_deficient = scratch.rank_deficient, 0
    for batch in range(len(first) - 1):
        begin, end, n = place[batch], place[batch + 1], first[batch + 1] - first[batch]
        low = factor_place[batch]
        width = padded_size(n)
        s = (end - begin) // width
        atom = matrix(batches.indices, begin, s, width)
        x0, by = matrix(products.codes, begin, s, width), matrix(products.at_atoms, begin, s, width)
        bu = matrix(products.at_directions, begin, s, width)
        DD = matrix(products.DD, low, s * (s + 1) // 2, width)
        UU = matrix(products.UU, low, s * (s + 1) // 2, width)
        DU = matrix(products.DU, 2 * low - begin, s * s, width)
        L, g = matrix(L_memory, np.int64(0), s * (s + 1) // 2, width), memory[0, :s]
        c, si, lag, theta = memory[1, :s], memory[2, :s], memory[3, :s], memory[4, :s]
        _gather_motion(motion, atom, c, si, lag, theta)
        _systems(DD, DU, UU, c, si, mu, x0, by, bu, L, g)
        if factorize_in_place(L, s, mu, pivot_ratio, scratch):
            for w in range(width):  # left to the reference: they add nothing here
                if is_left_out[w] and w < n:
                    rank_deficient[first[batch] + w] = True
                    n_rank_deficient += 1
                if is_left_out[w]:
                    clear(L, g, w)
        solve_lower(L, g)
        for a in range(s):
            for w in range(width):
                gains[w] -= g[a, w] * g[a, w] * L[a * (a + 1) // 2 + a, w]
        if with_slope:
            solve_upper(L, g)
            if len(out):
                _write_codes(x0, g, indptr, order[first[batch] : first[batch] + n], out)
        kept = memory[5, :s]
        for a in range(s):
            for w in range(width):
                kept[a, w] = 0.0 if is_left_out[w] else x0[a, w]
        _add_kept(DD, DU, UU, si, lag, kept, gains)
        if with_slope:
            _add_slopes(DD, DU, UU, c, si, lag, theta, by, bu, kept, g, memory[6, :s], slopes)
        is_left_out[:] = False
    gain, slope = 0.0, 0.0
    for w in range(BATCH_SIZE):
        gain += gains[w]
        slope += slopes[w]
    return gain, slope, n_rank_deficient


@internal
def _gather_motion(motion, atom, c, si, lag, theta):
    """Cosines, sines, lags and angles of the atoms of a batch."""
    s, width = atom.shape
    for a in range(s):
        for w in range(width):
            i = atom[a, w]
            c[a, w], si[a, w] = motion.cosine[i], motion.sine[i]
            lag[a, w], theta[a, w] = motion.lag[i], motion.angles[i]


@internal
def _write_codes(x0, change, indptr, signals, out):
    """The codes x₀ + δ of the signals of a batch, where they belong among those of the block."""
    for w in range(len(signals)):
        at = indptr[signals[w]]
        for a in range(len(x0)):
            out[at + a] = x0[a, w] + change[a, w]


@internal
def _systems(DD, DU, UU, c, si, mu, x0, by, bu, L, g):
    """G(t) in packed rows, and g = b(t) − (G(t) + μI) x₀."""
    s, width = len(x0), DD.shape[1]
    for a in range(s):
        row = a * (a + 1) // 2
        for w in range(width):
            g[a, w] = c[a, w] * by[a, w] + si[a, w] * bu[a, w] - mu * x0[a, w]
        for b in range(a + 1):
            for w in range(width):
                with_d = c[a, w] * DD[row + b, w] + si[a, w] * DU[a * s + b, w]
                with_u = c[a, w] * DU[b * s + a, w] + si[a, w] * UU[row + b, w]
                L[row + b, w] = c[b, w] * with_d + si[b, w] * with_u
    for a in range(s):
        row = a * (a + 1) // 2
        for w in range(width):
            g[a, w] -= L[row + a, w] * x0[a, w]
        for b in range(a):
            for w in range(width):
                g[a, w] -= L[row + b, w] * x0[b, w]
                g[b, w] -= L[row + b, w] * x0[a, w]


@internal
def _add_kept(DD, DU, UU, si, lag, x, gains):
    """‖√w∘Px‖² of every signal, where P = D − D(t) = lag D − sine U."""
    s, width = len(x), DD.shape[1]
    for a in range(s):
        row = a * (a + 1) // 2
        for b in range(a + 1):
            twice = 1.0 if a == b else 2.0
            for w in range(width):
                with_d = lag[a, w] * DD[row + b, w] - si[a, w] * DU[a * s + b, w]
                with_u = lag[a, w] * DU[b * s + a, w] - si[a, w] * UU[row + b, w]
                gains[w] += twice * x[a, w] * x[b, w] * (lag[b, w] * with_d - si[b, w] * with_u)


@internal
def _add_slopes(DD, DU, UU, c, si, lag, theta, by, bu, x, delta, rate, slopes):
    """The derivative of both terms: 2⟨√w∘Px, √w∘Ṗx⟩ and −2 ḃᵀδ + (2x + δ)ᵀĠδ."""
    s, width = len(x), DD.shape[1]
    for a in range(s):
        for w in range(width):
            turn = theta[a, w] * (c[a, w] * bu[a, w] - si[a, w] * by[a, w])
            slopes[w] -= 2.0 * turn * delta[a, w]
            rate[a, w] = 2.0 * x[a, w] + delta[a, w]
    for a in range(s):
        row = a * (a + 1) // 2
        for b in range(a + 1):
            half = 0.5 if a == b else 1.0
            for w in range(width):
                dd, uu = DD[row + b, w], UU[row + b, w]
                d_u, u_d = DU[b * s + a, w], DU[a * s + b, w]  # ⟨d_a, u_b⟩ and ⟨u_a, d_b⟩
                # The velocity of d_a(t) is θ_a (c_a u_a − s_a d_a), and that of P_a its negative.
                va_d = theta[a, w] * (c[a, w] * u_d - si[a, w] * dd)
                va_u = theta[a, w] * (c[a, w] * uu - si[a, w] * d_u)
                vb_d = theta[b, w] * (c[b, w] * d_u - si[b, w] * dd)
                vb_u = theta[b, w] * (c[b, w] * uu - si[b, w] * u_d)
                gram_rate = c[b, w] * va_d + si[b, w] * va_u + c[a, w] * vb_d + si[a, w] * vb_u
                kept_rate = si[b, w] * va_u - lag[b, w] * va_d + si[a, w] * vb_u - lag[a, w] * vb_d
                slopes[w] += half * gram_rate * (rate[a, w] * delta[b, w] + rate[b, w] * delta[a, w])
                slopes[w] += 2.0 * half * kept_rate * x[a, w] * x[b, w]
