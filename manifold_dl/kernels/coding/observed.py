"""The observed entries of one signal with weights, compiled, and the dictionary √w∘D as that signal has it.

With s = √w the problem of a signal is the unweighted one of s∘y over the atoms s∘d_i: other atoms for every
signal. A Gram matrix of all of them would take d²m products, a hundred times a pursuit. So `OwnDictionary` is
filled row by row, as atoms become active: a row is one product Dᵀ(w∘d_p) over the observed entries.
`weighted.py` and `checked_lasso.py` use it.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import internal_in_order, internal_reordering
from manifold_dl.kernels.coding.interface import PreparedDictionary


class Observed(NamedTuple):
    """The entries of one signal that have a weight, one after the other: the first `count` of each count."""

    places: np.ndarray  # which entries
    roots: np.ndarray  # their √w
    scratch: np.ndarray


class OwnDictionary(NamedTuple):
    """The dictionary √w∘D of one signal; without weights, the one that all signals share."""

    prepared: PreparedDictionary  # rows of `atoms` and `gram` count where `known`
    atoms: np.ndarray  # d×m: without weights
    inverse_norms: np.ndarray  # padded: what each atom is multiplied by
    known: np.ndarray  # padded: empty if the dictionary is shared, and complete
    mu: float  # what the diagonal of the Gram matrix has besides the products
    seen: Observed


@internal_in_order
def empty_observed(m: int, dtype: np.dtype) -> Observed:
    """Memory for one signal."""
    return Observed(np.empty(m, np.int64), np.empty(m, dtype), np.empty(m, dtype))


@internal_in_order
def own_dictionary(dictionary: PreparedDictionary, weighted: bool, mu: float) -> OwnDictionary:
    """Memory of one thread for the dictionary of one signal after the other."""
    atoms, tiles, gram, eps = dictionary
    seen = Observed(np.empty(0, np.int64), np.empty(0, atoms.dtype), np.empty(0, atoms.dtype))
    ones, known = np.ones(len(gram), gram.dtype), np.zeros(0, np.bool_)
    if weighted:
        seen, known = empty_observed(atoms.shape[1], atoms.dtype), np.zeros(len(gram), np.bool_)
        return OwnDictionary(
            PreparedDictionary(np.empty_like(atoms), tiles, np.empty_like(gram), eps),
            atoms,
            ones,
            known,
            mu,
            seen,
        )
    return OwnDictionary(dictionary, atoms, ones, known, mu, seen)


@internal_in_order
def observe(roots: np.ndarray, places: np.ndarray, seen: np.ndarray) -> int:
    """The places and roots of the entries that have a weight; returns their number."""
    count = np.int64(0)
    for i in range(len(roots)):
        places[count], seen[count] = i, roots[i]
        count += 1 if roots[i] > 0 else 0
    return count


@internal_in_order
def begin_signal(own: OwnDictionary, roots: np.ndarray) -> int:
    """Forget the dictionary of the signal before; returns how many entries of this one have a weight."""
    for i in range(len(own.known)):
        own.known[i] = False
    return observe(roots, own.seen.places, own.seen.roots)


@internal_in_order
def require_row(own: OwnDictionary, count: int, p: int) -> None:
    """Fill in atom p and its row of the Gram matrix, unless they are known."""
    if len(own.known) == 0 or own.known[p]:
        return
    own.known[p] = True
    _, tiles, gram, _ = own.prepared
    places, roots, scratch = own.seen
    source, target, inverse = own.atoms[p], own.prepared.atoms[p], own.inverse_norms[p]
    for i in range(len(target)):
        target[i] = 0
    for i in range(count):
        entry = roots[i] * source[places[i]] * inverse
        target[places[i]] = entry
        scratch[i] = roots[i] * entry
    row = gram[p]
    for i in range(len(row)):
        row[i] = 0
    add_rows(tiles, places, scratch, count, row)
    for i in range(len(row)):
        row[i] *= own.inverse_norms[i]
    gram[p, p] += own.mu


@internal_reordering
def add_rows(tiles: np.ndarray, places: np.ndarray, factors: np.ndarray, count: int, v: np.ndarray) -> None:
    """v += Σ_i c_i (row place_i of Dᵀ) over the first `count` places, eight rows at a time.

    Every loop names its rows by three indices: a view of each would be counted as used (`pursuit.py`). Four
    rows at a time, with `v` read and written twice as often, take 1.1 times as long at 50 of 192 places and
    1.2 times at 96.
    """
    width = tiles.shape[2]
    eights, fours = count - count % 8, count - count % 4
    for t in range(len(tiles)):
        first = t * width
        for l in range(0, count - 7, 8):
            p0, p1, p2, p3 = places[l], places[l + 1], places[l + 2], places[l + 3]
            p4, p5, p6, p7 = places[l + 4], places[l + 5], places[l + 6], places[l + 7]
            c0, c1, c2, c3 = factors[l], factors[l + 1], factors[l + 2], factors[l + 3]
            c4, c5, c6, c7 = factors[l + 4], factors[l + 5], factors[l + 6], factors[l + 7]
            for i in range(width):
                v[first + i] += (
                    c0 * tiles[t, p0, i] + c1 * tiles[t, p1, i] + c2 * tiles[t, p2, i] + c3 * tiles[t, p3, i]
                ) + (
                    c4 * tiles[t, p4, i] + c5 * tiles[t, p5, i] + c6 * tiles[t, p6, i] + c7 * tiles[t, p7, i]
                )
        for l in range(eights, fours, 4):
            p0, p1, p2, p3 = places[l], places[l + 1], places[l + 2], places[l + 3]
            c0, c1, c2, c3 = factors[l], factors[l + 1], factors[l + 2], factors[l + 3]
            for i in range(width):
                v[first + i] += (
                    c0 * tiles[t, p0, i] + c1 * tiles[t, p1, i] + c2 * tiles[t, p2, i] + c3 * tiles[t, p3, i]
                )
        for l in range(fours, count):
            p0, c0 = places[l], factors[l]
            for i in range(width):
                v[first + i] += c0 * tiles[t, p0, i]
