"""What the commands share: options, sentences instead of tracebacks, and files that are whole or absent."""

import contextlib
import functools
import json
import math
import os
import secrets
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from manifold_dl.components.errors import ComponentError

PROGRAM = "manifold-dl"

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing output.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is random.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all processors by default.")]


def input_file(name, text):
    """An argument that names a file to read."""
    return typer.Argument(metavar=name, help=text, exists=True, dir_okay=False, readable=True)


class Failure(Exception):
    """Something that is not the fault of the input: exit code 1."""


def guarded(command):
    """The command with every exception turned into one sentence on stderr and an exit code."""

    @functools.wraps(command)
    def run(*args, **kwargs):
        try:
            with _prompt_stop():
                command(*args, **kwargs)
        except (KeyboardInterrupt, Stopped):
            say("stopped; nothing was written.")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # whoever read the output has read enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except Exception as error:
            if isinstance(error, typer.Exit) or os.environ.get("MANIFOLD_DL_TRACEBACK"):
                raise
            code, sentence = _explain(error)
            say(sentence)
            raise typer.Exit(code) from None

    return run


class Stopped(BaseException):
    """Ctrl-C. `learn_dictionary` ends politely at a KeyboardInterrupt, coding all signals once more first."""


@contextlib.contextmanager
def _prompt_stop():
    """Inside, Ctrl-C is `Stopped`, which nobody catches on the way."""

    def stop(*_):
        raise Stopped

    # Only the main thread may handle signals; and in the background of a script Ctrl-C is to be ignored.
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def say(sentence):
    """One line on stderr, under the program's name."""
    print(f"{PROGRAM}: {' '.join(str(sentence).split())}", file=sys.stderr)


def _explain(error):
    """Exit code and sentence of an exception."""
    if isinstance(error, Failure):
        return 1, error
    if isinstance(error, ComponentError):
        return 1, error
    if isinstance(error, MemoryError):
        return 1, f"there is not enough memory for this. {error}"
    if isinstance(error, OSError) and error.strerror:
        return 2, f"{error.filename or 'the file'}: {error.strerror}."
    if isinstance(error, (ValueError, TypeError, OSError)):
        return 2, error
    known = f"{type(error).__name__}: {error}"
    return 1, f"{known}. That should not happen; MANIFOLD_DL_TRACEBACK=1 shows where it did."


@contextlib.contextmanager
def needs_images():
    """Where scikit-image or Pillow is missing, say how to get them."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("skimage", "PIL", "tifffile"):
            raise
        raise Failure('pictures need scikit-image: pip install "manifold-dl[images]".') from None


def require_free(path, force, suffixes):
    """Refuse an output that cannot be written, before any work is done."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{path}: the name of this output ends with {' or '.join(suffixes)}.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ValueError(f"the folder {path.parent} does not let {path.name} be written.")
    if path.exists() and not force:
        raise ValueError(f"{path} exists already; --force overwrites it.")


@contextlib.contextmanager
def whole_file(path, force):
    """A file open for writing that gets its name only when it is complete."""
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists() and not force:
            raise ValueError(f"{path} has come into being meanwhile; --force overwrites it.")
        os.replace(part, path)
    except OSError as error:
        raise Failure(f"{path} could not be written: {error.strerror or error}.") from None
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def partial_result_saved(path):
    """Where a part of the learning fails, keep what was learned until then in a file beside `path`."""
    try:
        yield
    except Exception as error:
        partial = getattr(error, "partial", None)
        if partial is None or partial.n_iter == 0 or os.environ.get("MANIFOLD_DL_TRACEBACK"):
            raise
        from manifold_dl.learning import storage

        beside = path.with_name(f"{path.stem}.partial.npz")
        storage.save(partial, beside)
        raise Failure(f"{error} The best dictionary until then is in {beside}.") from error


def print_json(result):
    """One JSON object on stdout; what is not finite becomes null."""
    print(json.dumps(_plain(result), ensure_ascii=False))


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
