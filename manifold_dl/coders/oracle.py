"""Codes on a support that is given: the oracle of Section VI-B, which knows which atoms made each signal."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.coders.blockwise import BLOCK_SIZE, as_problem
from manifold_dl.engines.threads import as_threads, gather, split
from manifold_dl.engines.units import divide, multiply, row_exponents
from manifold_dl.kernels.reduced import fit
from manifold_dl.problem.support import as_support


@dataclass(frozen=True, eq=False)
class FixedSupport:
    """Least-squares codes on a given support; of minimum norm where its atoms are dependent.

    Parameters
    ----------
    support
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

    def encode(self, signals, dictionary, *, threads=None):
        """Codes (d×n, csc) of the columns of `signals` (m×n) over the columns of `dictionary` (m×d)."""
        Y, D = as_problem(signals, dictionary)
        return least_squares_codes(Y, D, self.support, threads)


def least_squares_codes(Y, D, support, threads=None):
    """Codes of the columns of Y on a support, structure unchanged."""
    support = as_support(support, Y.shape[1], D.shape[1])
    atoms = np.ascontiguousarray(D.T)
    gram = atoms @ atoms.T

    def run(block):
        rows, indptr, indices = block.data
        rows = np.require(rows, requirements=["C", "A", "W"])
        exponents = row_exponents(rows)
        if exponents is None:
            return fit(rows, indptr, indices, atoms, gram, 0.0, keep_factors=False).codes
        scaled = divide(rows, exponents[:, None])
        codes = fit(scaled, indptr, indices, atoms, gram, 0.0, keep_factors=False).codes
        return multiply(codes, np.repeat(exponents, np.diff(indptr)))

    blocks = split(Y.T, support.indptr, support.indices, BLOCK_SIZE)
    values = np.concatenate(gather(run, blocks, as_threads(threads)))
    return scipy.sparse.csc_array(
        (values, support.indices.copy(), support.indptr.copy()), shape=(len(atoms), Y.shape[1])
    )
