"""How good is a dictionary: recovered atoms, coherence, conditioning, and what kind of point it is.

`recovery` compares with a known dictionary (the synthetic experiments of the paper's Section VI-B),
`coherence` looks at the dictionary alone, and `condition_number` is the κ(D) of Section VI-A, which
looks at it through a support Ω. `is_singular` tells the two places where descent stops, as in Section V:
a stationary point, where the gradient vanishes, and a singular one, where it does not.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_dictionary, as_matrix, require_unmasked
from manifold_dl.problem.support import as_support


def condition_number(dictionary, support, distribution=False):
    r"""The condition number of a dictionary with respect to a support, Section VI-A of the paper.

    .. math:: κ(D) = \max_j \; λ_{\max}(D_{:,Ω(:,j)}) / λ_{\min}(D_{:,Ω(:,j)})

    where λ_max and λ_min are the largest and smallest singular values. It speaks about the geometry of
    the atoms only when they have unit norm: shrinking one column makes κ large as well.

    Parameters
    ----------
    dictionary : array (m×d)
    support : boolean mask (d×n), sparse (d×n), codes (d×n) or indices (n×S)
        See `condition_numbers`.
    distribution : bool
        Also return the condition numbers of all signals.

    Returns
    -------
    kappa : float
    per_signal : array of length n, with `distribution=True` only

    Examples
    --------
    >>> D = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> round(condition_number(D, [[0, 1], [1, 2]]), 12)
    3.0
    """
    per_signal = condition_numbers(dictionary, support)
    kappa = float(per_signal.max(initial=1.0))
    return (kappa, per_signal) if distribution else kappa


def condition_numbers(dictionary, support):
    """λ_max/λ_min of the atoms that each signal uses.

    Parameters
    ----------
    dictionary : array (m×d)
    support : array or sparse array
        The support Ω, as a boolean d×n mask; as a sparse d×n matrix, whose stored entries count even where
        they are zero; as dense floating-point codes (d×n), whose non-zeros count; or as an *integer* n×S
        array that lists the atoms of each signal, filled up with −1.

    Returns
    -------
    array of length n
        1.0 for a signal that uses no atom or one: there is nothing to be confused. inf where the atoms are
        linearly dependent, that is λ_min ≤ max(m, S)·ε·λ_max with ε the precision of the dictionary's
        dtype (the rule of `numpy.linalg.matrix_rank`), as they always are when there are more than m.

    Examples
    --------
    >>> D = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> condition_numbers(D, np.array([[0, 1], [1, -1], [0, 2]]))
    array([ 1.,  1., inf])
    """
    return _ratios(*_extreme_singular_values(dictionary, support))


def coherence(dictionary):
    """The largest |⟨d_i, d_j⟩|, i ≠ j, over the normalised atoms; 0.0 for a single atom.

    Examples
    --------
    >>> coherence(np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 4.0]]))
    0.8
    """
    D = _normalised(dictionary, "dictionary")
    gram = np.abs(D.T @ D)
    np.fill_diagonal(gram, 0.0)
    return min(float(gram.max()), 1.0)  # rounding may end just above 1


class Match(NamedTuple):
    """Who plays the part of each true atom: `dictionary[:, permutation] * signs` looks like the truth."""

    permutation: np.ndarray
    signs: np.ndarray
    cosines: np.ndarray


def match(dictionary, true_dictionary):
    """Pair the atoms of two dictionaries, one to one, so that the sum of |⟨d_i, d*_j⟩| is largest.

    Atoms are compared up to sign and norm. The dictionaries may differ in their number of atoms.

    Parameters
    ----------
    dictionary : array (m×d)
    true_dictionary : array (m×d*)

    Returns
    -------
    Match
        Arrays of length d*: `permutation`, the atom paired with each true atom; `signs`, ±1; and `cosines`,
        |⟨d_i, d*_j⟩| of the normalised pair. A true atom left without a partner, because d < d*, has
        permutation −1, sign 0 and cosine 0.

    Examples
    --------
    >>> truth = np.eye(3)
    >>> permutation, signs, cosines = match(-truth[:, [2, 0]], truth)
    >>> permutation, signs
    (array([ 1, -1,  0]), array([-1.,  0., -1.]))
    """
    from scipy.optimize import linear_sum_assignment  # here, for it takes a tenth of a second to import

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


def recovery(dictionary, true_dictionary, threshold=0.99):
    """The share of true atoms that were found, up to sign, each by an atom of its own.

    Parameters
    ----------
    dictionary : array (m×d)
    true_dictionary : array (m×d*)
    threshold : float
        A true atom counts as found when |⟨d_i, d*_j⟩| > threshold for the atom that `match` pairs with it.
        0.99 is an angle of 8 degrees, the custom since K-SVD.

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


class Verdict(Enum):
    """What `is_singular` finds; the value of a member says it in words."""

    STATIONARY = "stationary: the gradient vanishes."
    SINGULAR = "singular: some support is nearly dependent, and the gradient does not vanish."
    NEITHER = "neither: the gradient does not vanish, and every support is well conditioned."


