"""States that do not fit into memory, in a scratch file: for signals that are read from a file.

A block's state is a group of arrays. `StoredStates` keep those of the first blocks in memory, up to a budget
that all maps of one data set share, and write the others to a file without a name, which vanishes with the
process. The signals themselves are mapped from their own file and are never written again.
"""

import io
import os
import pickle
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from manifold_dl.engines.read_ahead import ReadAhead, require_whole
from manifold_dl.kernels.memory import aligned


def scratch_error(folder: Any, reason: Any) -> OSError:
    """The error where scratch files cannot be written: no space, no permission, no folder any more."""
    return OSError(
        f"scratch files cannot be written to {folder}: {reason}. Name another folder with "
        "engines.Threads(scratch=...), or keep more in memory with Threads(memory=...)."
    )


@contextmanager
def writing_scratch(folder: Any) -> Iterator[None]:
    """Inside the block a failure to write says where (None: where `tempfile` does), and what can be done."""
    try:
        yield
    except OSError as error:
        raise scratch_error(folder or tempfile.gettempdir(), error.strerror) from error


class Budget:
    """Bytes that states may take in memory, shared by all maps of one data set."""

    def __init__(self, size: int) -> None:
        self._left, self._lock = size, Lock()

    def take(self, size: int) -> bool:
        """Whether so many bytes are left; then they are taken."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        """Return bytes."""
        with self._lock:
            self._left += size


class Stored(NamedTuple):
    """Where a state is in the file."""

    start: int
    head: int  # bytes of the structure; the arrays follow
    arrays: list[int]  # their bytes


class MappedBlocks(list):
    """The blocks of signals, as views of a mapped file: nothing is read before it is used.

    Parameters
    ----------
    views : list of array
    budget : Budget
        For the states that are computed from them.
    folder : path, optional
        For scratch files; that of `tempfile` by default.
    read_ahead : ReadAhead, optional
        Called with the number of every block that is used.
    """

    def __init__(
        self,
        views: list[np.ndarray],
        budget: Budget,
        folder: Any = None,
        read_ahead: ReadAhead | None = None,
    ) -> None:
        super().__init__(views)
        self.read_ahead = read_ahead
        self.numbers = {id(view): number for number, view in enumerate(views)}
        self.budget, self.folder = budget, folder

    def __getitem__(self, block: Any) -> Any:
        self.require_whole(block)
        if self.read_ahead is not None:
            self.read_ahead(block)
        return super().__getitem__(block)

    def alone(self, block: int) -> Any:
        """A block where the following ones may not be needed."""
        self.require_whole(block)
        return super().__getitem__(block)

    def require_whole(self, block: int) -> None:
        """Refuse a block that is not in its file any more."""
        if self.read_ahead is not None:
            require_whole(self.read_ahead.pieces[block])

    def advise(self, block: int, rows: np.ndarray) -> None:
        """Some rows of a block, in ascending order, will be needed."""
        if self.read_ahead is not None:
            view = super().__getitem__(block)
            for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
                self.read_ahead.advise(block, int(run[0]) * view[0].nbytes, len(run) * view[0].nbytes)

    def new_states(self) -> "StoredStates":
        """A list for the states of a map."""
        return StoredStates(self)


class StoredStates:
    """A list of states, one for each block, of which only so many are in memory as the budget allows."""

    def __init__(self, blocks: MappedBlocks) -> None:
        self._blocks, self._lock = blocks, Lock()
        self._states: list[Any] = [None] * len(blocks)
        self._files: list[Any] = []  # one, once it is needed
        self._end = 0
        self._taken = [0]
        weakref.finalize(self, _release, blocks.budget, self._taken, self._files)

    def __len__(self) -> int:
        return len(self._states)

    def new_states(self) -> "StoredStates":
        """A list for the states of another map."""
        return StoredStates(self._blocks)

    def __setitem__(self, block: int, state: Any) -> None:
        head, arrays = self._pickled(state)
        size = len(head) + sum(array.nbytes for array in arrays)
        if self._blocks.budget.take(size):
            with self._lock:
                self._taken[0] += size
            self._states[block] = state
        else:
            self._states[block] = self._write(head, arrays)

    def __getitem__(self, block: int) -> Any:
        return self._state(block, self._blocks.__getitem__)

    def alone(self, block: int) -> Any:
        """The state of a block where the following ones may not be needed."""
        return self._state(block, self._blocks.alone)

    def _state(self, block: int, signals_of: Callable[[int], np.ndarray]) -> Any:
        state = self._states[block]
        if isinstance(state, Stored):
            return self._read(state, signals_of)
        self._blocks.require_whole(block)  # it may have a view of the signals
        return state

    def __iter__(self) -> Any:
        return (self[block] for block in range(len(self)))

    def _pickled(self, state: Any) -> tuple[bytes, list[memoryview]]:
        """The structure of a state, and the memory of its arrays; signals are named, not copied."""
        buffers: list[pickle.PickleBuffer] = []
        stream = io.BytesIO()
        pickler = _Pickler(stream, protocol=5, buffer_callback=buffers.append)
        pickler.numbers = self._blocks.numbers
        pickler.dump(state)
        return stream.getvalue(), [buffer.raw() for buffer in buffers]

    def _write(self, head: bytes, arrays: list[memoryview]) -> Stored:
        folder = self._blocks.folder
        with self._lock:
            if not self._files:
                with writing_scratch(folder):
                    file = tempfile.TemporaryFile(prefix="manifold_dl-", dir=folder)  # noqa: SIM115
                self._files.append(file)
            start = self._end
            self._end += len(head) + sum(array.nbytes for array in arrays)
        position = start
        with writing_scratch(folder):
            for part in [memoryview(head), *arrays]:
                position += _write_all(self._files[0].fileno(), part, position)
        return Stored(start, len(head), [array.nbytes for array in arrays])

    def _read(self, stored: Stored, signals_of: Callable[[int], np.ndarray]) -> Any:
        file = self._files[0].fileno()
        head = os.pread(file, stored.head, stored.start)
        position, buffers = stored.start + stored.head, []
        for size in stored.arrays:
            array = aligned((size,), np.uint8)
            _read_all(file, array, position)
            buffers.append(array)
            position += size
        unpickler = _Unpickler(io.BytesIO(head), buffers=buffers)
        unpickler.signals_of = signals_of
        return unpickler.load()


class _Pickler(pickle.Pickler):
    numbers: dict[int, int]

    def persistent_id(self, value: Any) -> int | None:
        return self.numbers.get(id(value)) if type(value) is np.ndarray else None


class _Unpickler(pickle.Unpickler):
    signals_of: Callable[[int], np.ndarray]

    def persistent_load(self, number: int) -> np.ndarray:
        return self.signals_of(number)


def _release(budget: Budget, taken: list[int], files: list[Any]) -> None:
    budget.give_back(taken[0])
    for file in files:
        file.close()


def _write_all(file: int, part: memoryview, position: int) -> int:
    """Write all bytes of a part, which one call may not do."""
    done, part = 0, part.cast("B")
    while done < part.nbytes:
        done += os.pwrite(file, part[done:], position + done)
    return part.nbytes


def _read_all(file: int, array: np.ndarray, position: int) -> None:
    done, memory = 0, array.data
    while done < array.nbytes:
        count = os.preadv(file, [memory[done:]], position + done)
        if count == 0:
            raise OSError("a scratch file is shorter than what was written to it.")
        done += count
