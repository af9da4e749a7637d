"""The Pymanopt problem of codes that follow by a penalty: what `lasso_problem` returns.

It differs from the problem of a fixed support (`dictionary_problem.py`) in one thing: supports belong to a
dictionary, so codes are read from its evaluation. `lasso_problem.py` makes one from what a user gives,
`updates/penalized_workspace.py` one for every set I of atoms of an update.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.protocol import partition
from manifold_dl.engines.units import multiply
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.penalized import OtherAtoms, PenalizedCodes, joined
from manifold_dl.problem.solvers import InnerSolver


@dataclass(frozen=True, eq=False)
class WholeDictionary:
    """The whole dictionary and the signals that a set I of atoms is part of.

    Attributes
    ----------
    m, n_atoms, n_signals : int
        m, d and n.
    dtype : dtype
        That of the signals.
    dictionary : m×d array or None
        None if all atoms move, in their order.
    scale : float
        ‖Y‖², in units of 4^exponent.
    exponent : int
        The signals were divided by 2^exponent.
    """

    m: int
    n_atoms: int
    n_signals: int
    dtype: np.dtype
    dictionary: np.ndarray | None
    scale: float
    exponent: int

    @property
    def mean_energy(self) -> float:
        """‖Y‖²/n, the mean energy of a signal."""
        return self.scale / self.n_signals

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

    def codes(self, point: np.ndarray) -> scipy.sparse.csc_array:
        """All codes (d×n) at `point`."""
        codes = joined(
            self.objective.code_blocks(np.asarray(point)), self.whole.n_atoms, self.objective.dtype
        )
        codes.data = multiply(codes.data, self.whole.exponent)
        return codes

    def piece(self, point: np.ndarray) -> bytes:
        """The supports and signs of all codes at `point`: where they change, the Hessian jumps."""
        blocks = self.objective.code_blocks(np.asarray(point))
        parts = [part for block in blocks for part in (block.indptr, block.indices, np.sign(block.values))]
        return b"".join(part.tobytes() for part in parts)


def row_blocks(rows: np.ndarray) -> list[np.ndarray]:
    """The signals, block by block: views, without a copy."""
    return [rows[part] for part in partition(len(rows))]


def make_penalized_problem(
    data: BlockMap,
    starts: BlockMap,
    solver: InnerSolver,
    whole: WholeDictionary,
    atoms: np.ndarray,
    feasible: FeasibleSet,
    *,
    engine: Engine,
    policy: EvaluationPolicy = EvaluationPolicy(),  # noqa: B008 - frozen
    **options: Any,
) -> PenalizedProblem:
    """The problem of a set I of atoms; `data` has blocks of signals in rows, `starts` their last codes."""
    others = None
    if whole.dictionary is not None:
        others = OtherAtoms(np.ascontiguousarray(whole.dictionary.T), atoms)
    inner = PenalizedCodes(solver, starts, others)
    shape = (whole.m, len(atoms))
    objective = Objective(data, shape, whole.dtype, inner, engine=engine, policy=policy)
    return PenalizedProblem(objective, atoms, whole, feasible, **options)
