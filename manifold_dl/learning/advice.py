"""Warnings about what was learned: few signals, atoms that no signal uses, atoms that depend on each other.

Each is one sentence with its counts, given once. `learn_dictionary` calls `warn_of_weights` at its beginning
and `warn_of_result` at its end.
"""

from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._validation import warn_once
from manifold_dl.engines.blocked_weights import BlockedWeights
from manifold_dl.learning.result import Reason, Result


def warn_of_weights(weights: Any) -> None:
    """Warn of entries that no signal has: whatever stands there in an atom was not learned.

    Parameters
    ----------
    weights : array of length n, m×n array, BlockedWeights or None
        Not examined where they are not in memory.
    """
    if weights is None or weights.ndim == 1 or isinstance(weights, BlockedWeights):
        return
    unseen = np.flatnonzero(~np.asarray(weights).any(axis=1))
    if len(unseen):
        warn_once(
            f"{len(unseen)} of {weights.shape[0]} entries, the first of them entry {unseen[0]}, have no "
            "weight in any signal: what atoms hold there comes from the start alone. Leave them out.",
            "unseen entries",
        )


def warn_of_result(result: Result) -> None:
    """Warn of what a user may not expect of a result.

    Parameters
    ----------
    result : Result
    """
    if result.reason is Reason.INTERRUPTED:  # it is not what was to be learned
        return
    d, n = result.codes.shape
    if n < d:
        warn_once(
            f"there are {n} signals for {d} atoms: at least {d - n} atoms are determined by no signal of "
            "their own. Use fewer atoms or more signals.",
            "few signals",
        )
    unused = 0  # not counted where the codes are not in memory
    if scipy.sparse.issparse(result.codes):
        unused = d - len(np.unique(result.codes.indices[result.codes.data != 0]))
    if unused:
        warn_once(
            f"{unused} of {d} atoms are used by none of the {n} signals in the end. Fewer atoms, a larger "
            "sparsity or another start would serve as well.",
            "unused atoms",
        )
    dependent = np.nan_to_num(result.history.rank_deficient)
    if dependent.any():
        warn_once(
            f"in {np.count_nonzero(dependent)} of {len(dependent)} iterations, up to {int(dependent.max())} "
            f"of {n} signals had atoms that depend on each other; of their codes, those of the smallest norm "
            "were taken. A ridge (mu > 0) or a regularizer such as Coherence keeps atoms apart.",
            "dependent atoms",
        )
