"""The Pymanopt problem of codes that follow by a penalty: what `lasso_problem` returns.

It differs from the problem of a fixed support (`dictionary_problem.py`) in one thing: supports belong to a
dictionary, so codes are read from its evaluation. `lasso_problem.py` makes one from what a user gives,
`updates/penalized_workspace.py` one for every set I of atoms of an update.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals, CodesBlock
from manifold_dl.engines.protocol import partition
from manifold_dl.engines.units import as_units, multiply
from manifold_dl.engines.weights import WeightedSignals, as_weighted_signals
from manifold_dl.kernels.coding import StartingCodes
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.problem.dictionary_problem import DictionaryProblem
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.penalized import OtherAtoms, PenalizedCodes, joined, result_block
from manifold_dl.problem.solvers import BlockWeights, InnerSolver
from manifold_dl.problem.starts import PenalizedBlock, Starts, open_starts
from manifold_dl.problem.support import Support
from manifold_dl.problem.whole import WholeDictionary


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
        The manifold, with a test for its points.
    n_signals : int
        n.
    **options : dict
        `regularizers`, `precondition` and `relative` of `DictionaryProblem`.
    """

    whole: WholeDictionary

    def __init__(
        self,
        objective: Objective,
        atoms: np.ndarray,
        whole: WholeDictionary,
        feasible: FeasibleSet,
        *,
        n_signals: int,
        **options: Any,
    ) -> None:
        self._n_signals = n_signals
        super().__init__(objective, atoms, whole, feasible, **options)

    def codes(self, point: np.ndarray) -> scipy.sparse.csc_array:
        """All codes (d×n) at `point`, in this process."""
        if isinstance(self.whole.signals.rows, BlockMap):
            return self.blocked_codes(point).compute()
        codes = joined(
            self.objective.code_blocks(np.asarray(point)), self.whole.n_atoms, self.objective.dtype
        )
        values = self.whole.signals.unscaled(codes.data, codes.indptr)
        codes.data = multiply(values, self.whole.exponent)
        return codes

    def blocked_codes(self, point: np.ndarray) -> BlockedCodes:
        """All codes (d×n) at `point`, which stay on the engine that has the signals.

        Parameters
        ----------
        point : m×k array

        Returns
        -------
        BlockedCodes
        """
        known, objective = self.whole.signals, self.objective
        n_blocks = len(partition(self._n_signals))
        found = objective.evaluate(np.asarray(point)).codes
        parents = (found, _roots_of(known, objective.engine, n_blocks))
        blocks = BlockMap(result_block, parents, (known.exponent,))
        shape = self.whole.n_atoms, self._n_signals
        return BlockedCodes(objective.engine, blocks, shape, objective.dtype)

    def piece(self, point: np.ndarray) -> bytes:
        """The supports and signs of all codes at `point`: where they change, the Hessian jumps.

        Parameters
        ----------
        point : m×k array

        Returns
        -------
        bytes
        """
        blocks = self.objective.code_blocks(np.asarray(point))
        parts = [part for block in blocks for part in (block.indptr, block.indices, np.sign(block.values))]
        return b"".join(part.tobytes() for part in parts)


class SignalBlocks(NamedTuple):
    """All signals, block by block, on an engine."""

    engine: Engine
    shape: tuple[int, int]  # m×n
    dtype: np.dtype
    known: WeightedSignals
    signals: BlockMap  # a signal in every row
    starts: Starts  # where the next solutions begin
    weights: BlockMap  # `BlockWeights`


def open_signals(signals: Any, weights: Any, engine: Engine) -> SignalBlocks:
    """The blocks of all signals, with no codes to start from.

    Parameters
    ----------
    signals : m×n array or BlockedSignals
    weights : array of length n, m×n array, BlockedWeights or None
    engine : Engine
        For arrays; blocked signals have their own.
    """
    known = as_weighted_signals(signals, weights, engine)
    if isinstance(signals, BlockedSignals):
        engine = signals.engine
        given = engine.open([PenalizedBlock(None)] * signals.n_blocks)
        own = _weights_of(known, engine, signals.n_blocks)
        shape, dtype = signals.shape, signals.dtype
        return SignalBlocks(engine, shape, dtype, known, known.rows, Starts(given), own)
    n, m = known.rows.shape
    parts, both = partition(n), (known.weights, known.roots)
    rows = engine.open([known.rows[part] for part in parts])  # views, without a copy
    own = engine.open([BlockWeights(*(None if w is None else w[part] for w in both)) for part in parts])
    return SignalBlocks(engine, (m, n), known.rows.dtype, known, rows, open_starts(engine, n), own)


def starting_with(data: SignalBlocks, codes: Support | BlockedCodes) -> SignalBlocks:
    """The same signals, with codes that the first solution begins with."""
    known, n = data.known, data.shape[1]
    if isinstance(codes, BlockedCodes):
        parents = (codes.blocks, _roots_of(known, data.engine, len(partition(n))))
        return data._replace(starts=Starts(BlockMap(start_block, parents, (known.exponent,))))
    if codes.values is None:
        return data
    values = as_units(codes.values.astype(data.dtype, copy=False), known.exponent)
    codes = codes._replace(values=known.scaled(values, codes.indptr))
    return data._replace(starts=open_starts(data.engine, n, codes))


def _roots_of(known: WeightedSignals, engine: Engine, n_blocks: int) -> BlockMap:
    """The roots of one weight per signal, beside blocks that an engine has; None if there are none."""
    return engine.open([None] * n_blocks) if known.roots is None else known.roots


def _weights_of(known: WeightedSignals, engine: Engine, n_blocks: int) -> BlockMap:
    """`BlockWeights` beside blocks that an engine has."""
    if known.weights is not None:
        return BlockMap(entry_weights_block, (known.weights,))
    if known.roots is not None:
        return BlockMap(signal_weights_block, (known.roots,))
    return engine.open([BlockWeights()] * n_blocks)


def entry_weights_block(weights: np.ndarray) -> tuple[None, BlockWeights]:
    """The weights of the entries of one block."""
    return None, BlockWeights(weights, None)


def signal_weights_block(roots: np.ndarray) -> tuple[None, BlockWeights]:
    """The roots of the weights of the signals of one block."""
    return None, BlockWeights(None, roots)


def start_block(codes: CodesBlock, roots: np.ndarray | None, exponent: int) -> tuple[None, PenalizedBlock]:
    """The codes of one block to start from, in the units of its rows."""
    values = as_units(codes.values, exponent)
    if roots is not None:
        values = values * np.repeat(roots, np.diff(codes.indptr))
    return None, PenalizedBlock(StartingCodes(codes.indptr, codes.indices, values))


def make_penalized_problem(
    data: SignalBlocks,
    solver: InnerSolver,
    whole: WholeDictionary,
    atoms: np.ndarray,
    feasible: FeasibleSet,
    *,
    policy: EvaluationPolicy = EvaluationPolicy(),  # noqa: B008 - frozen
    **options: Any,
) -> PenalizedProblem:
    """The problem of a set I of atoms."""
    others = None
    if whole.dictionary is not None:
        others = OtherAtoms(np.ascontiguousarray(whole.dictionary.T), atoms)
    inner = PenalizedCodes(solver, data.starts, data.weights, others)
    shape = (data.shape[0], len(atoms))
    objective = Objective(data.signals, shape, data.dtype, inner, engine=data.engine, policy=policy)
    return PenalizedProblem(objective, atoms, whole, feasible, n_signals=data.shape[1], **options)
