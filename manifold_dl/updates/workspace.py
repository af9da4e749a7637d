"""The working copy of one update stage: D and the codes, while one set I of atoms after the other moves.

`simco.py` takes every set I through it: build the problem of I, run an optimizer, accept the result. Only
what I touches is ever recomputed.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_dictionary
from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.units import as_units, multiply, norms_or_one
from manifold_dl.engines.weights import as_weighted_signals
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.kernels.reduced.minimum_norm import take
from manifold_dl.manifolds import feasible_set
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.counts import new_counts
from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.regularization import require_finite_penalties
from manifold_dl.problem.signals import AtomSubset, SupportedSignals, blocks_of, values_of
from manifold_dl.problem.support import as_support, require_determined
from manifold_dl.problem.support_problem import SupportProblem, WholeUpdate
from manifold_dl.problem.update_problem import inner_problem, make_objective


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
    signals : m×n array
        Y.
    dictionary : m×d array
        D, which is copied.
    codes : sparse or dense d×n array
        X, which is copied.
    engine : Engine
        What runs the functions of a block.
    weights : array of length n, or m×n array, optional
        Of the signals or of their entries, as in `update_problem`.

    Attributes
    ----------
    dictionary : m×d array
        D as it is now.
    values : array
        The codes as they are now, in the order of the support and in the units of `rows`.
    signals : WeightedSignals
        The signals in units in which no square overflows, with their weights.
    rows : n×m array
        The signals, in these units.
    support : Support
        Ω.
    """

    def __init__(
        self, signals: Any, dictionary: Any, codes: Any, engine: Engine, weights: Any = None
    ) -> None:
        self.signals = as_weighted_signals(signals, weights, engine)
        self.rows = self.signals.rows
        n, m = self.rows.shape
        D = as_dictionary(dictionary, n_rows=m)
        self.support, self.engine = as_support(codes, n, D.shape[1]), engine
        self.dictionary = np.array(D, dtype=self.rows.dtype, order="F")  # kernels read atoms in rows: D.T
        if self.support.values is None:
            raise ValueError("codes holds no numbers: an update needs the codes X, not only their support.")
        given = self.support.values.astype(self.rows.dtype, copy=False)
        given = as_units(given, self.signals.exponent)  # those of the caller, until `own_values` copies them
        self.values = self.signals.scaled(given, self.support.indptr)
        self._owns_values = False
        self._signals = SupportedSignals(self.rows, self.support, engine, self.signals.weights)

    def codes(self) -> scipy.sparse.csc_array:
        """The codes, in the units of the signals that were given."""
        values = self.signals.unscaled(self.own_values(), self.support.indptr)
        return self.support.codes(multiply(values, self.signals.exponent))

    def own_values(self) -> np.ndarray:
        """The codes as an array that may be changed in place."""
        if not self._owns_values:
            self.values, self._owns_values = self.values.copy(), True
        return self.values

    @cached_property
    def usage(self) -> np.ndarray:
        """How many signals use each atom."""
        return np.bincount(self.support.indices, minlength=self.support.n_atoms)

    def require_determined(self, mu: float) -> None:
        """Refuse supports on which f does not depend on D, for rules whose codes follow the dictionary."""
        require_determined(self.support, len(self.dictionary), mu, self.signals.weights)

    def normalize(self) -> None:
        """Unit atoms; the codes take over the norms, so that D X is unchanged."""
        norms = norms_or_one(self.dictionary)
        if (norms != 1).any():
            self.dictionary /= norms
            self.own_values()[:] *= norms[self.support.indices]

    def problem(
        self, atoms: np.ndarray, mu: float, settings: UpdateSettings, searches: bool = False
    ) -> SupportProblem | None:
        """The update of I as a Pymanopt problem, with I on its manifold; None if no signal uses I.

        `searches` says that the optimizer moves along lines: it needs no factors, and its searches are
        trusted.
        """
        feasible = feasible_set(settings.manifold, len(self.dictionary), len(atoms))
        subset = self._signals.subset(atoms, self.dictionary, self.values)
        if self._bring_onto(feasible, subset):
            subset = self._signals.subset(atoms, self.dictionary, self.values)
        if subset.n_entries == 0:
            return None
        policy = EvaluationPolicy(trust_line_search=searches, keep_factors=not searches)
        return SupportProblem(
            make_objective(subset, inner_problem(subset, settings.codes, mu), policy),
            subset,
            WholeUpdate(self.support, self.dictionary, self.signals),
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
        subset = problem.subset
        codes = problem.objective.codes(point)
        if isinstance(subset.entries, slice):  # of all atoms: no copy of the old ones is needed
            self.values, self._owns_values = codes, True
        else:
            self.own_values()[subset.entries] = codes
        self.dictionary[:, subset.atoms] = point

    def residual(self, signals: np.ndarray | None = None) -> np.ndarray:
        """Y − D X in rows, of all signals or of some."""
        s, values = self.support, self.values
        if signals is None:
            rows, indptr, indices = self.rows.copy(), s.indptr, s.indices
        else:
            indptr, indices, places = take(s.indptr, s.indices, signals)
            rows, values = self.rows[signals], values[places]
        reduced.add_products(rows, indptr, indices, -values, self.dictionary.T)
        return rows

    def code_products(self) -> tuple[np.ndarray, np.ndarray]:
        """X Xᵀ (d×d) and X (Y − DX)ᵀ (d×m), in double precision."""
        blocks = self.engine.open(blocks_of(self.rows, self.support))
        codes = self.engine.open(values_of(self.values, self.support))
        (products,) = self.engine.total(BlockMap(code_products_block, (blocks, codes), (self.dictionary.T,)))
        return products

    def _bring_onto(self, feasible: FeasibleSet, subset: AtomSubset) -> bool:
        """Bring the atoms I onto the manifold, and scale their codes; whether they have moved."""
        atoms = subset.atoms
        old = self.dictionary[:, atoms]
        new = feasible.nearest_point(old)
        if np.array_equal(new, old):
            return False
        # c d' is closest to d for c = ⟨d', d⟩/‖d'‖²: that is what the codes have to take over.
        scales = np.ones(self.support.n_atoms)
        scales[atoms] = np.vecdot(new.T, old.T) / np.vecdot(new.T, new.T)
        self.dictionary[:, atoms] = new
        entries = subset.entries
        self.own_values()[entries] *= scales[self.support.indices[entries]].astype(self.values.dtype)
        return True


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
