"""φ for compiled callers: a whole line search then takes one call from Python instead of one a probe.

A line search in small dictionaries takes some microseconds a probe, and Python between two probes takes as
many. So `line_search/whole.py` runs its searches in compiled code, which knows φ as a `path`, a tuple made
here, and calls `ask(path, t)`.
"""

import numpy as np

from manifold_dl.kernels.compiled_geodesic import _move, _probe
from manifold_dl.kernels.compiling import compiled
from manifold_dl.kernels.reference import PIVOT_RATIO


def path(indptr, products, mu, way, codes=None):
    """φ of one block of signals; the codes at the last t go to `codes`."""
    k = len(way.angles)
    out = products.codes[:0] if codes is None else codes
    return (
        (indptr, *products.packs, *products[:3], out),
        (*way.grams, way.energy, *way.rates, way.angles),
        (np.empty((2, k, k)), np.empty((2, k))),
        (float(mu), PIVOT_RATIO),
    )


@compiled
def ask(path, t, with_slope):
    """What φ(t) has more than φ(0) with codes that stay, and with codes that follow; the slope of both.

    And how many signals could not follow, because they have to be left to the reference kernel.
    """
    (indptr, order, first, place, factor_place, indices, codes, at_atoms, at_directions, out) = path[0]
    (DD, DU, UD, UU, energy, atom_rates, direction_rates, angles) = path[1]
    grams, turns = path[2]
    mu, ratio = path[3]
    moved, slope = _move(
        DD, DU, UD, UU, energy, atom_rates, direction_rates, angles, t, with_slope,
        grams[0], grams[1], turns[0], turns[1],
    )  # fmt: skip
    bad = np.zeros(len(order), dtype=np.bool_)
    gain, gain_slope, n_bad = _probe(
        indptr, order, first, place, factor_place, indices, codes, at_atoms, at_directions,
        mu, ratio, grams[0], grams[1], turns[0], turns[1], angles, with_slope, bad, out,
    )  # fmt: skip
    return moved, gain, slope + gain_slope, n_bad
