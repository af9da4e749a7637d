"""Reading a file before its signals are needed: advice to the operating system on what is needed next.

A mapped file is read where it is accessed, 128 kB at a time, and the thread that accesses it waits. In a pass
over the signals the next blocks are known: `MappedBlocks` (`scratch.py`) calls `ReadAhead` with every block
that is used, and names the rows of a mini-batch before it copies them.
"""

import mmap
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

AHEAD = 8  # blocks: 16 MB of 8×8 patches in single precision, read while a thread computes with one block


class Piece(NamedTuple):
    """Neighbouring bytes of a file."""

    path: Path
    start: int
    size: int
    mapping: mmap.mmap  # of the file


def require_whole(pieces: Sequence[Piece]) -> None:
    """Refuse bytes that were cut off their file after it was mapped: to read them would kill the process."""
    for piece in pieces:
        size = piece.mapping.size()  # of the file as it is now
        if size < piece.start + piece.size:
            raise OSError(
                f"{piece.path} has become shorter while it was read: byte {piece.start + piece.size:,} is "
                f"needed, and {size:,} are left. Do not change a file while a dictionary is learned from it."
            )


class ReadAhead:
    """The bytes of every block, which the operating system may read in advance.

    Parameters
    ----------
    pieces : list of list of Piece
        Where the signals of each block are.
    """

    def __init__(self, pieces: list[list[Piece]]) -> None:
        self.pieces = pieces
        self._files: dict[Path, int] = {}
        if hasattr(os, "posix_fadvise"):
            for path in {piece.path for block in pieces for piece in block}:
                self._files[path] = os.open(path, os.O_RDONLY)
        weakref.finalize(self, _close, list(self._files.values()))

    def __call__(self, block: int) -> None:
        """Announce the block that is `AHEAD` blocks later; with block 0 those before it, too."""
        for number in range(block + (1 if block == 0 else AHEAD), block + AHEAD + 1):
            if number < len(self.pieces):
                self.advise(number, 0, sum(piece.size for piece in self.pieces[number]))

    def advise(self, block: int, first: int, size: int) -> None:
        """Announce some bytes of a block."""
        for path, start, length, _ in self.pieces[block] if self._files else ():
            begin, end = max(first, 0), min(first + size, length)  # those that are in this piece
            if begin < end:
                os.posix_fadvise(self._files[path], start + begin, end - begin, os.POSIX_FADV_WILLNEED)
            first -= length


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)
