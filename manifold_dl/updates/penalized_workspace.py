"""The working copy of one update stage where codes follow by a penalty: D alone, the codes belong to it.

The counterpart of `workspace.py` for ``SimCO(codes=Lasso(...))``: the same calls, but supports are not given.
While the atoms of a set I move, the codes of all atoms follow, so that every set lowers the same function of
the whole dictionary.
"""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_dictionary
from manifold_dl.engines import Engine
from manifold_dl.engines.units import as_units, norms_or_one, times_square
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.penalized_problem import (
    PenalizedProblem,
    WholeDictionary,
    as_signals_in_memory,
    make_penalized_problem,
    open_signals,
)
from manifold_dl.problem.solvers import solver_of
from manifold_dl.problem.support import as_support
from manifold_dl.updates.workspace import Start, UpdateSettings, accepted_point, start_of


class PenalizedWorkspace:
    """D of one update stage, and the problems of sets of atoms in it.

    Parameters
    ----------
    signals : m×n array
        Y.
    dictionary : m×d array
        D, which is copied.
    codes : sparse or dense d×n array
        The last codes, from which the first solution begins.
    coder : FollowingCoder or PenalizedCoder
        How the codes follow.
    engine : Engine
        What runs the functions of a block.
    weights : array of length n or m×n array, optional
        Of the signals or of their entries.

    Attributes
    ----------
    dictionary : m×d array
        D as it is now.
    coder : FollowingCoder or PenalizedCoder
        How the codes of the next problem follow.
    last : PenalizedProblem or None
        The last problem of the stage: it knows the codes.
    """

    def __init__(
        self, signals: Any, dictionary: Any, codes: Any, coder: Any, engine: Engine, weights: Any = None
    ) -> None:
        self._signals = known = as_signals_in_memory(signals, weights, engine)
        rows = known.rows
        n, m = rows.shape
        D = as_dictionary(dictionary, n_rows=m)
        self.dictionary = np.array(D, dtype=rows.dtype, order="F")  # kernels read atoms in rows: D.T
        self._support = as_support(codes, n, D.shape[1])
        if self._support.values is not None:
            values = as_units(self._support.values.astype(rows.dtype, copy=False), known.exponent)
            self._support = self._support._replace(values=known.scaled(values, self._support.indptr))
        self.coder, self._engine = coder, engine
        self._data = open_signals(engine, known, self._support)
        self.last: PenalizedProblem | None = None

    @cached_property
    def usage(self) -> np.ndarray:
        """How many signals used each atom before the update."""
        return np.bincount(self._support.indices, minlength=self._support.n_atoms)

    def normalize(self) -> None:
        """Unit atoms; the codes will follow."""
        norms = norms_or_one(self.dictionary)
        if (norms != 1).any():
            self.dictionary /= norms

    def problem(
        self,
        atoms: np.ndarray,
        feasible: FeasibleSet,
        mu: float,
        settings: UpdateSettings,
        searches: bool = False,
    ) -> PenalizedProblem:
        """The update of I as a Pymanopt problem, with I on its manifold."""
        d = self.dictionary.shape[1]
        self.dictionary[:, atoms] = feasible.nearest_point(self.dictionary[:, atoms])
        all_move = np.array_equal(atoms, np.arange(d))
        D = None if all_move else self.dictionary
        return make_penalized_problem(
            self._data,
            solver_of(self.coder, mu, self._signals),
            WholeDictionary(d, D, self._signals),
            atoms,
            feasible,
            engine=self._engine,
            policy=EvaluationPolicy(trust_line_search=searches, keep_factors=not searches),
            regularizers=settings.regularizers,
            precondition=settings.precondition,
            relative=True,
        )

    def start(self, atoms: np.ndarray, problem: PenalizedProblem, regularizers: Any) -> Start:
        """Where the atoms I are, and the cost there."""
        return start_of(problem, self.dictionary, atoms, regularizers)

    def accept(self, problem: PenalizedProblem, point: np.ndarray, start: Start) -> None:
        """Put the atoms I in place, if the cost does not rise."""
        self.dictionary[:, problem.atoms] = accepted_point(problem, point, start)
        self.last = problem

    def objective(self) -> float:
        """Σ_j min_x ½‖y_j − Dx‖² + p(x) and the regularizers, in the units of the signals that were given."""
        assert self.last is not None
        value = self.last.unit * float(self.last.cost(self.dictionary[:, self.last.atoms]))
        return times_square(value, self._signals.exponent)

    def codes(self) -> scipy.sparse.csc_array:
        """The codes of the dictionary as it is now, in the units of the signals that were given."""
        assert self.last is not None  # a sweep has at least one set
        return self.last.codes(self.dictionary[:, self.last.atoms])
