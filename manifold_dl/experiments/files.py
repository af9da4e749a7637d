"""Files in a folder of results: texts that are complete or absent, and a lock against two runs at once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manifold_dl._files import write_atomically


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, completely or not at all."""
    write_atomically(path, lambda file: file.write(text.encode("utf-8")))


@contextmanager
def exclusive(folder: Path, name: str) -> Iterator[None]:
    """Run a block that no other process runs at the same time for this folder and name.

    Parameters
    ----------
    folder : Path
        Where the lock file is kept.
    name : str
        The name of the study.

    Raises
    ------
    ValueError
        If another process holds the lock. A lock of a process that has ended is removed.
    """
    lock = folder / f".{name}.lock"
    if _is_stale(lock):
        lock.unlink(missing_ok=True)
    try:
        taken = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        raise ValueError(
            f"{lock} says that process {_owner(lock)} is measuring {name} in this folder; wait for it, "
            "choose another folder with --out, or delete that file if it is not true."
        ) from None
    try:
        with open(taken, "w", encoding="utf-8") as file:  # kept open: Windows does not delete an open file
            file.write(str(os.getpid()))
            file.flush()
            yield
    finally:
        lock.unlink(missing_ok=True)


def _is_stale(lock: Path) -> bool:
    """Whether a lock belongs to a process that has ended."""
    if os.name == "nt":  # where os.kill, as used below, would stop the process
        try:
            lock.unlink(missing_ok=True)
        except PermissionError:
            return False
        return True
    try:
        pid = int(_owner(lock))
        if pid != os.getpid():  # in a container every run may have the same number
            os.kill(pid, 0)  # sends nothing, and fails if there is no such process
            return False
    except (ValueError, PermissionError):  # not written yet, or the process of another user
        return False
    except (ProcessLookupError, OverflowError):
        pass
    return True


def _owner(lock: Path) -> str:
    try:
        return lock.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it does not exist, or it cannot be read
        return "?"
