"""The door: what may come in, checked once, refused with a sentence.

Every public function that takes signals, a dictionary, a support, a set of atoms or a ridge μ asks here
first, so that a mistake is named where it was made and nothing has changed yet.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl.blocks import LARGEST_BLOCK, gather
from manifold_dl.errors import ComponentError
from manifold_dl.refusals import require_sound_indices, require_unmasked, warn_once
from manifold_dl.units import ORDINARY, divide, lone_signal, unit_exponent


class Support(NamedTuple):
    """The index set Ω of the paper, column by column: signal j uses indices[indptr[j]:indptr[j+1]]."""

    indptr: np.ndarray  # n+1, int64
    indices: np.ndarray  # int32, ascending within a signal
    n_atoms: int
    values: np.ndarray | None  # the codes, where they were given

    @property
    def n_signals(self):
        return len(self.indptr) - 1

    def codes(self, values):
        """A sparse d×n array of codes on this support, which owns its memory."""
        structure = (values, self.indices.copy(), self.indptr.copy())
        return scipy.sparse.csc_array(structure, shape=(self.n_atoms, self.n_signals))


def as_matrix(array, name, finite=True):
    """A finite real matrix in single or double precision, copied only if it has to be converted.

    If finite is False, the caller must call `require_finite`.
    """
    require_unmasked(array, name)
    if scipy.sparse.issparse(array):
        raise TypeError(f"{name} is a sparse {array.format} array: dense only; use `.toarray()`.")
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}; only real numbers are accepted.")
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}; a matrix with two axes is needed.")
    if 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}: it is empty.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if finite:
        # One pass without a temporary; only a sum that overflowed or met a NaN needs the closer look.
        with np.errstate(over="ignore", invalid="ignore"):
            total = array.sum()
        require_finite(array, name, total)
    return array


def require_finite(array, name, total):
    """Refuse NaN and infinity. `total` is any sum over the array that they would spoil."""
    if not np.isfinite(total) and not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(
            f"{name} holds {array[row, column]} at row {row}, column {column}; clean the data first."
        )


class Signals(NamedTuple):
    """Checked signals in units of 2^exponent: Y = 2^exponent · rowsᵀ. Ordinary signals have exponent 0."""

    rows: np.ndarray  # contiguous, a signal in every row
    energy: float  # Σ rows²
    exponent: int


def as_signals(signals, threads=1):
    """The signals in contiguous rows, checked: one pass over ordinary ones tells their energy as well."""
    Y = as_matrix(signals, "signals", finite=False)
    rows = np.ascontiguousarray(Y.T)
    energy, exponent = squared_norm(rows, threads), 0
    safe = 2.0 ** (2 * ORDINARY[rows.dtype])
    if not 1 / safe <= energy <= safe:
        require_finite(Y, "signals", energy)
        exponent = unit_exponent(rows)
    if exponent:
        rows = divide(rows, exponent)
        energy = squared_norm(rows, threads)
        alone = lone_signal(rows)
        if alone is not None:
            warn_once(
                f"signal {alone} has entries of {np.abs(Y[:, alone]).max():.1e}, and the squares of all "
                "others vanish against its own: the dictionary is fitted to that signal alone. Remove it, "
                "or divide each signal by its norm.",
                "one signal outweighs all others",
            )
    return Signals(rows, energy, exponent)


def squared_norm(rows, threads=1):
    """Σ y² in double precision, with the same bits for any number of threads."""
    pieces = [rows[first : first + LARGEST_BLOCK] for first in range(0, len(rows), LARGEST_BLOCK)]
    return float(sum(gather(lambda piece: np.einsum("ij,ij->", piece, piece, dtype=float), pieces, threads)))


def as_dictionary(dictionary, n_rows=None, name="dictionary"):
    """A matrix with an atom in every column, none of them zero."""
    dictionary = as_matrix(dictionary, name)
    if n_rows is not None and dictionary.shape[0] != n_rows:
        raise ValueError(
            f"{name} has atoms of length {dictionary.shape[0]}, but the signals have length {n_rows}: "
            "both are stored in columns."
        )
    zero = np.flatnonzero(~dictionary.any(axis=0))
    if len(zero):
        raise ValueError(f"{name} column {zero[0]} is zero: an atom needs a direction. Replace or drop it.")
    return dictionary


def as_ridge(mu):
    """A finite μ ≥ 0."""
    if not np.isscalar(mu) or isinstance(mu, (str, bytes, complex)):
        raise TypeError(f"mu={mu!r}: the ridge is one number.")
    if not (np.isfinite(mu) and mu >= 0):
        raise ValueError(f"mu={mu}: the ridge must be finite and not negative.")
    return float(mu)


def as_atoms(atoms, n_atoms):
    """The set I as distinct indices in the order given; None means all atoms."""
    if atoms is None:
        return np.arange(n_atoms)
    require_unmasked(atoms, "atoms")
    atoms = np.asarray(atoms)
    if atoms.dtype == bool and atoms.shape == (n_atoms,):
        atoms = np.flatnonzero(atoms)
    atoms = np.atleast_1d(atoms)
    if atoms.size == 0:
        raise ValueError("atoms is empty: a set I needs at least one atom.")
    if atoms.ndim != 1 or atoms.dtype.kind not in "iu":
        raise TypeError(
            f"atoms has shape {atoms.shape} and dtype {atoms.dtype}; a list of whole numbers is needed."
        )
    outside = atoms[(atoms < 0) | (atoms >= n_atoms)]
    if outside.size:
        raise ValueError(f"atom {outside[0]} is out of range: the dictionary has atoms 0 to {n_atoms - 1}.")
    values, counts = np.unique(atoms, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"atom {values[counts > 1][0]} is repeated: a set I names every atom once.")
    return atoms.astype(np.intp)


def as_support(support, n_signals, n_atoms=None):
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


def as_codes(
    codes: Any, coder: Any, shape: tuple[int, int], dtype: np.dtype, role: str = "coder"
) -> scipy.sparse.csc_array:
    """The codes that a part returned: a finite csc_array of d×n numbers with sorted indices.

    A csc_array in this form is returned as it is. Other sparse formats and dense d×n arrays are converted; a
    dense array keeps its non-zero entries only. Anything else is a fault of the part, which is named.

    Examples
    --------
    >>> from manifold_dl.coders import OMP
    >>> as_codes([[0.0, 2.0], [3.0, 0.0]], OMP(sparsity=1), shape=(2, 2), dtype=float).indices.tolist()
    [1, 0]
    """
    if not scipy.sparse.issparse(codes):
        kind = "None" if codes is None else f"a {type(codes).__name__}"
        try:
            codes = np.asarray(codes)
        except ValueError:  # a pair of arrays, for example
            codes = np.empty(0, dtype=object)
        if codes.dtype.kind not in "fiubc":
            fault = (
                f"returned {kind}, where the codes are expected: a sparse or dense d×n array of real numbers"
            )
            raise ComponentError(coder, role, fault)
    if codes.dtype.kind not in "fiub":
        fault = f"returned codes of dtype {codes.dtype}, where real numbers are expected"
        raise ComponentError(coder, role, fault)
    if codes.shape != shape:
        fault = f"returned codes of shape {codes.shape} where d×n = {shape}"
        if codes.shape == shape[::-1]:
            fault += ": the codes of a signal are a column, so return the transpose"
        raise ComponentError(coder, role, fault)
    values = codes.data if scipy.sparse.issparse(codes) else codes
    if not np.isfinite(values).all():
        raise ComponentError(coder, role, "returned codes that are not finite")
    try:
        if scipy.sparse.issparse(codes):  # before SciPy or a kernel follows indices that lead nowhere
            require_sound_indices(codes, "the support")
    except (TypeError, ValueError) as error:
        fault = f"returned codes that cannot be used: {str(error).rstrip('.')}"
        raise ComponentError(coder, role, fault) from error
    if not isinstance(codes, scipy.sparse.csc_array):
        codes = scipy.sparse.csc_array(codes)
    if not codes.has_canonical_format:
        codes = codes.copy()
        codes.sum_duplicates()
    return codes.astype(dtype, copy=False)


def _from_sparse(matrix):
    if matrix.ndim != 2:
        raise ValueError(f"the support has shape {matrix.shape}; a sparse d×n matrix is needed.")
    if matrix.dtype.kind not in "fiub":
        raise TypeError(f"the support has dtype {matrix.dtype}; only real numbers are accepted.")
    require_sound_indices(matrix, "the support")
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


def _from_indices(indices, n_signals, n_atoms):
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
