"""The folder with compiled kernels: who may write to it, and what happens where nothing can be stored.

Numba stores machine code beside the sources, in the user's own cache folder or in `NUMBA_CACHE_DIR`, and what
it reads there is executed. `is_safe` refuses a folder that other users can write to, with `storing` a kernel
is used even where its machine code cannot be stored or read. `backend.py` calls both.
"""

import os
import pickle
import stat
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
REMEDY = "Set NUMBA_CACHE_DIR to a folder of your own with some space, and compile once: manifold-dl warm-up."


def is_safe(folder: Path) -> bool:
    """Whether machine code from this folder can be trusted as much as the sources of this package.

    It has to belong to this user, to root or to the owner of the sources. Write permissions of others that
    the sources do not have are taken away if the folder is this user's, and files of others are removed.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    bool
        False also where it cannot be found out.
    """
    if not hasattr(os, "getuid"):  # Windows, where the folder is in the user's profile
        return True
    try:
        own, sources = folder.stat(), SOURCES.stat()
        trusted = {os.getuid(), 0, sources.st_uid}
        excess = own.st_mode & ~sources.st_mode & OTHERS_MAY_WRITE
        if own.st_uid not in trusted or (excess and own.st_uid != os.getuid()):
            warn_once(f"the folder {folder} of compiled kernels can be written by others and is not used")
            return False
        if excess:
            folder.chmod(stat.S_IMODE(own.st_mode) & ~excess)
        if excess or not sources.st_mode & OTHERS_MAY_WRITE:
            _remove_files_of_others(folder, trusted)
    except FileNotFoundError:  # Numba will make it
        return True
    except OSError as error:
        warn_once(f"the folder {folder} of compiled kernels is not used ({error})")
        return False
    return True


def storing(dispatcher: Any) -> Any:
    """The dispatcher of Numba, which compiles in memory where machine code cannot be stored or read.

    A full disk makes Numba raise after a kernel has been compiled: then a second call finds it. A damaged
    file makes it raise before: then the files of the kernel are removed, and it is compiled.

    Parameters
    ----------
    dispatcher : Numba dispatcher

    Returns
    -------
    Numba dispatcher
        The same.
    """
    compile_kernel: Callable[[Any], Any] = dispatcher.compile

    @wraps(compile_kernel)
    def compile_or_go_on(signature: Any) -> Any:
        for attempt in range(2):
            try:
                return compile_kernel(signature)
            except OSError as error:
                warn_once(f"compiled kernels cannot be stored in {dispatcher.stats.cache_path} ({error})")
                if attempt:
                    _remove_files_of(dispatcher)
            except (EOFError, pickle.UnpicklingError):
                _remove_files_of(dispatcher)
        return compile_kernel(signature)

    dispatcher.compile = in_one_chunk(compile_or_go_on)
    return dispatcher


FRAME = 2**16  # words: the chunk for it has half a megabyte to spare


def in_one_chunk(compile_kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same function, with memory for all the Python frames below it in one piece.

    From version 3.11 on CPython keeps frames in chunks of 16 KB. A call at the end of a chunk allocates the
    next one and frees it on return, which took fifteen times as long as the call; the compiler's recursion
    is deep enough to have loops there, and they took a tenth of the first `learn_dictionary`. A function that
    seems to need a large frame gets a large chunk, and the calls below it share the rest.

    Parameters
    ----------
    compile_kernel : callable

    Returns
    -------
    callable
    """

    def call(signature: Any) -> Any:
        return compile_kernel(signature)

    call.__code__ = call.__code__.replace(co_stacksize=FRAME + 1)
    return call


_given: list[str] = []


def warn_once(problem: str) -> None:
    """Warn that every process will compile, and what to do: once, whatever else is a problem.

    Parameters
    ----------
    problem : str
    """
    if not _given:
        _given.append(problem)
        text = f"manifold_dl: {problem}. Every process compiles for itself, which takes seconds. {REMEDY}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _remove_files_of_others(folder: Path, trusted: set[int]) -> None:
    for file in [*folder.glob("*.nbi"), *folder.glob("*.nbc")]:
        if file.lstat().st_uid not in trusted:
            file.unlink(missing_ok=True)


def _remove_files_of(dispatcher: Any) -> None:
    function, folder = dispatcher.py_func, Path(dispatcher.stats.cache_path)
    with suppress(OSError):
        for file in folder.glob(f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}-*.nb?"):
            file.unlink(missing_ok=True)
