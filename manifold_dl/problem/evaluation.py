"""What is known at one dictionary, and the cache of the last ones.

An optimizer evaluates the cost, then the gradient, then twenty Hessian products at one dictionary, and
Pymanopt caches nothing. One pass over the signals serves all of them, and an `Evaluation` holds what it
found.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manifold_dl.engines import BlockMap


@dataclass(frozen=True)
class EvaluationPolicy:
    """What is kept and what is trusted, chosen once for the optimizer that will run.

    Parameters
    ----------
    trust_line_search : bool
        Take φ(t) and its codes at the end of a line search for those of the dictionary there. The end of a
        search then costs no pass over the signals before the gradient is needed, which at the last one it is
        not. Otherwise every value comes from the residual, which has more correct digits.
    keep_factors : bool
        Keep the factorisations of the supports, and two dictionaries instead of one, for Hessian products: a
        trust region whose step is refused comes back to the dictionary before. A line search releases them,
        if there has been no Hessian product until then.
    """

    trust_line_search: bool = False
    keep_factors: bool = True


class Evaluation(NamedTuple):
    """What is known at one dictionary. The end of a trusted line search has value and codes only."""

    key: bytes  # the numbers of the dictionary, or a digest: callers change arrays in place
    atoms: np.ndarray  # k×m, an atom in every row
    value: float  # without the constant of the objective
    codes: BlockMap  # its states are the codes, block by block
    gradient: np.ndarray | None = None  # k×m
    energies: np.ndarray | None = None  # ‖X_i‖² of every atom
    prepared: Any = None  # what `InnerProblem.prepare` computed of the atoms: DᵀD, where codes have a ridge
    fit: BlockMap | None = None  # its states hold codes and factors, block by block
    has_factors: bool = False
    n_rank_deficient: int = 0  # signals with a support of atoms that are dependent, or nearly so


class EvaluationCache:
    """The last evaluations, newest first, found by the numbers of their dictionary."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._evaluations: list[Evaluation] = []
        self._differentiated: set[bytes] = set()

    def find(self, key: bytes) -> Evaluation | None:
        """The evaluation of a dictionary, which becomes the newest; None if there is none."""
        evaluations = self._evaluations
        for place, evaluation in enumerate(evaluations):
            if evaluation.key == key:
                if place:
                    evaluations.insert(0, evaluations.pop(place))
                return evaluation
        return None

    def release_before(self, key: bytes) -> None:
        """Release memory before the evaluation of a new dictionary, and what is known of it so far."""
        kept = [one for one in self._evaluations if one.key != key][: self.size - 1]
        if len(self._differentiated) > self.size:
            self._differentiated &= {key, *(one.key for one in kept)}
        self._evaluations = kept

    def add(self, evaluation: Evaluation) -> Evaluation:
        """Keep an evaluation as the newest; the oldest ones beyond the size are dropped."""
        self._evaluations.insert(0, evaluation)
        del self._evaluations[self.size :]
        return evaluation

    def is_first_gradient(self, key: bytes) -> bool:
        """Whether the gradient at this dictionary is evaluated for the first time."""
        is_first = key not in self._differentiated
        self._differentiated.add(key)
        return is_first
