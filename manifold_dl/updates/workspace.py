"""The working copy of one update stage: D and the codes, while one set I of atoms after the other moves.

`simco.py` takes every set I through it: build the problem of I, run an optimizer, accept the result. Only
what I touches is ever recomputed.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_dictionary
from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.units import norms_or_one
from manifold_dl.engines.weights import as_weighted_signals
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.counts import new_counts
from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.fixed import code_products_block
from manifold_dl.problem.pairs import share_products
from manifold_dl.problem.regularization import require_finite_penalties
from manifold_dl.problem.support_problem import SupportProblem, WholeUpdate
from manifold_dl.problem.update_problem import inner_problem, make_objective
from manifold_dl.updates.current_codes import ArrayCodes, CurrentCodes, EngineCodes, as_blocked_codes


class UpdateSettings(Protocol):
    """What a problem needs of an update rule."""

    @property
    def codes(self) -> Any: ...
    @property
    def regularizers(self) -> Any: ...
    @property
    def precondition(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Start:
    """Where an optimizer begins, and the cost there."""

    point: np.ndarray
    cost: float


def start_of(
    problem: DictionaryProblem, dictionary: np.ndarray, atoms: np.ndarray, regularizers: Any
) -> Start:
    """Where the atoms I are, and the cost there: every optimizer begins with it, and then it is known."""
    point = dictionary[:, atoms]  # a copy: an optimizer may change its start in place
    cost = problem.cost(point)
    if not math.isfinite(cost):
        require_finite_penalties(regularizers, dictionary)
    return Start(point, cost)


def accepted_point(problem: DictionaryProblem, point: np.ndarray, start: Start) -> np.ndarray:
    """The point that an optimizer returned, or the start if the cost there is higher; it is counted."""
    # Within the rounding of the sums a rise means nothing, and the optimizer may be right.
    rounding = 4 * sys.float_info.epsilon * abs(start.cost)
    after = problem.cost(point) if np.isfinite(point).all() else np.nan
    is_taken = after <= start.cost + rounding
    new_counts(sets=1, improved=int(after < start.cost), refused=int(not is_taken))
    return point if is_taken else start.point


class UpdateWorkspace:
    """D and the codes of one update stage, and the problems of sets of atoms in it.

    Parameters
    ----------
    signals : m×n array or BlockedSignals
        Y.
    dictionary : m×d array
        D, which is copied.
    codes : sparse or dense d×n array or BlockedCodes
        X, which is copied.
    engine : Engine
        What runs the functions of a block.
    weights : array of length n, or m×n array, optional
        Of the signals or of their entries, as in `update_problem`.

    Attributes
    ----------
    dictionary : m×d array
        D as it is now.
    current : CurrentCodes
        The codes as they are now, in the units of `rows`.
    signals : WeightedSignals
        The signals in units in which no square overflows, with their weights.
    rows : n×m array or BlockMap
        The signals, in these units.
    is_blocked : bool
        Whether an engine has the signals.
    """

    def __init__(
        self, signals: Any, dictionary: Any, codes: Any, engine: Engine, weights: Any = None
    ) -> None:
        self.is_blocked = isinstance(signals, BlockedSignals)
        self.signals = as_weighted_signals(signals, weights, engine)
        self.rows = self.signals.rows
        m = signals.shape[0] if self.is_blocked else self.rows.shape[1]
        D = as_dictionary(dictionary, n_rows=m)
        self.current: CurrentCodes
        if self.is_blocked:
            dtype, engine, codes = signals.dtype, signals.engine, as_blocked_codes(codes, signals, D.shape[1])
            self.current = EngineCodes(codes, self.signals, dtype)
        else:
            dtype = self.rows.dtype
            self.current = ArrayCodes(codes, self.signals, D.shape[1], engine)
        self.dictionary = np.array(D, dtype=dtype, order="F")  # kernels read atoms in rows: D.T
        self.engine, self._signals = engine, self.current.signals(m)

    def codes(self) -> Any:
        """The codes, in the units of the signals that were given."""
        return self.current.result()

    @property
    def usage(self) -> np.ndarray:
        """How many signals use each atom."""
        return self.current.usage

    def require_determined(self, mu: float) -> None:
        """Refuse supports on which f does not depend on D, for rules whose codes follow the dictionary."""
        self.current.require_determined(len(self.dictionary), mu)

    def normalize(self) -> None:
        """Unit atoms; the codes take over the norms, so that D X is unchanged."""
        norms = norms_or_one(self.dictionary)
        if (norms != 1).any():
            self.dictionary /= norms
            self.current.scale(norms)

    def problem(
        self,
        atoms: np.ndarray,
        feasible: FeasibleSet,
        mu: float,
        settings: UpdateSettings,
        searches: bool = False,
        ended: dict[FeasibleSet, SupportProblem] | None = None,
    ) -> SupportProblem | None:
        """The update of I as a Pymanopt problem, with I on its manifold; None if no signal uses I.

        `searches` says that the optimizer moves along lines: it needs no factors, and its searches are
        trusted. `ended` are problems of these settings that have ended, by manifold: one of them becomes
        this problem, or this one is added.
        """
        if self.current.is_empty or (settings.regularizers and not self.usage[atoms].any()):
            return None  # what an engine has is counted only if a regularizer would move unused atoms
        self._bring_onto(feasible, atoms)
        subset = self._signals.subset(atoms, self.dictionary, self.current.opened())
        if subset.n_entries == 0:
            return None
        policy = EvaluationPolicy(trust_line_search=searches, keep_factors=not searches)
        objective = make_objective(subset, inner_problem(subset, settings.codes, mu), policy)
        whole = WholeUpdate(self.dictionary.shape[1], self.dictionary, self.signals, self.current.support)
        problem = None if ended is None else ended.get(feasible)
        if problem is not None:
            problem.begin_subset(objective, subset, whole)
            return problem
        options = {"regularizers": settings.regularizers, "precondition": settings.precondition}
        problem = SupportProblem(objective, subset, whole, feasible, relative=True, **options)
        if ended is not None:
            ended[feasible] = problem
        return problem

    def start(self, atoms: np.ndarray, problem: SupportProblem, regularizers: Any) -> Start:
        """Where the atoms I are, and the cost there."""
        return start_of(problem, self.dictionary, atoms, regularizers)

    def accept(self, problem: SupportProblem, point: np.ndarray, start: Start) -> None:
        """Put the atoms I and their codes in place; the atoms only if the cost does not rise."""
        point = accepted_point(problem, point, start)
        self.current.put(problem.subset, problem.objective.evaluate(point).codes)
        self.dictionary[:, problem.subset.atoms] = point
        problem.release()

    def shares_products(self) -> bool:
        """Whether the codes touch so many pairs of atoms that forming X Xᵀ costs less."""
        known = self._signals
        return share_products(self.dictionary.shape[1], known.blocks, self.engine, known.usage)

    def code_energies(self) -> np.ndarray:
        """‖X_i‖² of every atom, in double precision."""
        return self._code_sums(code_energies_block, self.dictionary.shape[1])

    def code_residuals(self, entries: slice = slice(None)) -> np.ndarray:
        """X (Y − DX)ᵀ (d×m) in double precision, or its columns that belong to some entries of atoms."""
        rows = np.ascontiguousarray(self.dictionary.T[:, entries])
        return self._code_sums(code_residuals_block, rows, entries)

    def normal_equations(self) -> tuple[np.ndarray, np.ndarray]:
        """X Xᵀ (d×d) and X (Y − DX)ᵀ (d×m) in double precision, in one round over the signals."""
        parents, D = (self._signals.blocks, self.current.opened()), self.dictionary
        products = BlockMap(code_products_block, parents, (D.shape[1],))
        gram, right = self.engine.total(products, BlockMap(code_residuals_block, parents, (D.T, slice(None))))
        return gram, right

    def times_code_products(self, rows: np.ndarray) -> np.ndarray:
        """X Xᵀ V for V with a row for every atom, in its dtype, without forming X Xᵀ."""
        return self._code_sums(times_code_products_block, rows)

    def _code_sums(self, function: Any, *common: Any) -> Any:
        parents = (self._signals.blocks, self.current.opened())
        return self.engine.total(BlockMap(function, parents, common))[0]

    def _bring_onto(self, feasible: FeasibleSet, atoms: np.ndarray) -> None:
        """Bring the atoms I onto the manifold, and scale their codes."""
        old = self.dictionary[:, atoms]
        new = feasible.nearest_point(old)
        if new is old or np.array_equal(new, old):
            return
        # c d' is closest to d for c = ⟨d', d⟩/‖d'‖²: that is what the codes have to take over.
        scales = np.ones(self.dictionary.shape[1])
        scales[atoms] = np.vecdot(new.T, old.T) / np.vecdot(new.T, new.T)
        self.dictionary[:, atoms] = new
        self.current.scale(scales.astype(self.dictionary.dtype))


def code_energies_block(block: Block, codes: np.ndarray, n_atoms: int) -> tuple[np.ndarray, None]:
    """‖X_i‖² of one block of signals."""
    return reduced.code_energies(block.indices, codes, n_atoms), None


def code_residuals_block(
    block: Block, codes: np.ndarray, atoms: np.ndarray, entries: slice
) -> tuple[np.ndarray, None]:
    """X (Y − DX)ᵀ of one block of signals, for some entries of signals and atoms."""
    residual = reduced.residual(block.signals[:, entries], block.indptr, block.indices, codes, atoms)
    structure = (codes.astype(float), block.indices, block.indptr)
    return scipy.sparse.csc_array(structure, shape=(len(atoms), len(residual))) @ residual, None


def times_code_products_block(block: Block, codes: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, None]:
    """X Xᵀ V of one block."""
    return reduced.times_code_products(block.indptr, block.indices, codes, rows), None