@dataclass(frozen=True)
class Diagnosis:
    """The answer of `is_singular`: true when the point is singular, with the numbers behind it.

    Attributes
    ----------
    verdict : Verdict
    gradient_norm : float
        ‖grad f‖/‖Y‖²_F, which does not change when the signals are rescaled.
    smallest_singular_value : float
        The smallest λ_min over all supports: the distance to dependent atoms.
    condition_number : float
        κ(D).
    """

    verdict: Verdict
    gradient_norm: float
    smallest_singular_value: float
    condition_number: float

    def __bool__(self):
        return self.verdict is Verdict.SINGULAR

    def __str__(self):
        return (
            f"{self.verdict.value} Gradient norm {self.gradient_norm:.1e} relative to ‖Y‖², "
            f"smallest singular value {self.smallest_singular_value:.1e}, κ = {self.condition_number:.3g}."
        )


def is_singular(problem, dictionary, *, gradient_tolerance=1e-6, max_condition=20.0):
    """Tell a singular point from a stationary one, Section V of the paper.

    Near both the objective stops decreasing, so the history of its values cannot tell them apart. The
    gradient can: it vanishes at a stationary point and stays large at a singular one, where the atoms of
    some support become dependent and the objective is not smooth. A ridge μ > 0 leads out of there; descent
    with μ = 0 creeps on, and a second-order method escapes only now and then.

    Parameters
    ----------
    problem : pymanopt.Problem
        A dictionary-update problem: besides Pymanopt's own names it has `support` (sparse, |I|×n) and
        `scale` (‖Y‖²_F).
    dictionary : array (m×|I|)
        The point to judge.
    gradient_tolerance : float
        The gradient vanishes when ‖grad f‖ ≤ gradient_tolerance·‖Y‖²_F. In the setting of Section VI-A it
        stays around 1e-2 at singular points, and descent brings it below 1e-7 elsewhere.
    max_condition : float
        A dictionary is nearly singular when κ exceeds this. In the same setting κ stays below 10 at regular
        minima, and is above 25 and growing after 300 steps towards a singular point.

    Returns
    -------
    Diagnosis
        Truthy when singular. A point with a vanishing gradient is stationary whatever its κ.
    """
    missing = [
        name for name in ("riemannian_gradient", "manifold", "support", "scale") if not hasattr(problem, name)
    ]
    if missing:
        raise TypeError(
            f"problem is a {type(problem).__name__} without {', '.join(missing)}; "
            "is_singular needs a dictionary-update problem, as update_problem makes them."
        )
    largest, smallest = _extreme_singular_values(dictionary, problem.support)
    kappa = float(_ratios(largest, smallest).max(initial=1.0))

    gradient_norm = float(problem.manifold.norm(dictionary, problem.riemannian_gradient(dictionary)))
    if problem.scale > 0:  # all-zero signals have a zero gradient
        gradient_norm /= float(problem.scale)

    # A gradient that overflowed to NaN is not small.
    if gradient_norm <= gradient_tolerance:
        verdict = Verdict.STATIONARY
    elif kappa > max_condition:
        verdict = Verdict.SINGULAR
    else:
        verdict = Verdict.NEITHER
    return Diagnosis(verdict, gradient_norm, float(smallest.min(initial=1.0)), kappa)


def _extreme_singular_values(dictionary, support):
    """λ_max and λ_min of D[:, Ω(:,j)] for every j; both 1 for an empty support, λ_min = 0 below rounding."""
    D = as_matrix(dictionary, "dictionary")
    m, d = D.shape
    omega = _as_support(support, d)
    starts, counts = omega.indptr[:-1], np.diff(omega.indptr)
    rows = np.ascontiguousarray(D.T, dtype=float)
    epsilon = np.finfo(D.dtype).eps

    largest, smallest = np.ones(len(counts)), np.ones(len(counts))
    for size in np.unique(counts[counts > 0]).tolist():
        signals = np.flatnonzero(counts == size)
        # One batched SVD for all signals with `size` atoms, in pieces of 32 MB so that any n fits in memory.
        for piece in np.array_split(signals, 1 + len(signals) * size * m // 2**22):
            A = rows[omega.indices[starts[piece, None] + np.arange(size)]]
            values = np.linalg.svd(A, compute_uv=False)
            largest[piece] = values[:, 0]
            smallest[piece] = 0.0 if size > m else values[:, -1]
            smallest[piece[smallest[piece] <= max(m, size) * epsilon * largest[piece]]] = 0.0
    return largest, smallest


def _ratios(largest, smallest):
    return np.divide(largest, smallest, out=np.full_like(largest, np.inf), where=smallest > 0)


def _as_support(support, n_atoms):
    """Any form of Ω, checked; unlike elsewhere, no signals say how many there should be."""
    if not scipy.sparse.issparse(support):
        require_unmasked(support, "the support")
        support = np.asarray(support)
    lists_indices = isinstance(support, np.ndarray) and np.issubdtype(support.dtype, np.integer)
    n_signals = 0 if support.ndim != 2 else support.shape[0 if lists_indices else 1]
    return as_support(support, n_signals, n_atoms)


def _normalised(dictionary, name):
    """Unit-norm atoms in double precision."""
    D = as_dictionary(dictionary, name=name).astype(float)
    D /= np.abs(D).max(axis=0)  # first, so that the squares neither overflow nor vanish
    return D / np.linalg.norm(D, axis=0)
