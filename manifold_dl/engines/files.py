"""Signals in files: `.npy`, folders of them, and zarr arrays, mapped into memory and read block by block.

Files with signals in rows are used where they are: the operating system reads the blocks that are used, some
blocks ahead of the computation (`read_ahead.py`), and drops them where memory is short. Anything else
(signals in columns, compressed chunks, other types of numbers) is first written as rows into a scratch file.
What is computed from the signals goes to scratch files, too, where it exceeds the memory of the engine
(`scratch.py`).
"""

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from manifold_dl._missing import WEIGHTS
from manifold_dl._validation import as_matrix
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.npy_file import mapped_array
from manifold_dl.engines.protocol import Engine, partition, storage_of
from manifold_dl.engines.read_ahead import Piece, ReadAhead, require_whole
from manifold_dl.engines.scratch import Budget, MappedBlocks, scratch_error, writing_scratch
from manifold_dl.engines.threads import Threads
from manifold_dl.engines.worker import Lazy

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class RowFiles:
    """Matrices with a signal in every row, mapped from files, one after the other.

    Parameters
    ----------
    arrays : list of memmap
        Of equal numbers of columns and of one type, float32 or float64.
    paths : list of path
        Their files.
    name : str, optional
        What messages call the signals; by default the file, or the folder.
    """

    def __init__(self, arrays: list[np.memmap], paths: list[Path], name: str | None = None) -> None:
        self.arrays, self.paths = arrays, paths
        self.name = name or str(paths[0] if len(paths) == 1 else paths[0].parent)
        self.first = np.cumsum([0, *(len(array) for array in arrays)])
        self.shape = int(arrays[0].shape[1]), int(self.first[-1])  # m, n
        self.dtype = arrays[0].dtype

    def rows(self, part: slice) -> np.ndarray:
        """Some signals, in rows: a view of the mapped file, or a copy where they are in two files."""
        require_whole(self.pieces(part))
        pieces = [np.asarray(self.arrays[number][rows]) for number, rows in self._files_of(part)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def pieces(self, part: slice) -> list[Piece]:
        """Where some signals are in their files."""
        found = []
        for number, rows in self._files_of(part):
            array, size = self.arrays[number], self.shape[0] * self.dtype.itemsize
            start = array.offset + rows.start * size
            length = (rows.stop - rows.start) * size
            found.append(Piece(self.paths[number], start, length, array.base))  # type: ignore[arg-type]
        return found

    def _files_of(self, part: slice) -> list[tuple[int, slice]]:
        """The files that hold some signals, and which of their rows these are."""
        found = []
        for number, (array, first) in enumerate(zip(self.arrays, self.first[:-1].tolist(), strict=True)):
            if first < part.stop and first + len(array) > part.start:
                rows = slice(max(part.start - first, 0), min(part.stop - first, len(array)))
                found.append((number, rows))
        return found

    def open(self, engine: Engine) -> BlockedSignals:
        """The signals on an engine; workers of a cluster read the files themselves."""
        parts, items = partition(self.shape[1]), None
        if isinstance(engine, Threads):
            views = [self.rows(part) for part in parts]
            ahead = ReadAhead([self.pieces(part) for part in parts])
            items = engine.open(MappedBlocks(views, Budget(engine.memory), engine.scratch, ahead))
        else:
            items = engine.open([FileBlock(self.paths, part) for part in parts])
        return BlockedSignals(engine, items, self.shape, self.dtype, self, self.name)


class FileBlock(Lazy):
    """A block of signals that a worker of a cluster reads from files that it can see, too."""

    def __init__(self, paths: list[Path], part: slice) -> None:
        self.paths, self.part = [path.absolute() for path in paths], part

    def load(self) -> np.ndarray:
        """The signals, in rows."""
        return np.array(RowFiles([map_matrix(path) for path in self.paths], self.paths).rows(self.part))


def open_path(path: str | os.PathLike[str], engine: Engine, finite: bool = True) -> Any:
    """Signals of a `.npy` file, a folder of them or a zarr array; in memory if they fit.

    Parameters
    ----------
    path : path
        A matrix with a signal in every row; the files of a folder are read in the order of their names.
    engine : Engine
    finite : bool
        Whether NaN is refused in signals that are read into memory.

    Returns
    -------
    m×n array or BlockedSignals, not checked yet
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if path.suffix == ".zarr":
        return open_distant_array(_open_zarr(path).T, engine, finite)
    paths = sorted(path.glob("*.npy")) if path.is_dir() else [path]
    if not paths:
        raise FileNotFoundError(f"there is no .npy file in {path}.")
    arrays = [map_matrix(one) for one in paths]
    lengths, kinds = {array.shape[1] for array in arrays}, {str(array.dtype) for array in arrays}
    if len(lengths) > 1 or len(kinds) > 1:
        raise ValueError(
            f"the files in {path} have rows of lengths {sorted(lengths)} and types {sorted(kinds)}: "
            "one length and one type is needed."
        )
    fits = sum(array.nbytes for array in arrays) <= storage_of(engine).memory
    if fits:  # rows and columns in messages are those of the file
        rows = [as_matrix(array, str(one), finite, WEIGHTS) for array, one in zip(arrays, paths, strict=True)]
        return np.asfortranarray(np.concatenate(rows).T)
    if arrays[0].dtype in FLOATS and all(array.flags.c_contiguous for array in arrays):
        return RowFiles(arrays, paths).open(engine)
    starts = np.cumsum([0, *(len(array) for array in arrays)])
    whole = RowFiles(arrays, paths)
    return _copied(whole.rows, (int(starts[-1]), lengths.pop()), arrays[0].dtype, engine, str(path))


def open_distant_array(array: Any, engine: Engine, finite: bool = True) -> Any:
    """An m×n array that is mapped or fetched in pieces: memory-mapped, of zarr, of Dask.

    Parameters
    ----------
    array : array_like
        With shape, dtype and slices.
    engine : Engine
    finite : bool
        Whether NaN is refused in signals that are read into memory.

    Returns
    -------
    m×n array or BlockedSignals, not checked yet
    """
    m, n = array.shape
    if m * n * array.dtype.itemsize <= storage_of(engine).memory:
        return np.asfortranarray(as_matrix(np.asarray(array), "signals", finite, WEIGHTS))
    return _copied(lambda part: np.asarray(array[:, part]).T, (n, m), array.dtype, engine, "signals")


def open_memmap(array: np.memmap, engine: Engine, finite: bool = True) -> Any:
    """A memory-mapped m×n array; used where it is, if a signal is in one piece of its file."""
    if engine.is_remote:
        raise ValueError(
            "these signals are mapped into the memory of this process, and the workers of a cluster have "
            "their own: give the path of the file, or a Dask array."
        )
    rows, root = array.T, array
    while isinstance(root.base, np.memmap):
        root = root.base
    is_in_place = rows.flags.c_contiguous and rows.dtype in FLOATS
    if array.nbytes <= storage_of(engine).memory or not is_in_place or root.filename is None:
        return open_distant_array(array, engine, finite)
    offset = root.offset + rows.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    # Mapped once more so that its pages may be written to, which they are not: kernels are compiled for that.
    again = np.memmap(root.filename, rows.dtype, "c", offset, rows.shape)
    return RowFiles([again], [Path(root.filename)]).open(engine)


def map_matrix(path: Path) -> np.memmap:
    """A matrix of a `.npy` file, mapped into memory. Writing to its pages does not change the file."""
    array = mapped_array(path, "c")
    if not isinstance(array, np.memmap) or array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{path} holds no matrix with a signal in every row.")
    return array


def _open_zarr(path: Path) -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError(f"{path} needs the package zarr: pip install zarr.") from None
    try:
        rows = zarr.open_array(path, mode="r")
    except Exception as error:  # a damaged description of an array can make zarr raise anything
        raise ValueError(f"{path} is no zarr array of numbers, or a damaged one: {error}") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"{path} holds no matrix with a signal in every row.")
    return _Transposable(rows, path)


class _Transposable:
    """An n×m zarr array, read as the m×n matrix of signals: zarr does not transpose."""

    def __init__(self, rows: Any, path: Path) -> None:
        self._rows, self.dtype, self.shape = rows, rows.dtype, rows.shape[::-1]
        self._path = path
        self.T = self

    def __getitem__(self, index: tuple[slice, slice]) -> np.ndarray:
        try:
            return self._rows[index[1], index[0]].T
        except Exception as error:  # as above: of a damaged chunk
            raise ValueError(f"{self._path} is damaged: {error}") from None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:, :]


def _copied(
    read: Callable[[slice], np.ndarray], shape: tuple[int, int], dtype: Any, engine: Engine, name: str
) -> BlockedSignals:
    """Signals written as rows into a scratch file, which is removed when they are not needed any more."""
    if engine.is_remote:
        raise ValueError(
            f"these signals would have to be copied to rows first, which {engine!r} does not do: give a "
            "Dask array, for example of dask.array.from_zarr, or .npy files with a signal in every row."
        )
    kind = dtype if np.dtype(dtype) in FLOATS else np.dtype(np.float64)
    if np.dtype(dtype).kind not in "fiub":
        raise TypeError(f"{name} has dtype {dtype}; only real numbers are accepted.")
    scratch = storage_of(engine).scratch
    with writing_scratch(scratch):
        folder = tempfile.mkdtemp(prefix="manifold_dl-", dir=scratch)
    try:
        path = _written(read, shape, np.dtype(kind), Path(folder))
        source = RowFiles([map_matrix(path)], [path], name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    return source.open(engine)


def _written(
    read: Callable[[slice], np.ndarray], shape: tuple[int, int], dtype: np.dtype, folder: Path
) -> Path:
    """A `.npy` file with these rows. Written, not mapped: on a full disk a mapped page kills the process."""
    size, left = math.prod(shape) * dtype.itemsize, shutil.disk_usage(folder).free
    if size > left:
        sizes = f"{size / 2**20:,.0f} MiB are needed and {left / 2**20:,.0f} are left"
        raise scratch_error(folder.parent, sizes)
    path = folder / "rows.npy"
    with open(path, "wb") as file:
        description = np.lib.format.dtype_to_descr(dtype)
        header = {"descr": description, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in partition(shape[0]):
            rows = np.ascontiguousarray(read(part), dtype)
            with writing_scratch(folder.parent):
                file.write(rows.data)
        with writing_scratch(folder.parent):
            file.flush()
    return path
