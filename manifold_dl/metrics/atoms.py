"""Comparisons of atoms: coherence within a dictionary, and recovery of a known dictionary (Section VI-B)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from manifold_dl._validation import as_dictionary

ROWS = 256  # of cosines at a time


def coherence(dictionary: Any) -> float:
    """Return the largest |⟨d_i, d_j⟩|, i ≠ j, of the normalised atoms.

    Parameters
    ----------
    dictionary : array (m×d)
        An atom in every column, none of them zero.

    Returns
    -------
    float
        Between 0 and 1; 0.0 for a single atom.

    Examples
    --------
    >>> coherence(np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 4.0]]))
    0.8
    """
    D = _normalised(dictionary, "dictionary")
    largest = 0.0
    for first, cosines in cosine_rows(D):
        own = np.arange(len(cosines))
        cosines[own, first + own] = 0.0
        largest = max(largest, float(cosines.max()))
    return min(largest, 1.0)  # rounding may lead to slightly more than 1


def cosine_rows(unit: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """|⟨d_i, d_j⟩| of unit atoms, some rows at a time, so that no d×d matrix is needed.

    Parameters
    ----------
    unit : array (m×d)
        Atoms of norm 1.

    Yields
    ------
    first : int
    cosines : array (rows×d)
        Those of atoms first, first + 1, ... with all atoms.
    """
    for first in range(0, unit.shape[1], ROWS):
        yield first, np.abs(unit[:, first : first + ROWS].T @ unit)


class Match(NamedTuple):
    """The atom paired with each true atom: `dictionary[:, permutation] * signs` is close to the truth.

    Attributes
    ----------
    permutation : array of int
        The index of the paired atom, −1 if there is none.
    signs : array of float
        ±1, or 0 if there is no paired atom.
    cosines : array of float
        |⟨d_i, d*_j⟩| of the normalised pair.
    """

    permutation: np.ndarray
    signs: np.ndarray
    cosines: np.ndarray


def match(dictionary: Any, true_dictionary: Any) -> Match:
    """Pair the atoms of two dictionaries, one to one, so that the sum of |⟨d_i, d*_j⟩| is largest.

    Atoms are compared up to sign and norm. The dictionaries may differ in their number of atoms.

    Parameters
    ----------
    dictionary : array (m×d)
        An atom in every column.
    true_dictionary : array (m×d*)
        The atoms to be found.

    Returns
    -------
    Match
        Arrays of length d*: `permutation`, the atom paired with each true atom; `signs`, ±1; and `cosines`,
        |⟨d_i, d*_j⟩| of the normalised pair. A true atom that is not paired, because d < d*, has
        permutation −1, sign 0 and cosine 0.

    Examples
    --------
    >>> truth = np.eye(3)
    >>> permutation, signs, cosines = match(-truth[:, [2, 0]], truth)
    >>> permutation, signs
    (array([ 1, -1,  0]), array([-1.,  0., -1.]))
    """
    from scipy.optimize import linear_sum_assignment  # imported here, because it takes 0.1 s

    D, T = _normalised(dictionary, "dictionary"), _normalised(true_dictionary, "true_dictionary")
    if len(D) != len(T):
        raise ValueError(
            f"dictionary has atoms of length m={len(D)}, but true_dictionary of length m={len(T)}."
        )
    products = T.T @ D
    true_atoms, atoms = linear_sum_assignment(np.abs(products), maximize=True)

    n_true = T.shape[1]
    permutation, signs, cosines = np.full(n_true, -1), np.zeros(n_true), np.zeros(n_true)
    permutation[true_atoms] = atoms
    signs[true_atoms] = np.where(products[true_atoms, atoms] < 0, -1.0, 1.0)
    cosines[true_atoms] = np.minimum(np.abs(products[true_atoms, atoms]), 1.0)
    return Match(permutation, signs, cosines)


def recovery(dictionary: Any, true_dictionary: Any, threshold: float = 0.99) -> float:
    """Return the fraction of true atoms that were found, up to sign, each by a different atom.

    Parameters
    ----------
    dictionary : array (m×d)
        An atom in every column.
    true_dictionary : array (m×d*)
        The atoms to be found.
    threshold : float
        A true atom counts as found when |⟨d_i, d*_j⟩| > threshold for the atom that `match` pairs with it.
        0.99 is an angle of 8 degrees, the usual value since K-SVD.

    Returns
    -------
    float
        Between 0 and 1: the number of atoms found, divided by d*.

    Examples
    --------
    >>> truth = np.eye(4)
    >>> recovery(-truth[:, [3, 1, 0]], truth)
    0.75
    """
    if not 0 <= threshold < 1:
        raise ValueError(f"threshold={threshold} is not in [0, 1); no cosine exceeds 1.")
    return float(np.mean(match(dictionary, true_dictionary).cosines > threshold))


def _normalised(dictionary: Any, name: str) -> np.ndarray:
    """Return unit-norm atoms in double precision."""
    D = as_dictionary(dictionary, name=name).astype(float)
    D /= np.abs(D).max(axis=0)  # first, so that the squares do not overflow or underflow
    normalised: np.ndarray = D / np.linalg.norm(D, axis=0)
    return normalised
