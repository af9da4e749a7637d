"""Errors of the commands: every exception becomes one sentence on stderr and an exit code, without traceback.

`guarded` wraps every command; `needs_images` names the extra to install where a package is missing.
"""

import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import typer

from manifold_dl.components.errors import ComponentError

PROGRAM = "manifold-dl"


class Failure(Exception):
    """An error that the input did not cause: exit code 1."""


class Stopped(BaseException):
    """Ctrl-C, for commands: `learn_dictionary` handles KeyboardInterrupt and codes all signals once more."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with every exception turned into a sentence on stderr and an exit code.

    Parameters
    ----------
    command : callable
        The function of a command.

    Returns
    -------
    callable
        With the same signature. It raises `typer.Exit` and, with ``MANIFOLD_DL_TRACEBACK`` set in the
        environment, the exceptions themselves.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _stop_at_once():
                command(*args, **kwargs)
        except (KeyboardInterrupt, Stopped):
            print_message("stopped; nothing was written.")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # the reader of the output has closed it, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except Exception as error:
            if isinstance(error, typer.Exit) or os.environ.get("MANIFOLD_DL_TRACEBACK"):
                raise
            code, sentence = _explain(error)
            print_message(sentence)
            raise typer.Exit(code) from None

    return run


def print_message(sentence: object) -> None:
    """Print one line on stderr that begins with the name of the program.

    Parameters
    ----------
    sentence : str or Exception
        Line breaks in it become spaces.
    """
    print(f"{PROGRAM}: {' '.join(str(sentence).split())}", file=sys.stderr)


@contextlib.contextmanager
def needs_images() -> Iterator[None]:
    """In the block, a missing scikit-image, Pillow or tifffile becomes a `Failure` that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("skimage", "PIL", "tifffile"):
            raise
        raise Failure('pictures need scikit-image: pip install "manifold-dl[images]".') from None


@contextlib.contextmanager
def _stop_at_once() -> Iterator[None]:
    """In the block, Ctrl-C raises `Stopped`, which no `except Exception` or KeyboardInterrupt catches."""

    def stop(*_: object) -> None:
        raise Stopped

    # Only the main thread may handle signals; and a script in the background ignores Ctrl-C.
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _explain(error: Exception) -> tuple[int, object]:
    """Return the exit code and the sentence of an exception."""
    if isinstance(error, (Failure, ComponentError)):
        return 1, error
    if isinstance(error, MemoryError):
        return 1, f"there is not enough memory for this. {error}"
    if isinstance(error, OSError) and error.strerror:
        return 2, f"{error.filename or 'the file'}: {error.strerror}."
    if isinstance(error, (ValueError, TypeError, OSError)):
        return 2, error
    text = f"{type(error).__name__}: {error}"
    return 1, f"{text}. This is a bug; MANIFOLD_DL_TRACEBACK=1 shows the traceback."
