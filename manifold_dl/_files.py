"""Files that are complete or absent: written under another name first, then renamed.

`learning/archive.py`, the command line and the experiments write their files with these two functions.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


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

    Where the block raises, a file of that name stays as it was.

    Parameters
    ----------
    path : path
        The file; its folder must exist.

    Yields
    ------
    binary file
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to.")
    unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(unfinished, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
