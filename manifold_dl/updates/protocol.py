"""The protocol of an update rule, and of one run of it.

A rule is a value that any number of loops may share. What goes from one iteration to the next (the optimizer
with the step lengths of its line searcher, a schedule of μ bound to the number of iterations) belongs to the
object that ``rule.begin(max_iter)`` returns, and every loop makes one of its own.
"""

from collections.abc import Sequence
from numbers import Real
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from manifold_dl.components.errors import naming


class DictionaryUpdate(Protocol):
    """Anything that is called with signals, dictionary and codes and returns a better pair.

    The keywords are optional: a rule of the user is called with those that its signature names. `weights` is
    an array of n numbers or m×n numbers ≥ 0, or None; a rule without it is refused where there are weights,
    because it would learn from missing entries.

    What a rule may have besides is `FullDictionaryUpdate`.
    """

    def __call__(
        self,
        signals: np.ndarray,
        dictionary: np.ndarray,
        codes: scipy.sparse.csc_array,
        *,
        iteration: int | None = None,
        rng: Any = None,
        weights: np.ndarray | None = None,
    ) -> tuple[np.ndarray, scipy.sparse.csc_array]:
        """One update stage: (m×n, m×d, sparse d×n) → (dictionary, codes)."""


class UpdateRun(Protocol):
    """An update rule in one run of a loop: called like the rule, and the owner of what changes.

    What a run may have besides is `FullUpdateRun`.

    Attributes
    ----------
    memory : dict of str to float or None
        Everything that the next iteration reads besides its arguments. Checkpoints store it, and
        ``rule.begin(max_iter, memory)`` continues from there with the same bits.
    """

    memory: dict[str, float | None]

    def __call__(
        self,
        signals: np.ndarray,
        dictionary: np.ndarray,
        codes: scipy.sparse.csc_array,
        *,
        iteration: int | None = None,
        rng: Any = None,
        weights: np.ndarray | None = None,
    ) -> tuple[np.ndarray, scipy.sparse.csc_array]:
        """One update stage: (m×n, m×d, sparse d×n) → (dictionary, codes)."""


class FullUpdateRun(UpdateRun, Protocol):
    """A run of an update rule with all attributes that one may have. These are optional.

    Attributes
    ----------
    settled : bool
        Whether the rule has come to its last phase: before that the loop does not test for convergence. True
        by default.
    objective : float or None
        The function that the last call minimised, at the pair that it returned, in the units of the signals.
        None by default: it is ‖Y − DX‖² + μ‖X‖² and the regularizers.
    """

    settled: bool
    objective: float | None


class FullDictionaryUpdate(DictionaryUpdate, Protocol):
    """An update rule with all members that one may have. Those other than ``__call__`` are optional.

    Attributes
    ----------
    mu : float
        The ridge, if it is the same in all iterations. 0 by default.
    regularizers : sequence of Regularizer
        Penalties that belong to the objective of the rule. None by default.
    coder : SparseCoder or None
        The coder by which the codes of this rule follow the dictionary, if they do. A learning loop that is
        given no coder takes this one. None by default.
    keeps_supports : bool
        Whether codes stay on the supports that they had. True by default.
    """

    mu: float
    regularizers: Sequence[Any]
    coder: Any
    keeps_supports: bool

    def begin(self, max_iter: int | None, memory: dict[str, float | None] | None = None) -> UpdateRun:
        """The rule for one run of a loop. By default the rule itself.

        A rule that carries anything from one iteration to the next, or depends on the number of iterations,
        needs it; the rule itself never changes. `learn_dictionary` calls it once for each restart,
        `learning.minibatch.online_step` for each batch.

        Parameters
        ----------
        max_iter : int or None
            The number of iterations; None for a single update.
        memory : dict, optional
            What the `memory` of an interrupted run was, and empty at first.

        Returns
        -------
        UpdateRun
        """

    def mu_at(self, iteration: int) -> float:
        """The ridge of an iteration, for the history and the test of convergence. By default `mu`.

        Parameters
        ----------
        iteration : int

        Returns
        -------
        float
        """


def ridge_of(update: Any, iteration: int) -> float:
    """μ of a rule, or of its run, in an iteration: `mu_at`, or the number `mu`, or 0."""
    if hasattr(update, "mu_at"):
        return update.mu_at(iteration)
    mu = getattr(update, "mu", 0.0)
    return float(mu) if isinstance(mu, Real) else 0.0


def regularizers_of(update: Any) -> Sequence[Any]:
    """The regularizers of any update rule, or of its name; none by default."""
    return getattr(update, "regularizers", ())


def coder_of(update: Any) -> Any:
    """The coder by which the codes of an update rule follow the dictionary; None if there is none."""
    return getattr(update, "coder", None)


def keeps_supports(update: Any) -> bool:
    """Whether an update rule leaves codes on the supports that they had."""
    return bool(getattr(update, "keeps_supports", True))


def begin(
    update: DictionaryUpdate,
    max_iter: int | None = None,
    memory: dict[str, float | None] | None = None,
) -> Any:
    """The rule for one run: what its `begin` returns, or the rule itself where it has none.

    Parameters
    ----------
    update : DictionaryUpdate
        The rule.
    max_iter : int, optional
        The length of the loop; None for a single update.
    memory : dict, optional
        That of an interrupted run.

    Returns
    -------
    UpdateRun or DictionaryUpdate
        What the loop calls.

    Examples
    --------
    >>> from manifold_dl import KSVD, SimCO
    >>> begin(KSVD(), max_iter=50)
    KSVD(method='svd', mu=0.0, schedule=OneAtATime(order='natural'), threads=None)
    >>> run = begin(SimCO(), max_iter=50)
    >>> run.mu_at(29), run.mu_at(30)
    (0.2, 0.0)
    """
    if not hasattr(update, "begin"):
        return update
    with naming(update, "update rule"):
        return update.begin(max_iter, memory or {})
