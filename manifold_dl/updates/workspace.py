"""The working copy of one update stage: D and the codes, while one set I of atoms after the other moves.

`simco.py` takes every set I through it: build the problem of I, run an optimizer, accept the result. Only
what I touches is ever recomputed.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_dictionary
from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.sources import as_signals
from manifold_dl.engines.units import norms_or_one
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.manifolds import feasible_set
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.counts import new_counts
from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.regularization import require_finite_penalties
from manifold_dl.problem.support_problem import SupportProblem, WholeUpdate
from manifold_dl.problem.update_problem import inner_problem, make_objective
from manifold_dl.updates.current_codes import ArrayCodes, CurrentCodes, EngineCodes, as_blocked_codes


class UpdateSettings(Protocol):
    """What a problem needs of an update rule."""

    @property
    def manifold(self) -> Any: ...
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
    point = dictionary[:, atoms]
    cost = problem.cost(point)
    if not np.isfinite(cost):
        require_finite_penalties(regularizers, dictionary)
    return Start(point, cost)


def accepted_point(problem: DictionaryProblem, point: np.ndarray, start: Start) -> np.ndarray:
    """The point that an optimizer returned, or the start if the cost there is higher; it is counted."""
    # Within the rounding of the sums a rise means nothing, and the optimizer may be right.
    rounding = 4 * np.finfo(float).eps * abs(start.cost)
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

    Attributes
    ----------
    dictionary : m×d array
        D as it is now.
    current : CurrentCodes
        The codes as they are now, in units of 2^exponent.
    rows : n×m array or BlockMap
        The signals, in the same units.
    is_blocked : bool
        Whether an engine has the signals.
    """

    def __init__(self, signals: Any, dictionary: Any, codes: Any, engine: Engine) -> None:
        self.rows, self.scale, self.exponent = as_signals(signals, engine)
        self.is_blocked = isinstance(signals, BlockedSignals)
        m, dtype = (
            (signals.shape[0], signals.dtype) if self.is_blocked else (self.rows.shape[1], self.rows.dtype)
        )
        D = as_dictionary(dictionary, n_rows=m)
        self.dictionary = np.array(D, dtype=dtype, order="F")  # kernels read atoms in rows: D.T
        self.current: CurrentCodes
        if self.is_blocked:
            engine, codes = signals.engine, as_blocked_codes(codes, signals)
            self.current = EngineCodes(codes, dtype, self.exponent)
        else:
            self.current = ArrayCodes(codes, self.rows, D.shape[1], self.exponent, engine)
        self.engine = engine
        self._signals = self.current.signals(self.rows, m)

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
        self, atoms: np.ndarray, mu: float, settings: UpdateSettings, searches: bool = False
    ) -> SupportProblem | None:
        """The update of I as a Pymanopt problem, with I on its manifold; None if no signal uses I.

        `searches` says that the optimizer moves along lines: it needs no factors, and its searches are
        trusted.
        """
        feasible = feasible_set(settings.manifold, len(self.dictionary), len(atoms))
        if self.current.is_empty:
            return None
        self._bring_onto(feasible, atoms)
        subset = self._signals.subset(atoms, self.dictionary, self.current.opened())
        if subset.n_entries == 0:
            return None
        policy = EvaluationPolicy(trust_line_search=searches, keep_factors=not searches)
        return SupportProblem(
            make_objective(subset, inner_problem(subset, settings.codes, mu), policy),
            subset,
            WholeUpdate(self.current.support, self.dictionary, self.scale, self.exponent),
            feasible,
            regularizers=settings.regularizers,
            precondition=settings.precondition,
            relative=True,
        )

    def start(self, atoms: np.ndarray, problem: SupportProblem, regularizers: Any) -> Start:
        """Where the atoms I are, and the cost there."""
        return start_of(problem, self.dictionary, atoms, regularizers)

    def accept(self, problem: SupportProblem, point: np.ndarray, start: Start) -> None:
        """Put the atoms I and their codes in place; the atoms only if the cost does not rise."""
        point = accepted_point(problem, point, start)
        self.current.put(problem.subset, problem.objective.evaluate(point).codes)
        self.dictionary[:, problem.subset.atoms] = point

    def code_products(self) -> tuple[np.ndarray, np.ndarray]:
        """X Xᵀ (d×d) and X (Y − DX)ᵀ (d×m), in double precision."""
        parents = (self._signals.blocks, self.current.opened())
        (products,) = self.engine.total(BlockMap(code_products_block, parents, (self.dictionary.T,)))
        return products

    def _bring_onto(self, feasible: FeasibleSet, atoms: np.ndarray) -> None:
        """Bring the atoms I onto the manifold, and scale their codes."""
        old = self.dictionary[:, atoms]
        new = feasible.nearest_point(old)
        if np.array_equal(new, old):
            return
        # c d' is closest to d for c = ⟨d', d⟩/‖d'‖²: that is what the codes have to take over.
        scales = np.ones(self.dictionary.shape[1])
        scales[atoms] = np.vecdot(new.T, old.T) / np.vecdot(new.T, new.T)
        self.dictionary[:, atoms] = new
        self.current.scale(scales.astype(self.dictionary.dtype))


def code_products_block(
    block: Block, codes: np.ndarray, atoms: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], None]:
    """X Xᵀ and X (Y − DX)ᵀ of one block of signals."""
    X = scipy.sparse.csc_array(
        (codes.astype(float), block.indices, block.indptr), shape=(len(atoms), len(block.signals))
    )
    residual = block.signals.copy()
    reduced.add_products(residual, block.indptr, block.indices, -codes, atoms)
    return ((X @ X.T).toarray(), X @ residual), None
