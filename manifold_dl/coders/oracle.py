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
from manifold_dl.engines.threads import as_engine
from manifold_dl.engines.units import divide, multiply, row_exponents
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
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
        self, signals: np.ndarray, dictionary: np.ndarray, *, threads: int | None = None
    ) -> scipy.sparse.csc_array:
        """Codes of the columns of `signals` over the columns of `dictionary`.

        Parameters
        ----------
        signals : m×n array
            A signal in every column.
        dictionary : m×d array
            An atom in every column, of any norm.
        threads : int, optional
            All processors by default. The codes do not depend on it.

        Returns
        -------
        csc_array
            d×n, of the dtype of the signals.
        """
        Y, D = as_problem(signals, dictionary)
        return least_squares_codes(Y, D, self.support, threads)


def least_squares_codes(Y: Any, D: np.ndarray, support: Any, threads: int | None = None) -> Any:
    """Codes of the columns of Y on a support, structure unchanged."""
    atoms = np.ascontiguousarray(D.T)
    if isinstance(Y, BlockedSignals):
        return _blocked_least_squares(Y, atoms, support)
    support, engine = as_support(support, Y.shape[1], D.shape[1]), as_engine(threads)
    blocks = engine.open(blocks_of(Y.T, support))
    values = engine.states(BlockMap(least_squares_block, (blocks,), (atoms, reduced.gram(atoms, atoms))))
    return support.codes(np.concatenate(values))


def _blocked_least_squares(Y: BlockedSignals, atoms: np.ndarray, support: Any) -> BlockedCodes:
    """The same where an engine has the signals."""
    if not isinstance(support, BlockedCodes):
        given = as_support(support, Y.shape[1], len(atoms))
        parts = Y.engine.open(codes_of(given, np.zeros(len(given.indices), Y.dtype)))
        support = BlockedCodes(Y.engine, parts, (len(atoms), Y.shape[1]), Y.dtype)
    common = (atoms, reduced.gram(atoms, atoms))
    blocks = BlockMap(least_squares_codes_block, (Y.given, support.blocks), common)
    return BlockedCodes(Y.engine, blocks, support.shape, Y.dtype)


def least_squares_codes_block(
    rows: np.ndarray, codes: CodesBlock, atoms: np.ndarray, gram: np.ndarray
) -> tuple[None, CodesBlock]:
    """The least-squares codes of one block that an engine has."""
    _, values = least_squares_block(Block(rows, codes.indptr, codes.indices, None), atoms, gram)
    return None, codes._replace(values=values)


def least_squares_block(block: Block, atoms: np.ndarray, gram: np.ndarray) -> tuple[None, np.ndarray]:
    """The least-squares codes of one block of signals."""
    rows = np.require(block.signals, requirements=["C", "A", "W"])
    exponents = row_exponents(rows)
    if exponents is not None:
        rows = divide(rows, exponents[:, None])
    arranged = Block(rows, block.indptr, block.indices, reduced.make_batches(block.indptr, block.indices))
    codes = reduced.fit_codes(arranged, atoms, gram, 0.0, keep_factors=False).solutions.codes
    return None, codes if exponents is None else multiply(codes, np.repeat(exponents, np.diff(block.indptr)))
