"""φ for compiled callers: a whole line search then takes one call from Python instead of one a probe.

In small dictionaries a probe takes some microseconds, and Python between two probes takes as many. So
`line_search/whole.py` runs its searches in compiled code: `set_out` does what `depart` and `along` do, `ask`
what `move` and `probe` do, `land` what `travel`, `inner`, `fit` and `energies` do. Between them φ is a tuple
of arrays.
"""

import numpy as np

from manifold_dl.kernels.compiled import _energies, _fit
from manifold_dl.kernels.compiled_geodesic import (
    BLAS_STAYS_ALONE,
    _along,
    _depart,
    _inner,
    _move,
    _probe,
)
from manifold_dl.kernels.compiled_spheres import travel
from manifold_dl.kernels.compiling import compiled_into_callers
from manifold_dl.kernels.reference import PIVOT_RATIO

LIMITS = PIVOT_RATIO, BLAS_STAYS_ALONE  # handed over, as the cache on disk would not notice a change of them


@compiled_into_callers
def set_out(block, fitted, direction, mu, limits, out):
    """The φ of one block of signals. The codes of the last slope go to `out`, if there is room in it."""
    signals, indptr, _, order, first, place, factor_place, indices, ascending = block
    atoms, gram, gradient, codes = fitted
    k, m = atoms.shape
    D, U, rates, crosses = np.empty((k, m)), np.empty((k, m)), np.empty((3, k)), np.empty((3, k, k))
    _depart(
        atoms, direction, gradient, limits[1], D, U, rates[0], rates[1], rates[2],
        crosses[0], crosses[1], crosses[2],
    )  # fmt: skip
    packed, energy = np.empty((3, len(indices)), dtype=codes.dtype), np.zeros((k, k))
    _along(
        signals, indptr, gram, mu, codes, U.astype(signals.dtype),
        order, first, place, factor_place, indices, packed[0], packed[1], packed[2], energy,
    )  # fmt: skip
    packs = indptr, order, first, place, factor_place, indices, packed, out
    room = np.empty((2, k, k)), np.empty((2, k))
    return packs, (gram, crosses, energy, rates), room, (mu, limits[0], ascending)


@compiled_into_callers
def ask(phi, t, with_slope):
    """What φ(t) has more than φ(0) with codes that stay, and what with those that follow; the slope of both.

    And how many signals could not follow, because they have to be left to the reference kernel.
    """
    indptr, order, first, place, factor_place, indices, packed, out = phi[0]
    gram, crosses, energy, rates = phi[1]
    grams, turns = phi[2]
    mu, ratio, ascending = phi[3]
    moved, slope = _move(
        gram, crosses[0], crosses[1], crosses[2], energy, rates[1], rates[2], rates[0], t, with_slope,
        ascending, grams[0], grams[1], turns[0], turns[1],
    )  # fmt: skip
    bad = np.zeros(len(order), dtype=np.bool_)
    gain, gain_slope, n_bad = _probe(
        indptr, order, first, place, factor_place, indices, packed[0], packed[1], packed[2],
        mu, ratio, grams[0], grams[1], turns[0], turns[1], rates[0], with_slope, bad, out,
    )  # fmt: skip
    return moved, gain, slope + gain_slope, n_bad


@compiled_into_callers
def land(block, fitted, direction, t, mu, limits, landing):
    """Go to t, and find all that a fit finds there. Returns the value, and how many signals it left out.

    All goes into the arrays of `landing`. If there is no room for a gradient, there is no fit.
    """
    signals, indptr, entries, order, first, place, factor_place, indices, _ = block
    atoms, copy, gradient, gram, energy, codes = landing
    travel(fitted[0], direction * direction.dtype.type(t), atoms)
    for i in range(len(atoms)):
        for p in range(atoms.shape[1]):
            copy[i, p] = atoms[i, p]
    if not len(gradient):
        return 0.0, 0
    for i in range(len(atoms)):
        energy[i] = 0.0
        for p in range(atoms.shape[1]):
            gradient[i, p] = 0
    wide = atoms.astype(np.float64)
    _inner(wide, wide, limits[1], gram)
    factors, bad = np.empty(0), np.zeros(len(signals), dtype=np.bool_)
    value, n_bad = _fit(
        signals, indptr, atoms, gram, mu, limits[0], len(factors) > 0,
        order, first, place, factor_place, indices, codes, factors, gradient, bad,
    )  # fmt: skip
    _energies(entries, codes, energy)
    return value, n_bad
