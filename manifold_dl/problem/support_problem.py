"""The Pymanopt problem of codes on a fixed support: what `update_problem` returns.

`update_problem.py` makes one from what a user gives, `updates/workspace.py` one for every set I of atoms of
an update stage.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.engines.units import multiply
from manifold_dl.engines.weights import WeightedSignals
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.signals import AtomSubset
from manifold_dl.problem.support import Support


@dataclass(frozen=True, eq=False)
class WholeUpdate:
    """The whole dictionary, support and signals that a set I of atoms is part of.

    Attributes
    ----------
    support : Support
        Ω of all atoms, with the codes that stay where they are known.
    dictionary : m×d array or None
        None only if I has all atoms.
    signals : WeightedSignals
        Y, in units of 2^exponent, with its energy and its weights.
    """

    support: Support
    dictionary: np.ndarray | None
    signals: WeightedSignals

    @property
    def n_atoms(self) -> int:
        """d."""
        return self.support.n_atoms

    @property
    def scale(self) -> float:
        """‖Y‖², with weights Σ w y², in units of 4^exponent."""
        return self.signals.energy

    @property
    def exponent(self) -> int:
        """The signals were divided by 2^exponent."""
        return self.signals.exponent

    @property
    def mean_energy(self) -> float:
        """‖Y‖²/n, the mean energy of a signal."""
        return self.signals.energy / self.signals.total_weight

    def dictionary_with(self, atoms: np.ndarray, point: np.ndarray) -> np.ndarray:
        """The whole m×d dictionary with the atoms I taken from `point`."""
        if self.dictionary is None:
            whole = np.empty_like(point)
        else:
            whole = self.dictionary.astype(np.result_type(self.dictionary, point))
        whole[:, atoms] = point
        return whole

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
