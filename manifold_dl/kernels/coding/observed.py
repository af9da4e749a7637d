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
def observe(roots: np.ndarray, seen: Observed) -> int:
    """The entries that have a weight, without the others; returns their number."""
    count = np.int64(0)
    for i in range(len(roots)):
        seen.places[count], seen.roots[count] = i, roots[i]
        count += 1 if roots[i] > 0 else 0
    return count


@internal_in_order
def begin_signal(own: OwnDictionary, roots: np.ndarray) -> int:
    """Forget the dictionary of the signal before; returns how many entries of this one have a weight."""
    for i in range(len(own.known)):
        own.known[i] = False
    return observe(roots, own.seen)


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
        scratch[i] = roots[i] * source[places[i]] * inverse
        target[places[i]] = scratch[i]
    multiply(tiles, own.seen, count, scratch, gram[p])
    for i in range(len(gram)):
        gram[p, i] *= own.inverse_norms[i]
    gram[p, p] += own.mu


@internal_reordering
def multiply(tiles: np.ndarray, seen: Observed, count: int, q: np.ndarray, v: np.ndarray) -> None:
    """v = Dᵀ(s∘q), over the observed entries, four rows of Dᵀ at a time."""
    width, places, roots = tiles.shape[2], seen.places, seen.roots
    for t in range(len(tiles)):
        tile, part = tiles[t], v[t * width : (t + 1) * width]
        for i in range(width):
            part[i] = 0
        for l in range(0, count - 3, 4):
            r0, r1, r2, r3 = tile[places[l]], tile[places[l + 1]], tile[places[l + 2]], tile[places[l + 3]]
            c0, c1 = roots[l] * q[l], roots[l + 1] * q[l + 1]
            c2, c3 = roots[l + 2] * q[l + 2], roots[l + 3] * q[l + 3]
            for i in range(width):
                part[i] += c0 * r0[i] + c1 * r1[i] + c2 * r2[i] + c3 * r3[i]
        for l in range(count - count % 4, count):
            r0, c0 = tile[places[l]], roots[l] * q[l]
            for i in range(width):
                part[i] += c0 * r0[i]
