"""Files that are whole or absent, and a lock: what keeps a folder of results in order, for `study.run`."""

import os
import secrets
from contextlib import contextmanager


@contextmanager
def whole_file(path):
    """A file open for writing that gets its name only when it is complete, and on the disk."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def alone_in(folder, name):
    """A block that no other process is in at the same time, with the same folder and name."""
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
        with open(taken, "w", encoding="utf-8") as file:  # all the time: Windows deletes no open file
            file.write(str(os.getpid()))
            file.flush()
            yield
    finally:
        lock.unlink(missing_ok=True)


def _is_stale(lock):
    """Whether a lock was left behind by a process that is gone."""
    if os.name == "nt":  # where asking with os.kill, as below, would stop the process
        try:
            lock.unlink(missing_ok=True)
        except PermissionError:
            return False
        return True
    try:
        pid = int(_owner(lock))
        if pid != os.getpid():  # in a container every run may have the same number
            os.kill(pid, 0)  # sends nothing, and fails if there is nobody
            return False
    except (ValueError, PermissionError):  # not written yet, or somebody else's
        return False
    except (ProcessLookupError, OverflowError):
        pass
    return True


def _owner(lock):
    try:
        return lock.read_text(encoding="utf-8", errors="replace")
    except OSError:  # there is none, or it cannot be read
        return "?"
