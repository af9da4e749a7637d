"""Geodesics on the spheres, compiled: what a line search computes once, and the atoms at t.

`precompute_products` reads the signals once per search. After that every φ(t) takes one `geodesic_point`
(inner products of the atoms at t, for all blocks) and one `refit_codes` per block (`refit.py`), at a cost
that does not depend on m. The same functions as in `reference.py`, which has the formulas. Signals that have
Gram matrices of their own (`weighted_geodesic.py`) share no inner products: then neither is of size k×k.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled, internal
from manifold_dl.kernels.memory import aligned
from manifold_dl.kernels.products import inner_products
from manifold_dl.kernels.reduced import reference
from manifold_dl.kernels.reduced.batches import Batches, longest, matrix, padded_size, zeros
from manifold_dl.kernels.reduced.cholesky import dots, make_scratch
from manifold_dl.kernels.reduced.rows import gram
from manifold_dl.kernels.reduced.structures import Block, Geodesic, GeodesicPoint, Products


def init_geodesic(
    atoms: np.ndarray,
    direction: np.ndarray,
    gradient: np.ndarray,
    gram_matrix: np.ndarray | None,
    shares_products: bool = True,
) -> Geodesic:
    """See `reference.init_geodesic`."""
    k = len(atoms)
    D, U = aligned((2, *atoms.shape), np.dtype(float))
    D[:], U[:] = atoms, direction
    angles = np.sqrt(np.vecdot(U, U))
    U /= np.where(angles > 0, angles, 1.0)[:, None]
    rates = np.vecdot(gradient, D), np.vecdot(gradient, U)
    if not shares_products:
        return Geodesic(D, U, angles, NO_PRODUCTS, NO_PRODUCTS, NO_PRODUCTS, NO_PRODUCTS, *rates)
    DD = gram(D, D) if gram_matrix is None else gram_matrix
    DU, UD, UU = np.empty((3, k, k))
    inner_products(D, U, DU)
    inner_products(U, U, UU)
    UD[:] = DU.T
    return Geodesic(D, U, angles, DD, DU, UD, UU, *rates)


def precompute_products(
    block: Block, atoms: np.ndarray, gram_matrix: np.ndarray, mu: float, codes: np.ndarray, U: np.ndarray
) -> tuple[Products, np.ndarray]:
    """See `reference.precompute_products`. The order is that of the batches, padded with zeros."""
    products = Products(*np.empty((3, len(block.batches.indices)), dtype=codes.dtype))
    energy = np.zeros((len(atoms), len(atoms)))
    batches, into = tuple(block.batches), tuple(products)
    _precompute_products(block.signals, batches, gram_matrix, float(mu), codes, U, into, energy)
    return products, energy


NO_PRODUCTS = np.zeros((0, 0))


class PointArrays(NamedTuple):
    """Inner products of the atoms at t: all that the compiled refit needs of them."""

    gram: np.ndarray  # D(t)ᵀD(t)
    gram_rate: np.ndarray  # its derivative
    cosine: np.ndarray
    sine: np.ndarray


def geodesic_point(
    geodesic: Geodesic,
    energy: np.ndarray | None,
    t: float,
    with_slope: bool = True,
    is_sorted: bool = False,
    arrays: PointArrays | None = None,
) -> GeodesicPoint:
    """See `reference.geodesic_point`."""
    if energy is None:
        return reference.point_without_products(geodesic, t)
    k = len(geodesic.angles)
    arrays = arrays or PointArrays(np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k))
    value, slope = _geodesic_point(tuple(geodesic), energy, t, with_slope, is_sorted, tuple(arrays))
    return GeodesicPoint(value, slope, geodesic, t, arrays)


@internal
def _symmetrize(gram):
    """Fill the part above the diagonal from that below, a few rows at a time."""
    for first in range(0, len(gram), 16):
        for b in range(len(gram)):
            for i in range(max(first, b + 1), min(first + 16, len(gram))):
                gram[b, i] = gram[i, b]


@compiled
def _precompute_products(signals, batches_tuple, gram_matrix, mu, codes, U, products_tuple, energy):
    batches, products = Batches(*batches_tuple), Products(*products_tuple)
    first, place, indptr = batches.first, batches.place, batches.indptr
    order, indices = batches.signals, batches.indices
    start_codes, at_atoms, at_directions = products.codes, products.at_atoms, products.at_directions
    g_memory, x_memory = zeros(longest(place)), zeros(longest(place))
    G, k, XX = gram_matrix.ravel(), len(gram_matrix), energy.ravel()
    entry, _, slot, _ = make_scratch()
    for batch in range(len(first) - 1):
        begin, end, n = place[batch], place[batch + 1], first[batch + 1] - first[batch]
        width = padded_size(n)
        s = (end - begin) // width
        atom, x0 = matrix(indices, begin, s, width), matrix(start_codes, begin, s, width)
        by, bu = matrix(at_atoms, begin, s, width), matrix(at_directions, begin, s, width)
        g, x = matrix(g_memory, np.int64(0), s, width), matrix(x_memory, np.int64(0), s, width)
        for w in range(n):
            j = np.int64(order[first[batch] + w])
            dots(U, atom, w, signals, j, bu)
            for a in range(s):
                x[a, w] = codes[indptr[j] + a]
        for a in range(s):
            for w in range(n, width):
                x[a, w] = 0.0
                bu[a, w] = 0
            for b in range(a + 1):
                for w in range(width):  # below the diagonal, wherever the atoms stand
                    i, l = np.int64(atom[a, w]), np.int64(atom[b, w])
                    slot[w] = k * i + l if i > l else k * l + i
                    entry[w] = x[a, w] * x[b, w]
                for w in range(n):
                    XX[slot[w]] += entry[w]
        # M x₀ and not A y, which it is but for rounding: at t = 0 there is then exactly nothing to gain.
        for a in range(s):
            for w in range(width):
                g[a, w] = (gram_matrix[atom[a, w], atom[a, w]] + mu) * x[a, w]
            for b in range(a):
                for w in range(width):
                    entry[w] = G[k * atom[a, w] + atom[b, w]]
                    g[a, w] += entry[w] * x[b, w]
                    g[b, w] += entry[w] * x[a, w]
        for a in range(s):
            for w in range(width):
                by[a, w] = g[a, w]
                x0[a, w] = x[a, w]
    _symmetrize(energy)


@compiled
def _geodesic_point(geodesic_tuple, energy, t, with_slope, is_sorted, out_tuple):
    geodesic, out = Geodesic(*geodesic_tuple), PointArrays(*out_tuple)
    DD, DU, UD, UU, angles = geodesic.DD, geodesic.DU, geodesic.UD, geodesic.UU, geodesic.angles
    gram_t, gram_rate, cosine, sine = out.gram, out.gram_rate, out.cosine, out.sine
    k, lag = len(angles), np.empty(len(angles))
    for i in range(k):
        by_sine, by_cosine = np.sin(angles[i] * t / 2), np.cos(angles[i] * t / 2)  # of half the angle
        lag[i] = 2.0 * by_sine * by_sine
        cosine[i], sine[i] = 1.0 - lag[i], 2.0 * by_sine * by_cosine
    value, slope = 0.0, 0.0
    for i in range(k):
        ci, si, li, wi = cosine[i], sine[i], lag[i], angles[i]
        along_atom, along_direction = geodesic.rate_along_atoms[i], geodesic.rate_along_directions[i]
        kept, kept_rate = 0.0, 0.0
        for b in range(i + 1):
            dd, du, ud, uu = DD[i, b], DU[i, b], UD[i, b], UU[i, b]
            at_d, at_u = ci * dd + si * ud, ci * du + si * uu  # d_i(t) against D_b and U_b
            gram_t[i, b] = at_d * cosine[b] + at_u * sine[b]
            # P = lag d − sine u is how far d_i has come from d_i(t): ⟨P_i, P_b⟩
            behind_d, behind_u = li * dd - si * ud, li * du - si * uu
            kept += energy[i, b] * (behind_d * lag[b] - behind_u * sine[b])
        # Twice, because the other half of the products is the same; the diagonal was counted once too often.
        behind = energy[i, i] * (li * li * DD[i, i] - 2 * li * si * DU[i, i] + si * si * UU[i, i])
        value += 2 * kept - behind - li * along_atom + si * along_direction
        if with_slope:  # in a loop of its own, so that the value has the same bits without it
            for b in range(i + 1):
                dd, du, ud, uu = DD[i, b], DU[i, b], UD[i, b], UU[i, b]
                at_d, at_u = ci * dd + si * ud, ci * du + si * uu
                by_d, by_u = wi * (ci * ud - si * dd), wi * (ci * uu - si * du)  # velocity of d_i(t)
                turn = angles[b] * (at_u * cosine[b] - at_d * sine[b])
                gram_rate[i, b] = by_d * cosine[b] + by_u * sine[b] + turn
                behind_d, behind_u = li * dd - si * ud, li * du - si * uu
                turn = angles[b] * (behind_d * sine[b] - behind_u * cosine[b])
                kept_rate += energy[i, b] * (turn - by_d * lag[b] + by_u * sine[b])
            lag_rate, sine_rate = wi * si, wi * ci
            turn = lag_rate * (li * DD[i, i] - si * DU[i, i]) - sine_rate * (li * DU[i, i] - si * UU[i, i])
            slope += 2 * kept_rate - 2 * energy[i, i] * turn
            slope += sine_rate * along_direction - lag_rate * along_atom
    if not is_sorted:
        _symmetrize(gram_t)
        if with_slope:
            _symmetrize(gram_rate)
    return value, slope
