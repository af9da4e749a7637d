"""The support Ω, and its restriction to a set I of atoms: I ∩ Ω(:, j) of the paper's Section IV.

`as_support` checks a support where it enters. An update of one atom out of 256 must not look at all the codes
to find its own: `SupportIndex` lists the entries of a block's support by atom, once, and cuts out those of
any I in time that grows with their number alone. `signals.py` uses it.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._sparse import require_sound_indices
from manifold_dl._validation import as_matrix, require_unmasked, warn_once


class Support(NamedTuple):
    """The index set Ω of the paper, column by column: signal j uses indices[indptr[j]:indptr[j+1]]."""

    indptr: np.ndarray  # n+1, int64
    indices: np.ndarray  # int32, ascending within a signal
    n_atoms: int
    values: np.ndarray | None  # the codes, where they were given

    @property
    def n_signals(self) -> int:
        """n."""
        return len(self.indptr) - 1

    def codes(self, values: np.ndarray) -> scipy.sparse.csc_array:
        """A sparse d×n array of codes on this support, which owns its memory."""
        indptr = narrow(self.indptr)
        indptr = indptr.copy() if indptr is self.indptr else indptr
        shape, indices = (self.n_atoms, self.n_signals), self.indices.copy()
        if indptr.dtype != indices.dtype:
            return scipy.sparse.csc_array((values, indices, indptr), shape=shape)
        # The constructor would check what is known to be sound, for as long as a small update computes.
        codes = copy(_empty(shape))
        codes.data, codes.indices, codes.indptr = values, indices, indptr
        return codes


@lru_cache(maxsize=16)
def _empty(shape: tuple[int, int]) -> scipy.sparse.csc_array:
    return scipy.sparse.csc_array(shape)


def narrow(indptr: np.ndarray) -> np.ndarray:
    """The same numbers in 32 bits, where they fit: SciPy would widen the indices of all codes otherwise."""
    return indptr.astype(np.int32) if indptr[-1] <= np.iinfo(np.int32).max else indptr


def as_support(support: Any, n_signals: int, n_atoms: int | None = None) -> Support:
    """A boolean d×n mask, an n×S index array (−1 pads), sparse d×n codes or dense d×n codes.

    Examples
    --------
    >>> as_support([[0, 2], [1, -1]], n_signals=2, n_atoms=3).indices.tolist()
    [0, 2, 1]
    >>> as_support(np.array([[True, False], [True, True]]), n_signals=2).indptr.tolist()
    [0, 2, 3]
    """
    if isinstance(support, Support):
        found = support
    elif scipy.sparse.issparse(support):
        found = _from_sparse(support)
    else:
        require_unmasked(support, "the support")
        support = np.asarray(support)
        if support.ndim != 2:
            raise ValueError(
                f"the support has shape {support.shape}; give a boolean d×n mask, an n×S array of indices "
                "or a sparse d×n matrix."
            )
        if support.dtype.kind in "iu":
            found = _from_indices(support, n_signals, n_atoms)
        elif support.dtype == bool:
            found = _from_sparse(scipy.sparse.csc_array(support))._replace(values=None)
        else:
            found = _from_sparse(scipy.sparse.csc_array(as_matrix(support, "the support")))
    if found.n_signals != n_signals:
        raise ValueError(
            f"the support is for {found.n_signals} signals, but there are {n_signals} "
            "(a mask or sparse support is d×n, an index array n×S)."
        )
    if n_atoms is not None and found.n_atoms != n_atoms:
        raise ValueError(f"the support names {found.n_atoms} atoms, but the dictionary has {n_atoms}.")
    return found


def _from_sparse(matrix: Any) -> Support:
    if matrix.ndim != 2:
        raise ValueError(f"the support has shape {matrix.shape}; a sparse d×n matrix is needed.")
    if matrix.dtype.kind not in "fiub":
        raise TypeError(f"the support has dtype {matrix.dtype}; only real numbers are accepted.")
    require_sound_indices(matrix, "the support")
    if not isinstance(matrix, scipy.sparse.csc_array):
        matrix = scipy.sparse.csc_array(matrix)
    if len(matrix.indices) > matrix.nnz:  # room that is not used
        matrix = scipy.sparse.csc_array(
            (matrix.data[: matrix.nnz], matrix.indices[: matrix.nnz], matrix.indptr), shape=matrix.shape
        )
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values = matrix.data if matrix.dtype.kind == "f" else None
    if values is not None and not np.isfinite(values).all():
        raise ValueError("the codes hold NaN or infinity; clean them first.")
    indptr, indices = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
    return Support(indptr, indices, matrix.shape[0], values)


def _from_indices(indices: np.ndarray, n_signals: int, n_atoms: int | None) -> Support:
    if len(indices) != n_signals:
        raise ValueError(
            f"the index array has {len(indices)} rows, but there are {n_signals} signals: give one row each."
        )
    if n_atoms is None:
        n_atoms = int(indices.max(initial=0)) + 1
    outside = indices[(indices < -1) | (indices >= n_atoms)]
    if outside.size:
        raise ValueError(
            f"the support names atom {outside[0]}, but the dictionary has atoms 0 to {n_atoms - 1}."
        )
    ordered = np.sort(indices, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        row, column = np.argwhere(repeated)[0]
        raise ValueError(f"signal {row} names atom {ordered[row, column]} twice in its support.")
    used = ordered >= 0
    indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    return Support(indptr, ordered[used].astype(np.int32), n_atoms, None)


def require_determined(support: Support, m: int, mu: float, weights: np.ndarray | None = None) -> None:
    """Refuse supports of more than m atoms where codes follow the dictionary without a ridge.

    With as many independent atoms as entries every dictionary fits the signal exactly: f does not depend on
    D, and there is nothing to learn from it. Exactly m atoms are warned about, and so are supports that are
    larger than the number of observed entries, where there are weights (n×m).
    """
    if mu > 0:
        return
    sizes = np.diff(support.indptr)
    largest = int(sizes.max(initial=0))
    if weights is not None:
        warn_of_few_entries(few_entries(sizes, weights), len(sizes))
    if largest >= m:
        require_size_below(m, largest, f"signal {int(sizes.argmax())}")


def require_size_below(m: int, largest: int, signal: str) -> None:
    """Refuse a largest support of more than m atoms, warn of m, where there is no ridge."""
    if largest < m:
        return
    consequence = (
        "with mu=0 every dictionary fits it exactly, and nothing is learned from it. Use smaller supports "
        "(a coder with a sparsity below m) or a ridge mu > 0."
    )
    if largest > m:
        raise ValueError(f"{signal} uses {largest} atoms, more than its m={m} entries: {consequence}")
    warn_once(f"{signal} uses {m} atoms, as many as its m={m} entries: {consequence}", "support of m atoms")


def few_entries(sizes: np.ndarray, weights: np.ndarray) -> int:
    """How many signals have a support that is larger than the number of their observed entries."""
    observed = np.count_nonzero(weights, axis=1)
    return int(np.count_nonzero((observed > 0) & (observed < sizes)))


def warn_of_few_entries(few: int, n_signals: int) -> None:
    """Warn of signals with fewer observed entries than atoms, where there is no ridge."""
    if few:
        warn_once(
            f"{few} of {n_signals} signals have fewer observed entries than atoms in their support: with "
            "mu=0 they get minimum-norm codes, and nothing is learned from them. Use smaller supports or a "
            "ridge mu > 0.",
            "fewer observed entries than atoms",
        )


@dataclass(frozen=True)
class SupportSize:
    """The size of a largest support; the larger one is the sum of two."""

    size: int

    def __add__(self, other: "SupportSize") -> "SupportSize":
        return SupportSize(max(self.size, other.size))


@dataclass(frozen=True, eq=False)
class SupportIndex:
    """The support of one block, listed by atoms as well as by signals.

    Examples
    --------
    >>> index = SupportIndex(np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), n_atoms=3)
    >>> part = index.restrict(np.array([2, 1]))
    >>> part.active.tolist(), part.entries.tolist(), part.indices.tolist()
    ([0, 1], [1, 2], [0, 1])
    """

    indptr: np.ndarray
    indices: np.ndarray
    n_atoms: int

    def restrict(self, atoms: np.ndarray) -> "SubsetSupport":
        """The part of the support that belongs to the atoms I."""
        entries = np.concatenate([self.entries[self.first[i] : self.first[i + 1]] for i in atoms])
        position = np.zeros(self.n_atoms, dtype=np.int32)
        position[atoms] = np.arange(len(atoms), dtype=np.int32)
        if len(atoms) > 1:
            entries.sort()
        signals = self.signal_of[entries]
        start = np.flatnonzero(np.diff(signals, prepend=-1))
        indptr = np.append(start, len(entries)).astype(np.int64)
        return SubsetSupport(entries, signals[start], indptr, position[self.indices[entries]])

    @cached_property
    def signal_of(self) -> np.ndarray:
        """The signal of every entry."""
        sizes = np.diff(self.indptr)
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    @cached_property
    def entries(self) -> np.ndarray:
        """All entries in the order of their atoms, each atom's in the order of the signals."""
        return np.argsort(self.indices, kind="stable")

    @cached_property
    def first(self) -> np.ndarray:
        """Those of atom i are entries[first[i]:first[i + 1]]."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.indices, minlength=self.n_atoms))])


class SubsetSupport(NamedTuple):
    """The support of one block, restricted to the atoms I and to the signals that use them."""

    entries: np.ndarray  # which of the block's codes belong to I
    active: np.ndarray  # the signals that use an atom of I
    indptr: np.ndarray
    indices: np.ndarray  # positions within I
