"""Codes on a given support: the oracle coder of Section VI-B, to which the true support is known.

`FOCUSS` uses `least_squares_codes` for its last codes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.coders.checks import as_problem
from manifold_dl.engines import BlockMap
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals, CodesBlock
from manifold_dl.engines.protocol import partition
from manifold_dl.engines.threads import as_engine
from manifold_dl.engines.units import divide, multiply, row_exponents
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.problem.pairs import share_products
from manifold_dl.problem.signals import blocks_of, codes_of
from manifold_dl.problem.support import as_support


@dataclass(frozen=True, eq=False)
class FixedSupport:
    """Least-squares codes on a given support; of minimum norm where its atoms are dependent.

    Parameters
    ----------
    support : array_like or sparse array
        A boolean d×n mask, an n×S array of indices (padded with −1) or a sparse d×n matrix, of which only the
        structure counts. It belongs to n signals and d atoms, and so does the coder.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1.0, 3.0], [2.0, 4.0]])
    >>> FixedSupport([[0, -1], [0, 1]]).encode(Y, np.eye(2)).toarray()
    array([[1., 3.],
           [0., 4.]])
    """

    support: Any

    optimal_on_support = True
    scale_equivariant = True
    numbers_atoms = True  # the atoms are named by number, so their order matters

    def encode(
        self, signals: np.ndarray, dictionary: np.ndarray, *, threads: int | None = None, weights: Any = None
    ) -> scipy.sparse.csc_array:
        """See `FullSparseCoder.encode`: m×n signals and an m×d dictionary → d×n codes."""
        Y, D, W = as_problem(signals, dictionary, weights)
        return least_squares_codes(Y, D, self.support, threads, W)


def least_squares_codes(
    Y: Any, D: np.ndarray, support: Any, threads: int | None = None, weights: Any = None
) -> Any:
    """Codes of the columns of Y on a support, structure unchanged."""
    atoms = np.ascontiguousarray(D.T)
    if isinstance(Y, BlockedSignals):
        return _blocked_least_squares(Y, atoms, support, weights)
    support, engine = as_support(support, Y.shape[1], D.shape[1]), as_engine(threads)
    blocks = engine.open(blocks_of(Y.T, support))
    parts = partition(Y.shape[1])
    own = engine.open([None if weights is None else weights[:, part].T for part in parts])
    gram = reduced.gram(atoms, atoms) if share_products(len(atoms), blocks, engine) else None
    values = engine.states(BlockMap(least_squares_block, (blocks, own), (atoms, gram)))
    return support.codes(np.concatenate(values))


def _blocked_least_squares(Y: BlockedSignals, atoms: np.ndarray, support: Any, weights: Any) -> BlockedCodes:
    """The same where an engine has the signals."""
    if not isinstance(support, BlockedCodes):
        given = as_support(support, Y.shape[1], len(atoms))
        parts = Y.engine.open(codes_of(given, np.zeros(len(given.indices), Y.dtype)))
        support = BlockedCodes(Y.engine, parts, (len(atoms), Y.shape[1]), Y.dtype)
    shared = share_products(len(atoms), support.blocks, Y.engine)
    common = (atoms, reduced.gram(atoms, atoms) if shared else None)
    own = Y.engine.open([None] * Y.n_blocks) if weights is None else weights.blocks
    blocks = BlockMap(least_squares_codes_block, (Y.given, support.blocks, own), common)
    return BlockedCodes(Y.engine, blocks, support.shape, Y.dtype)


def least_squares_codes_block(
    rows: np.ndarray,
    codes: CodesBlock,
    weights: np.ndarray | None,
    atoms: np.ndarray,
    gram: np.ndarray | None,
) -> tuple[None, CodesBlock]:
    """The least-squares codes of one block that an engine has."""
    _, values = least_squares_block(Block(rows, codes.indptr, codes.indices, None), weights, atoms, gram)
    return None, codes._replace(values=values)


def least_squares_block(
    block: Block, weights: np.ndarray | None, atoms: np.ndarray, gram: np.ndarray | None
) -> tuple[None, np.ndarray]:
    """The least-squares codes of one block of signals; `gram` is DᵀD, or None if signals form their own."""
    rows = np.require(block.signals, requirements=["C", "A", "W"])
    exponents = row_exponents(rows)
    if exponents is not None:
        rows = divide(rows, exponents[:, None])
    arranged = Block(rows, block.indptr, block.indices, reduced.make_batches(block.indptr, block.indices))
    if weights is None and gram is not None:
        codes = reduced.fit_codes(arranged, atoms, gram, 0.0, keep_factors=False).solutions.codes
    else:
        own = None if weights is None else np.ascontiguousarray(weights)
        codes = reduced.fit_weighted_codes(arranged, own, atoms, 0.0, keep_factors=False).solutions.codes
    return None, codes if exponents is None else multiply(codes, np.repeat(exponents, np.diff(block.indptr)))
