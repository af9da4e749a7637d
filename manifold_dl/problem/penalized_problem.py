"""The Pymanopt problem of codes that follow by a penalty: what `lasso_problem` returns.

It differs from the problem of a fixed support (`dictionary_problem.py`) in one thing: supports belong to a
dictionary, so codes are read from its evaluation. `lasso_problem.py` makes one from what a user gives,
`updates/penalized_workspace.py` one for every set I of atoms of an update.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.protocol import partition
from manifold_dl.engines.units import multiply
from manifold_dl.engines.weights import WeightedSignals, as_weighted_signals
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.penalized import OtherAtoms, PenalizedCodes, joined, open_starts, open_weights
from manifold_dl.problem.solvers import InnerSolver
from manifold_dl.problem.support import Support


@dataclass(frozen=True, eq=False)
class WholeDictionary:
    """The whole dictionary and the signals that a set I of atoms is part of.

    Attributes
    ----------
    n_atoms : int
        d.
    dictionary : m×d array or None
        None if all atoms move, in their order.
    signals : WeightedSignals
        Y, in units of 2^exponent, with its energy and its weights.
    """

    n_atoms: int
    dictionary: np.ndarray | None
    signals: WeightedSignals

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
            return np.array(point)
        whole = self.dictionary.astype(np.result_type(self.dictionary, point))
        whole[:, atoms] = point
        return whole


class PenalizedProblem(DictionaryProblem):
    """Learning with codes that follow by a penalty: a `pymanopt.Problem` with codes, counts and a record.

    Parameters
    ----------
    objective : Objective
        f.
    atoms : array of int
        The set I of atoms that move.
    whole : WholeDictionary
        The dictionary that I is part of.
    feasible : FeasibleSet
        The manifold, and what tells its points from other arrays.
    regularizers : sequence of Regularizer
        Smooth penalties on the whole dictionary.
    precondition : bool
        Divide each atom's gradient by its energy, for the optimizers that use a preconditioner.
    relative : bool
        Divide the cost by ‖Y‖²/n, the mean energy of a signal.
    """

    whole: WholeDictionary

    def codes(self, point: np.ndarray) -> scipy.sparse.csc_array:
        """All codes (d×n) at `point`."""
        codes = joined(
            self.objective.code_blocks(np.asarray(point)), self.whole.n_atoms, self.objective.dtype
        )
        values = self.whole.signals.unscaled(codes.data, codes.indptr)
        codes.data = multiply(values, self.whole.exponent)
        return codes

    def piece(self, point: np.ndarray) -> bytes:
        """The supports and signs of all codes at `point`: where they change, the Hessian jumps."""
        blocks = self.objective.code_blocks(np.asarray(point))
        parts = [part for block in blocks for part in (block.indptr, block.indices, np.sign(block.values))]
        return b"".join(part.tobytes() for part in parts)


class SignalBlocks(NamedTuple):
    """All signals, block by block."""

    signals: BlockMap  # a signal in every row
    starts: BlockMap  # `WarmStart`: their last codes
    weights: BlockMap  # `BlockWeights`


def as_signals_in_memory(signals: Any, weights: Any, engine: Engine) -> WeightedSignals:
    """Checked signals with their weights; those that an engine has are refused."""
    if isinstance(signals, BlockedSignals):
        raise ValueError(
            "codes that follow by a penalty start from the last ones, and an engine may lose those: where it "
            "has the signals, use codes='follow' with a coder, or signals in memory."
        )
    return as_weighted_signals(signals, weights, engine)


def open_signals(engine: Engine, signals: WeightedSignals, codes: Support | None = None) -> SignalBlocks:
    """The blocks of all signals, and of the codes that the first solution begins with."""
    n = len(signals.rows)
    rows = engine.open([signals.rows[part] for part in partition(n)])  # views, without a copy
    return SignalBlocks(rows, open_starts(engine, n, codes), open_weights(engine, signals))


def make_penalized_problem(
    data: SignalBlocks,
    solver: InnerSolver,
    whole: WholeDictionary,
    atoms: np.ndarray,
    feasible: FeasibleSet,
    *,
    engine: Engine,
    policy: EvaluationPolicy = EvaluationPolicy(),  # noqa: B008 - frozen
    **options: Any,
) -> PenalizedProblem:
    """The problem of a set I of atoms."""
    others = None
    if whole.dictionary is not None:
        others = OtherAtoms(np.ascontiguousarray(whole.dictionary.T), atoms)
    inner = PenalizedCodes(solver, data.starts, data.weights, others)
    rows = whole.signals.rows
    shape = (rows.shape[1], len(atoms))
    objective = Objective(data.signals, shape, rows.dtype, inner, engine=engine, policy=policy)
    return PenalizedProblem(objective, atoms, whole, feasible, **options)
