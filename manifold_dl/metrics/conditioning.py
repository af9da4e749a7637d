"""The condition numbers of a dictionary with respect to a support, κ of the paper's Section VI-A."""

from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_matrix, as_weights, require_unmasked
from manifold_dl.engines import BlockMap
from manifold_dl.engines.blocked import BlockedCodes, CodesBlock
from manifold_dl.problem.support import as_support


@overload
def condition_number(
    dictionary: Any, support: Any, distribution: Literal[False] = False, *, weights: Any = None
) -> float: ...


@overload
def condition_number(
    dictionary: Any, support: Any, distribution: Literal[True], *, weights: Any = None
) -> tuple[float, np.ndarray]: ...


def condition_number(
    dictionary: Any, support: Any, distribution: bool = False, *, weights: Any = None
) -> float | tuple[float, np.ndarray]:
    r"""Return the condition number of a dictionary with respect to a support, Section VI-A of the paper.

    .. math:: κ(D) = \max_j \; λ_{\max}(D_{:,Ω(:,j)}) / λ_{\min}(D_{:,Ω(:,j)})

    where λ_max and λ_min are the largest and smallest singular values. It describes the geometry of the
    atoms only if they have unit norm: scaling one column down makes κ large as well.

    Parameters
    ----------
    dictionary : array (m×d)
        An atom in every column.
    support : boolean mask (d×n), sparse (d×n), codes (d×n) or indices (n×S)
        See `condition_numbers`.
    distribution : bool
        Also return the condition numbers of all signals.
    weights : array of length n or m×n array, optional
        See `condition_numbers`.

    Returns
    -------
    kappa : float
        The largest condition number of all signals.
    per_signal : array of length n
        With `distribution=True` only.

    Examples
    --------
    >>> D = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> round(condition_number(D, [[0, 1], [1, 2]]), 12)
    3.0
    """
    if isinstance(support, BlockedCodes):
        if distribution:
            raise ValueError("an engine has these codes: compute() them for the numbers of all signals.")
        D = as_matrix(dictionary, "dictionary")
        worst = BlockMap(condition_block, (support.blocks,), (D,))
        if weights is not None:
            worst = BlockMap(weighted_condition_block, (support.blocks, weights.blocks), (D,))
        return support.engine.total(worst)[0].kappa
    per_signal = condition_numbers(dictionary, support, weights=weights)
    kappa = float(per_signal.max(initial=1.0))
    return (kappa, per_signal) if distribution else kappa


@dataclass(frozen=True)
class LargestCondition:
    """The largest condition number of some signals; the larger one is the sum of two."""

    kappa: float

    def __add__(self, other: "LargestCondition") -> "LargestCondition":
        return LargestCondition(max(self.kappa, other.kappa))


def condition_block(codes: CodesBlock, dictionary: np.ndarray) -> tuple[LargestCondition, None]:
    """The largest condition number of one block of signals that an engine has."""
    return weighted_condition_block(codes, None, dictionary)


def weighted_condition_block(
    codes: CodesBlock, weights: np.ndarray | None, dictionary: np.ndarray
) -> tuple[LargestCondition, None]:
    """The same where entries have weights."""
    shape = (dictionary.shape[1], len(codes.indptr) - 1)
    support = scipy.sparse.csc_array((codes.values, codes.indices, codes.indptr), shape=shape)
    own = None if weights is None else weights.T
    return LargestCondition(float(condition_numbers(dictionary, support, weights=own).max(initial=1.0))), None


def condition_numbers(dictionary: Any, support: Any, *, weights: Any = None) -> np.ndarray:
    """Return λ_max/λ_min of the atoms that each signal uses.

    Parameters
    ----------
    dictionary : array (m×d)
        An atom in every column.
    support : array or sparse array
        The support Ω, as a boolean d×n mask; as a sparse d×n matrix, whose stored entries count even where
        they are zero; as dense floating-point codes (d×n), whose non-zeros count; or as an *integer* n×S
        array that lists the atoms of each signal, filled up with −1.
    weights : array of length n or m×n array, optional
        Of the signals or of their entries, as in `update_problem`: the condition numbers are those of
        √w∘D[:, Ω(:,j)]. A signal without any weight has 1.0, as if it used no atom.

    Returns
    -------
    array of length n
        1.0 for a signal that uses no atom or one. inf where the atoms are linearly dependent, that is
        λ_min ≤ max(m, S)·ε·λ_max with ε the precision of the dictionary's dtype (the rule of
        `numpy.linalg.matrix_rank`), as they always are if there are more than m.

    Examples
    --------
    >>> D = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> condition_numbers(D, np.array([[0, 1], [1, -1], [0, 2]]))
    array([ 1.,  1., inf])
    """
    return ratios(*extreme_singular_values(dictionary, support, weights))


def extreme_singular_values(
    dictionary: Any, support: Any, weights: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return λ_max and λ_min of D[:, Ω(:,j)] for every signal j.

    Parameters
    ----------
    dictionary : array (m×d)
        An atom in every column.
    support : array or sparse array
        As in `condition_numbers`.
    weights : array, optional
        As in `condition_numbers`.

    Returns
    -------
    largest, smallest : arrays of length n
        Both 1 for an empty support; λ_min is 0 if it is below rounding.
    """
    D = as_matrix(dictionary, "dictionary")
    m, d = D.shape
    omega = _as_support(support, d)
    starts, counts = omega.indptr[:-1], np.diff(omega.indptr)
    rows = np.ascontiguousarray(D.T, dtype=float)
    epsilon = np.finfo(D.dtype).eps
    w = as_weights(weights, m, len(counts), float)
    roots = None if w is None else np.sqrt(np.broadcast_to(w, (m, len(counts)))).T
    if roots is not None:
        counts = np.where(roots.any(axis=1), counts, 0)  # a signal without weight uses no atom

    largest, smallest = np.ones(len(counts)), np.ones(len(counts))
    for size in np.unique(counts[counts > 0]).tolist():
        signals = np.flatnonzero(counts == size)
        # One batched SVD for all signals with `size` atoms, in pieces of 32 MB so that any n fits in memory.
        for piece in np.array_split(signals, 1 + len(signals) * size * m // 2**22):
            A = rows[omega.indices[starts[piece, None] + np.arange(size)]]
            if roots is not None:
                A = A * roots[piece, None, :]
            values = np.linalg.svd(A, compute_uv=False)
            largest[piece] = values[:, 0]
            smallest[piece] = 0.0 if size > m else values[:, -1]
            smallest[piece[smallest[piece] <= max(m, size) * epsilon * largest[piece]]] = 0.0
    return largest, smallest


def ratios(largest: np.ndarray, smallest: np.ndarray) -> np.ndarray:
    """Return λ_max/λ_min, inf where λ_min is zero."""
    return np.divide(largest, smallest, out=np.full_like(largest, np.inf), where=smallest > 0)


def _as_support(support: Any, n_atoms: int) -> Any:
    """Return any form of Ω as a sparse array, checked; the number of signals follows from it."""
    if not scipy.sparse.issparse(support):
        require_unmasked(support, "the support")
        support = np.asarray(support)
    lists_indices = isinstance(support, np.ndarray) and np.issubdtype(support.dtype, np.integer)
    n_signals = 0 if support.ndim != 2 else support.shape[0 if lists_indices else 1]
    return as_support(support, n_signals, n_atoms)
