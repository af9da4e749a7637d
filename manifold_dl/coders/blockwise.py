"""What every coder does around its kernel: check the input, run over blocks in threads, assemble.

A kernel sees one block: a prepared dictionary and some signals as contiguous rows. It returns how many
atoms each signal uses, their indices and their coefficients. Blocks have a fixed size, so the codes do not
depend on the number of threads.
"""

from functools import partial
from numbers import Integral, Real

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_dictionary, as_matrix
from manifold_dl.engines.threads import as_threads, ordered_map
from manifold_dl.engines.units import CODABLE, column_norms, divide, multiply, row_exponents
from manifold_dl.kernels import coding as kernels

BLOCK_SIZE = 1024


def as_problem(signals, dictionary):
    """Signals and a dictionary of the same dtype, finite and of fitting shapes."""
    Y = as_matrix(signals, "signals")
    D = as_dictionary(dictionary, n_rows=Y.shape[0])
    return Y, D.astype(Y.dtype, copy=False)


def encode_blocks(Y, D, kernel, threads=None, *, unit_atoms=True, rescale=False):
    """Codes (d×n) of the columns of Y, computed by `kernel(prepared, rows, signals, exponent)` by blocks.

    The third argument is the slice or array of the signals in `rows`, which are divided by 2^exponent: 0 for
    ordinary ones, so that no square under- or overflows. A kernel with a tolerance or a penalty in the
    units of the data has to divide it as well. With `unit_atoms` the kernel sees atoms of norm 1, and its
    coefficients are divided by the norms afterwards. With `rescale` it sees signals whose largest entry lies
    between 1/2 and 1.
    """
    d, n = D.shape[1], Y.shape[1]
    norms = column_norms(D)
    # Norms that differ from 1 by rounding are 1: no atom is touched that was normalised before.
    if not unit_atoms or np.abs(norms - 1).max() <= 64 * np.finfo(D.dtype).eps:
        norms = None
    prepared = kernels.prepare(np.ascontiguousarray(D.T if norms is None else (D / norms).T))

    def run(block):
        rows = np.require(Y[:, block].T, requirements=["C", "A", "W"])
        if rescale:
            exponents = np.frexp(np.abs(rows).max(axis=1))[1]
            scaled = divide(rows, exponents[:, None])
            counts, indices, values = _compact(*kernel(prepared, scaled, block, 0))
            return counts, indices, multiply(values, np.repeat(exponents, counts))
        exponents = row_exponents(rows)
        if exponents is None:
            return _compact(*kernel(prepared, rows, block, 0))
        return _by_size(partial(kernel, prepared), rows, block, exponents)

    blocks = [slice(start, min(start + BLOCK_SIZE, n)) for start in range(0, n, BLOCK_SIZE)]
    counts, indices, values = map(
        np.concatenate, zip(*ordered_map(run, blocks, as_threads(threads)), strict=True)
    )
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    if norms is not None:
        values = values / norms[indices]
    return scipy.sparse.csc_array((values, indices, indptr), shape=(d, n))


def _by_size(kernel, rows, block, exponents):
    """The codes of a block whose signals need units of their own: those of about one size together."""
    left, groups, found = np.arange(len(rows)), [], []
    while len(left):
        unit = int(exponents[left].max())
        together = exponents[left] > unit - CODABLE[rows.dtype]
        group, left = left[together], left[~together]
        counts, indices, values = _compact(*kernel(divide(rows[group], unit), block.start + group, unit))
        groups.append(group)
        found.append((counts, indices, multiply(values, unit)))
    order, (counts, indices, values) = np.concatenate(groups), map(np.concatenate, zip(*found, strict=True))
    entries = np.argsort(np.repeat(order, counts), kind="stable")  # back to the order of the signals
    return counts[np.argsort(order)], indices[entries], values[entries]


def _compact(counts, indices, values):
    """Only the meaningful entries of the rectangular arrays a kernel returns."""
    used = np.arange(indices.shape[1]) < counts[:, None]
    return counts, indices[used], values[used]


def require_sparsity(sparsity, m=None, d=None):
    """Refuse a number of atoms per signal that is not a whole number between 1 and min(m, d)."""
    if not isinstance(sparsity, Integral) or isinstance(sparsity, bool):
        raise TypeError(f"sparsity={sparsity!r}: the number of atoms per signal is a whole number.")
    if sparsity < 1:
        raise ValueError(f"sparsity={sparsity}: a code needs room for at least one atom.")
    if m is not None and sparsity > m:
        raise ValueError(
            f"sparsity={sparsity} exceeds the signal dimension m={m}; more atoms are always dependent."
        )
    if d is not None and sparsity > d:
        raise ValueError(f"sparsity={sparsity} exceeds the number of atoms d={d}.")


def require_a_stop(coder):
    """Refuse a pursuit that would not end: it needs a sparsity, a tolerance or both."""
    if coder.sparsity is None and coder.tol is None:
        raise ValueError(
            f"{type(coder).__name__} needs a reason to stop: give sparsity (atoms per signal), "
            "tol (squared residual per signal) or both."
        )
    if coder.sparsity is not None:
        require_sparsity(coder.sparsity)
    if coder.tol is not None:
        require_tolerance(coder.tol)


def require_count(name, value):
    """Refuse what is not a whole number of at least one."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r}: a whole number of at least 1 is needed.")


def require_tolerance(tol):
    """Refuse a squared residual that is not a finite number, 0 or larger."""
    if not isinstance(tol, Real) or isinstance(tol, bool):
        raise TypeError(f"tol={tol!r}: the squared residual allowed per signal is a number.")
    if not (np.isfinite(tol) and tol >= 0):
        raise ValueError(
            f"tol={tol}: the squared residual allowed per signal must be finite and not negative."
        )
