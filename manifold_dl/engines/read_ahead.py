"""Reading a file before its signals are needed: the operating system is told which blocks come next.

A mapped file is read where it is touched, 128 kB at a time, and the thread that touches it waits. A pass over
the signals knows better: `MappedBlocks` (`scratch.py`) calls `ReadAhead` with the block that will be needed
after those that the threads are working on.
"""

import os
import weakref
from pathlib import Path
from typing import NamedTuple

AHEAD = 8  # blocks: 16 MB of 8×8 patches in single precision, read while a thread computes with one block


class Piece(NamedTuple):
    """Neighbouring bytes of a file."""

    path: Path
    start: int
    size: int


class ReadAhead:
    """The bytes of every block, which the operating system may read in advance.

    Parameters
    ----------
    pieces : list of list of Piece
        Where the signals of each block stand.
    """

    def __init__(self, pieces: list[list[Piece]]) -> None:
        self.pieces = pieces
        self._files: dict[Path, int] = {}
        if hasattr(os, "posix_fadvise"):
            for path in {piece.path for block in pieces for piece in block}:
                self._files[path] = os.open(path, os.O_RDONLY)
        weakref.finalize(self, _close, list(self._files.values()))

    def __call__(self, block: int) -> None:
        """Tell the system that the block `AHEAD` blocks later will be needed; the first ones with block 0."""
        if self._files:
            for number in range(1 if block == 0 else AHEAD, AHEAD + 1):
                self._advise(block + number)

    def _advise(self, block: int) -> None:
        for path, start, size in self.pieces[block] if block < len(self.pieces) else ():
            os.posix_fadvise(self._files[path], start, size, os.POSIX_FADV_WILLNEED)


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)
