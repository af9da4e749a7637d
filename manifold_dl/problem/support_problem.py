"""The Pymanopt problem of codes on a fixed support: what `update_problem` returns.

`update_problem.py` makes one from what a user gives, `updates/workspace.py` one for every set I of atoms of
an update stage.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.engines.units import multiply
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.signals import AtomSubset
from manifold_dl.problem.support import Support
from manifold_dl.problem.whole import WholeDictionary


@dataclass(frozen=True, eq=False)
class WholeUpdate(WholeDictionary):
    """The same with the support of all atoms.

    Attributes
    ----------
    support : Support
        Ω of all atoms, with the codes that stay where they are known.
    """

    support: Support

    def codes_with(self, entries: np.ndarray | slice, codes: np.ndarray) -> scipy.sparse.csc_array:
        """The whole d×n codes with those of I replaced, in the units of the signals that were given."""
        values = np.zeros(len(self.support.indices), codes.dtype)
        if self.support.values is not None:
            values[:] = self.support.values
        values[entries] = codes
        values = self.signals.unscaled(values, self.support.indptr)
        return self.support.codes(multiply(values, self.exponent))


class SupportProblem(DictionaryProblem):
    """The update of a set I of atoms, and of the codes on them.

    Parameters
    ----------
    objective : Objective
        f_I.
    subset : AtomSubset
        I, and what it touches.
    whole : WholeUpdate
        The dictionary and the support that I is part of.
    feasible : FeasibleSet
        The manifold, with a test for its points.
    **options : dict
        `regularizers`, `precondition` and `relative` of `DictionaryProblem`.
    """

    def __init__(
        self,
        objective: Objective,
        subset: AtomSubset,
        whole: WholeUpdate,
        feasible: FeasibleSet,
        **options: Any,
    ) -> None:
        super().__init__(objective, subset.atoms, whole, feasible, **options)
        self.subset, self.update = subset, whole

    def begin_subset(self, objective: Objective, subset: AtomSubset, whole: WholeUpdate) -> None:
        """Become the problem of another set I on the same manifold, as `begin` says.

        Parameters
        ----------
        objective : Objective
            f_I.
        subset : AtomSubset
            I, and what it touches.
        whole : WholeUpdate
            The dictionary and the support that I is part of.
        """
        self.begin(objective, subset.atoms, whole)
        self.subset, self.update = subset, whole

    def codes(self, point: np.ndarray) -> scipy.sparse.csc_array:
        """The whole d×n codes at `point`: those of I are optimal for it, the others are as they were."""
        return self.update.codes_with(self.subset.entries, self.objective.codes(np.asarray(point)))

    @property
    def weights(self) -> np.ndarray | None:
        """The weights of the entries, m×n; None if they have none, or if every signal has one."""
        rows = self.update.signals.weights
        return None if rows is None else rows.T

    @property
    def support(self) -> scipy.sparse.csc_array:
        """Ω restricted to I, a sparse boolean |I|×n array: row i belongs to column i of a point."""
        n, blocks = self.update.support.n_signals, self.objective.engine.states(self.subset.data)
        indices = np.concatenate([block.indices for block in blocks])
        indptr = np.zeros(n + 1, dtype=np.int64)
        indptr[1:][self.subset.active] = np.concatenate([np.diff(block.indptr) for block in blocks])
        ones = np.ones(len(indices), dtype=bool)
        return scipy.sparse.csc_array((ones, indices, indptr.cumsum()), shape=(len(self.subset.atoms), n))
