"""Files that are complete or absent: written under another name first, then renamed.

`learning/archive.py`, the command line and the experiments write their files with these two functions. The
unfinished file is locked while its process lives. What a killed process left behind has no lock, and the next
process that writes to the same folder removes it.
"""

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed: no lock is needed
    fcntl = None  # type: ignore[assignment]  # where the system has no such module

PREFIX, SUFFIX = ".manifold_dl-", ".part"  # of unfinished files


def write_atomically(path: str | os.PathLike[str], writer: Callable[[IO[bytes]], Any]) -> None:
    """Write a file so that an interruption leaves either the old file or the new one, never a part of it.

    Parameters
    ----------
    path : path
        The file; its folder must exist.
    writer : callable
        Called with a binary file that is open for writing.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers.txt"
    ...     write_atomically(path, lambda file: file.write(b"1 2 3"))
    ...     path.read_text(), len(list(Path(folder).iterdir()))
    ('1 2 3', 1)
    """
    with atomic_file(path) as file:
        writer(file)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file open for writing that gets its name when the block ends, complete and on the disk.

    Where the block raises, a file of that name stays as it was. A file that is replaced keeps its
    permissions, and a symbolic link goes on to lead to it.

    Parameters
    ----------
    path : path
        The file; its folder must exist.

    Yields
    ------
    binary file

    Raises
    ------
    FileNotFoundError, IsADirectoryError, FileExistsError
        If there is no such folder, or if something else than a file has this name.
    """
    path = Path(os.path.realpath(path))
    permissions = _permissions(path)
    _remove_leftovers(path.parent)
    unfinished, file = _open_unfinished(path.parent)
    try:
        with file:
            if permissions is not None:  # before anything is in it that others may not read
                unfinished.chmod(permissions)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _permissions(path: Path) -> int | None:
    """Those of the file that is to be replaced, None if there is none yet; only a file may be."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to.")
    if not path.exists():
        return None
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if not path.is_file():
        raise FileExistsError(f"{path} is a pipe or a device, which no file takes the place of.")
    return stat.S_IMODE(path.stat().st_mode)


def _open_unfinished(folder: Path) -> tuple[Path, IO[bytes]]:
    """A new file, locked, so that other processes do not take it for a leftover."""
    while True:
        unfinished = folder / f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}"
        file = open(unfinished, "xb")  # noqa: SIM115 - the caller closes it
        if not _lock(file, wait=True) or unfinished.exists():
            return unfinished, file
        file.close()  # another process took it for a leftover before it was locked


@lru_cache(maxsize=256)
def _remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of processes that were killed; once for every folder of this process."""
    with suppress(OSError):  # nothing depends on it
        for leftover in folder.glob(f"{PREFIX}*{SUFFIX}"):
            if fcntl is None:
                leftover.unlink(missing_ok=True)
                continue
            with open(leftover, "rb") as file:
                if _lock(file, wait=False):
                    leftover.unlink(missing_ok=True)


def _lock(file: IO[bytes], wait: bool) -> bool:
    """Whether the file could be locked: not if another process has, and not on every network drive."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
