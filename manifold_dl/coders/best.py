"""Several coders at once: of every signal the codes that fit it best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.coders.calling import run_coder
from manifold_dl.coders.checks import as_problem, require_array
from manifold_dl.coders.protocol import SparseCoder, is_coder, properties_of
from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.protocol import partition
from manifold_dl.engines.threads import as_engine
from manifold_dl.engines.units import divide
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.problem.signals import blocks_of, values_of
from manifold_dl.problem.support import as_support


@dataclass(frozen=True)
class BestOf:
    """Code with several coders, and keep for every signal the codes with the smallest error.

    For coders of one sparsity: a greedy choice of atoms and the largest entries of an ℓ₁ code fail on
    different signals.

    Parameters
    ----------
    coders : sequence of SparseCoder
        Where two fit a signal equally well, the first one counts.

    Examples
    --------
    >>> import numpy as np
    >>> from manifold_dl import OMP, Lasso
    >>> D = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> coder = BestOf([OMP(sparsity=1), Lasso(alpha=0.1, sparsity=1)])
    >>> coder.encode(np.array([[0.6], [0.8]]), D).toarray().round(12).ravel()
    array([0., 0., 1.])
    """

    coders: Sequence[SparseCoder]

    def __post_init__(self) -> None:
        are_coders = [is_coder(coder) for coder in self.coders]
        if not are_coders or not all(are_coders):
            raise ValueError(
                f"coders={self.coders!r}: give a list of one coder or more, such as [OMP(sparsity=5)]."
            )

    @property
    def optimal_on_support(self) -> bool:
        """Whether the codes of all coders are."""
        return all(properties_of(coder).optimal_on_support for coder in self.coders)

    @property
    def scale_equivariant(self) -> bool:
        """Whether all coders are."""
        return all(properties_of(coder).scale_equivariant for coder in self.coders)

    @property
    def numbers_atoms(self) -> bool:
        """Whether any coder does."""
        return any(properties_of(coder).numbers_atoms for coder in self.coders)

    @property
    def nonnegative(self) -> bool:
        """Whether all coders have codes ≥ 0 only."""
        return all(properties_of(coder).nonnegative for coder in self.coders)

    def encode(
        self,
        signals: np.ndarray,
        dictionary: np.ndarray,
        *,
        codes: Any = None,
        iteration: int | None = None,
        threads: int | None = None,
        weights: Any = None,
    ) -> scipy.sparse.csc_array:
        """See `FullSparseCoder.encode`: m×n signals and an m×d dictionary → d×n codes."""
        require_array(signals, self)
        Y, D, W = as_problem(signals, dictionary, weights)
        # Weights of signals, too: the penalty of RmsLasso depends on them.
        options = {"codes": codes, "iteration": iteration, "threads": threads, "weights": weights}
        found = [run_coder(coder, Y, D, **options) for coder in self.coders]
        errors = [squared_errors(Y, D, X, W, as_engine(threads)) for X in found]
        best = np.argmin(errors, axis=0)
        columns = [np.flatnonzero(best == place) for place in range(len(found))]
        parts = [X[:, own] for X, own in zip(found, columns, strict=True)]
        order = np.argsort(np.concatenate(columns), kind="stable")
        return scipy.sparse.csc_array(scipy.sparse.hstack(parts, format="csc")[:, order])


def squared_errors(
    Y: np.ndarray, D: np.ndarray, codes: scipy.sparse.csc_array, weights: np.ndarray | None, engine: Engine
) -> np.ndarray:
    """‖y − Dx‖² of every signal, each in units of its own; with weights (m×n) Σ w (y − Dx)²."""
    support = as_support(codes, Y.shape[1], D.shape[1])
    assert support.values is not None
    blocks = engine.open(blocks_of(Y.T, support)), engine.open(values_of(support.values, support))
    parts = partition(Y.shape[1])
    rows = [None if weights is None else weights[:, part].T for part in parts]
    errors = BlockMap(squared_errors_block, (*blocks, engine.open(rows)), (np.ascontiguousarray(D.T),))
    return np.concatenate(engine.states(errors))


def squared_errors_block(
    block: Block, codes: np.ndarray, weights: np.ndarray | None, atoms: np.ndarray
) -> tuple[None, np.ndarray]:
    """‖y − Dx‖² of every signal of one block, each in units in which its squares are ordinary numbers."""
    exponents = np.frexp(np.abs(block.signals).max(axis=1))[1]
    rows = divide(block.signals, exponents[:, None])
    x = divide(codes, np.repeat(exponents, np.diff(block.indptr)))
    rest = reduced.residual(rows, block.indptr, block.indices, x, atoms)
    if weights is not None:
        return None, np.einsum("nm,nm,nm->n", weights, rest, rest, dtype=float)
    return None, np.einsum("nm,nm->n", rest, rest, dtype=float)
