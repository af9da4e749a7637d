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
from manifold_dl.engines.sources import as_signals
from manifold_dl.engines.units import as_units, norms_or_one
from manifold_dl.manifolds import feasible_set
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.penalized import open_starts
from manifold_dl.problem.penalized_problem import (
    PenalizedProblem,
    WholeDictionary,
    make_penalized_problem,
    row_blocks,
)
from manifold_dl.problem.solvers import SignalUnit, solver_of
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

    Attributes
    ----------
    dictionary : m×d array
        D as it is now.
    coder : FollowingCoder or PenalizedCoder
        How the codes of the next problem follow.
    last : PenalizedProblem or None
        The last problem of the stage: it knows the codes.
    """

    def __init__(self, signals: Any, dictionary: Any, codes: Any, coder: Any, engine: Engine) -> None:
        rows, self._scale, self._exponent = as_signals(signals, engine)
        self._n, m = rows.shape
        D = as_dictionary(dictionary, n_rows=m)
        self.dictionary = np.array(D, dtype=rows.dtype, order="F")  # kernels read atoms in rows: D.T
        self._support = as_support(codes, self._n, D.shape[1])
        if self._support.values is not None:
            values = as_units(self._support.values.astype(rows.dtype, copy=False), self._exponent)
            self._support = self._support._replace(values=values)
        self.coder, self._engine = coder, engine
        self._data = engine.open(row_blocks(rows))
        self._starts = open_starts(engine, self._n, self._support)
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
        self, atoms: np.ndarray, mu: float, settings: UpdateSettings, searches: bool = False
    ) -> PenalizedProblem:
        """The update of I as a Pymanopt problem, with I on its manifold."""
        m, d = self.dictionary.shape
        feasible = feasible_set(settings.manifold, m, len(atoms))
        self.dictionary[:, atoms] = feasible.nearest_point(self.dictionary[:, atoms])
        all_move = np.array_equal(atoms, np.arange(d))
        D = None if all_move else self.dictionary
        unit = SignalUnit(float(np.sqrt(self._scale / self._n)), self._exponent)
        return make_penalized_problem(
            self._data,
            self._starts,
            solver_of(self.coder, mu, unit),
            WholeDictionary(m, d, self._n, self.dictionary.dtype, D, self._scale, self._exponent),
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

    def codes(self) -> scipy.sparse.csc_array:
        """The codes of the dictionary as it is now, in the units of the signals that were given."""
        assert self.last is not None  # a sweep has at least one set
        return self.last.codes(self.dictionary[:, self.last.atoms])
