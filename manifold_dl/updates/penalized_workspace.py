"""The working copy of one update stage where codes follow by a penalty: D alone, the codes belong to it.

The counterpart of `workspace.py` for ``SimCO(codes=Lasso(...))``: the same calls, but supports are not given.
While the atoms of a set I move, the codes of all atoms follow, so that every set lowers the same function of
the whole dictionary.
"""

from functools import cached_property
from typing import Any

import numpy as np

from manifold_dl._validation import as_dictionary
from manifold_dl.engines import Engine
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals
from manifold_dl.engines.units import norms_or_one, times_square
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.penalized_problem import (
    PenalizedProblem,
    make_penalized_problem,
    open_signals,
    starting_with,
)
from manifold_dl.problem.solvers import solver_of
from manifold_dl.problem.support import Support, as_support
from manifold_dl.problem.whole import WholeDictionary
from manifold_dl.updates.current_codes import as_blocked_codes
from manifold_dl.updates.workspace import Start, UpdateSettings, accepted_point, start_of


class PenalizedWorkspace:
    """D of one update stage, and the problems of sets of atoms in it.

    Parameters
    ----------
    signals : m×n array or BlockedSignals
        Y.
    dictionary : m×d array
        D, which is copied.
    codes : sparse or dense d×n array or BlockedCodes
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
    is_blocked : bool
        Whether an engine has the signals.
    coder : FollowingCoder or PenalizedCoder
        How the codes of the next problem follow.
    last : PenalizedProblem or None
        The last problem of the stage, which computes the codes.
    """

    def __init__(
        self, signals: Any, dictionary: Any, codes: Any, coder: Any, engine: Engine, weights: Any = None
    ) -> None:
        self.is_blocked, data = isinstance(signals, BlockedSignals), open_signals(signals, weights, engine)
        m, n = data.shape
        D = as_dictionary(dictionary, n_rows=m)
        self._before: BlockedCodes | Support
        if isinstance(signals, BlockedSignals):
            self._before = as_blocked_codes(codes, signals, D.shape[1])
        else:
            self._before = as_support(codes, n, D.shape[1])
        self._data = starting_with(data, self._before)
        self._signals = self._data.known
        self.dictionary = np.array(D, dtype=self._data.dtype, order="F")  # kernels read atoms in rows: D.T
        self.coder = coder
        self.last: PenalizedProblem | None = None

    @cached_property
    def usage(self) -> np.ndarray:
        """How many signals used each atom before the update."""
        if isinstance(self._before, BlockedCodes):
            return self._before.usage().stored
        return np.bincount(self._before.indices, minlength=self._before.n_atoms)

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
        ended: Any = None,
    ) -> PenalizedProblem:
        """The update of I as a Pymanopt problem, with I on its manifold.

        `ended` is not used: to solve for the codes takes longer than to make a problem.
        """
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

    def codes(self) -> Any:
        """The codes of the dictionary as it is now, in the units of the signals that were given."""
        assert self.last is not None  # a sweep has at least one set
        point = self.dictionary[:, self.last.atoms]
        return self.last.blocked_codes(point) if self.is_blocked else self.last.codes(point)
