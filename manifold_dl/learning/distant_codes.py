"""The codes of a result whose signals are not in memory: computed when they are asked for.

A coder gives the same codes for the same dictionary, so a result needs none of them: `result.codes` of a Dask
array is a Dask array, and that of files is a `LazyCodes`. The learning loop makes them with
`codes_of_result`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.coders.calling import run_coder
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals
from manifold_dl.engines.blocked_weights import BlockedWeights
from manifold_dl.engines.files import RowFiles
from manifold_dl.engines.npy_file import mapped_array
from manifold_dl.engines.protocol import partition
from manifold_dl.engines.threads import Threads, using_engine

FILES = ("indptr", "indices", "values")  # of a folder with codes, each a .npy file


def codes_of_result(
    signals: BlockedSignals,
    weights: BlockedWeights | None,
    coder: Any,
    dictionary: np.ndarray,
    codes: BlockedCodes,
    is_lost: bool,
) -> Any:
    """What a result shows as its codes.

    Parameters
    ----------
    signals : BlockedSignals
    weights : BlockedWeights or None
    coder : SparseCoder
    dictionary : m×d array
    codes : BlockedCodes
        Those codes, on the engine.
    is_lost : bool
        Whether the engine is lost.

    Returns
    -------
    csc_array, Dask array or LazyCodes
        An array in memory gets codes in memory; all others are lazy.
    """
    if isinstance(signals.source, np.ndarray):
        if not is_lost:
            return codes.compute()
        with using_engine(Threads()):
            own = None if weights is None else weights.source
            return run_coder(coder, signals.source, dictionary, weights=own)
    if isinstance(signals.source, RowFiles):
        return LazyCodes(signals.source, coder, dictionary, weights)
    from manifold_dl.engines.dask_codes import encoded

    encode = partial(encode_columns, coder, dictionary)
    return encoded(signals.source, encode, len(dictionary.T), None if weights is None else weights.source)


def encode_columns(
    coder: Any, dictionary: np.ndarray, signals: np.ndarray, weights: np.ndarray | None = None
) -> scipy.sparse.csc_array:
    """The codes of some signals, on the thread of the caller."""
    with using_engine(Threads(1)):
        return run_coder(coder, signals, dictionary, threads=1, weights=weights)


def encode_incomplete(coder: Any, dictionary: np.ndarray, signals: np.ndarray) -> scipy.sparse.csc_array:
    """The same, where NaN marks missing entries."""
    return encode_columns(coder, dictionary, signals, ~np.isnan(signals))


class CodesAhead:
    """The next codes, should no atom be replaced: a cluster computes them in the round of the error.

    Parameters
    ----------
    signals : m×n array or BlockedSignals
    """

    def __init__(self, signals: Any) -> None:
        self._is_remote = isinstance(signals, BlockedSignals) and signals.engine.is_remote
        self._dictionary: np.ndarray | None = None
        self.codes: BlockedCodes | None = None

    def begin(
        self, dictionary: np.ndarray, encode: Callable[[np.ndarray, Any], BlockedCodes]
    ) -> BlockedCodes | None:
        """The codes of a dictionary, to be computed in the next round; None where rounds cost nothing."""
        if self._is_remote:
            self.codes, self._dictionary = encode(dictionary, None), dictionary
        return self.codes

    def are_of(self, dictionary: np.ndarray) -> bool:
        """Whether the codes are those of this dictionary."""
        return self._dictionary is not None and np.array_equal(self._dictionary, dictionary)


class LazyCodes:
    """The codes of signals in files, computed block by block when they are asked for.

    Parameters
    ----------
    source : RowFiles
    coder : SparseCoder
    dictionary : m×d array
    weights : BlockedWeights, optional

    Attributes
    ----------
    shape : (d, n)
    dtype : dtype
    """

    ndim = 2

    def __init__(
        self, source: RowFiles, coder: Any, dictionary: np.ndarray, weights: BlockedWeights | None = None
    ) -> None:
        self.source, self.coder, self.dictionary, self.weights = source, coder, dictionary, weights
        self.shape, self.dtype = (dictionary.shape[1], source.shape[1]), source.dtype

    def __repr__(self) -> str:
        """Its shape, and that nothing has been computed."""
        return f"LazyCodes({self.shape[0]}×{self.shape[1]}, {self.dtype}: compute() or save(folder))"

    def blocks(self) -> Iterator[scipy.sparse.csc_array]:
        """The codes of one block of signals after the other.

        Yields
        ------
        csc_array
            d rows, and a column for every signal of the block.
        """
        for part in partition(self.shape[1]):
            own = None if self.weights is None else self.weights.rows(part).T
            yield run_coder(self.coder, self.source.rows(part).T, self.dictionary, weights=own)

    def compute(self) -> scipy.sparse.csc_array:
        """All codes, in memory.

        Returns
        -------
        csc_array
        """
        return scipy.sparse.csc_array(scipy.sparse.hstack(list(self.blocks()), format="csc"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the codes into a folder: `values.npy`, `indices.npy` and `indptr.npy` of the d×n csc_array.

        They are written block by block, and can be mapped into memory again.

        Parameters
        ----------
        path : path
            A folder, which is made.
        """
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "indptr.npy").unlink(missing_ok=True)  # written last: without it the others are incomplete
        types = {"values": self.dtype, "indices": np.dtype(np.int32), "indptr": np.dtype(np.int64)}
        count = 0
        with ExitStack() as stack:
            files = [stack.enter_context(open(folder / f"{name}.tmp", "wb")) for name in types]
            np.zeros(1, np.int64).tofile(files[2])
            for block in self.blocks():
                parts = block.data, block.indices.astype(np.int32), block.indptr[1:].astype(np.int64) + count
                for part, file in zip(parts, files, strict=True):
                    part.tofile(file)
                count += block.nnz
        for name, dtype in types.items():
            _add_header(folder, name, dtype, self.shape[1] + 1 if name == "indptr" else count)


def load_codes(path: str | os.PathLike[str], n_atoms: int) -> scipy.sparse.csc_array:
    """What `LazyCodes.save` wrote, as a sparse array.

    Parameters
    ----------
    path : path
        The folder.
    n_atoms : int
        d.

    Returns
    -------
    csc_array

    Raises
    ------
    ValueError
        If the files are damaged, or lead to other atoms.
    """
    indptr, indices, values = (mapped_array(Path(path) / f"{name}.npy") for name in FILES)
    try:
        if any(array.dtype.kind != "i" for array in (indptr, indices)):
            raise ValueError("its indices are no whole numbers")
        codes = scipy.sparse.csc_array((values, indices, indptr), shape=(n_atoms, len(indptr) - 1))
        codes.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the codes in {path} are damaged, or not for {n_atoms} atoms: {error}.") from None
    return codes


def _add_header(folder: Path, name: str, dtype: np.dtype, count: int) -> None:
    """Make a .npy file of raw numbers."""
    raw = folder / f"{name}.tmp"
    array = np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=dtype, shape=(count,))
    if count:
        array[:] = np.memmap(raw, dtype, "r")
    array.flush()
    raw.unlink()
