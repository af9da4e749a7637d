"""The outputs of the commands: files that are complete or absent, and results as text or JSON."""

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from manifold_dl._files import atomic_file
from manifold_dl.cli.errors import Failure


def require_writable(path: Path, force: bool, suffixes: Sequence[str]) -> None:
    """Refuse an output that cannot be written, before anything is computed.

    Parameters
    ----------
    path : Path
        The file to write.
    force : bool
        Whether an existing file may be overwritten.
    suffixes : sequence of str
        What the name may end with.

    Raises
    ------
    ValueError
        If the file cannot be written, or exists and must not be overwritten.
    """
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{path}: the name of this output ends with {' or '.join(suffixes)}.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a pipe or a device, which no file takes the place of.")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ValueError(f"the folder {path.parent} is not writable: {path.name} cannot be written.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists already; --force overwrites it.")


def require_still_absent(path: Path, force: bool) -> None:
    """Refuse to overwrite a file that another program has written while the command ran.

    Parameters
    ----------
    path : Path
        The file to write.
    force : bool
        Whether an existing file may be overwritten.
    """
    if path.exists() and not force:
        raise ValueError(f"{path} was written by another program in the meantime; --force overwrites it.")


@contextlib.contextmanager
def output_file(path: Path, force: bool) -> Iterator[IO[bytes]]:
    """Open a file for writing that gets its name when it is complete.

    Parameters
    ----------
    path : Path
        The file to write.
    force : bool
        Whether an existing file may be overwritten.

    Yields
    ------
    binary file
    """
    try:
        with atomic_file(path) as file:
            yield file
            require_still_absent(path, force)
    except OSError as error:
        raise Failure(f"{path} could not be written: {error.strerror or error}.") from None


@contextlib.contextmanager
def partial_result_saved(path: Path) -> Iterator[None]:
    """If a component fails in the block, save the result so far in a file beside `path`.

    Parameters
    ----------
    path : Path
        The output that the command would have written: ``model.npz`` → ``model.partial.npz``.
    """
    try:
        yield
    except Exception as error:
        partial = vars(error).get("partial")  # the learning loop adds it to any exception
        if partial is None or partial.n_iter == 0 or os.environ.get("MANIFOLD_DL_TRACEBACK"):
            raise
        from manifold_dl.learning import storage

        beside = path.with_name(f"{path.stem}.partial.npz")
        storage.save(partial, beside)
        raise Failure(f"{error} The best dictionary until then is in {beside}.") from error


def report(result: Any, text: str | Callable[[], None], *, as_json: bool, quiet: bool) -> None:
    """Print the result of a command: as JSON, as text, or not at all.

    Parameters
    ----------
    result : dict or list
        What ``--json`` prints.
    text : str or callable
        What is printed otherwise, or a function that prints it.
    as_json, quiet : bool
        The options ``--json`` and ``--quiet``; the first takes precedence.
    """
    if as_json:
        print_json(result)
    elif not quiet:
        print(text) if isinstance(text, str) else text()


def print_json(result: Any) -> None:
    """Print a result as one line of JSON; numbers that are not finite become null.

    Parameters
    ----------
    result : dict or list
        Of numbers, strings, paths, dicts, lists and tuples.
    """
    print(json.dumps(_plain(result), ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
