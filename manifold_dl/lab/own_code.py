"""A regularizer that the user types: text → function, with the check of its derivatives beside it.

THE ONE PLACE OF THE PACKAGE WHERE TEXT BECOMES CODE. The text comes from the page that the user has opened on
their own machine, and runs as the user; no address, file or setting ever leads here, and ``--no-code`` turns
it off. The text defines ``R(D)``, written with autograd's `np`, and may define ``gradient(D)`` and
``hessian(D, E)``.
"""

import io
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from traceback import extract_tb
from types import FrameType
from typing import Any

import autograd.numpy as anp
import numpy as np

from manifold_dl.diagnostics import check_regularizer
from manifold_dl.diagnostics.report import CheckFailed
from manifold_dl.diagnostics.taylor import TaylorReport, taylor_report
from manifold_dl.regularizers import differentiable
from manifold_dl.regularizers.protocol import has_member

EXAMPLE = """def R(D):
    return np.sum((D.T @ D) ** 4)
"""
FILE = "<your regularizer>"
LIMIT = 2.0  # seconds of one call
LONGEST = 5000  # characters
MOST_PRINTED = 500  # characters
_TOO_SLOW = "The text ran for more than {:g} s: is there a loop without an end?"


class TooSlow(Exception):
    """A call took longer than `LIMIT`."""


@dataclass(frozen=True, eq=False)
class Typed:
    """What became of the text.

    Attributes
    ----------
    regularizer : object or None
        With the methods `value`, and perhaps `gradient` and `hessian`; None if it cannot be used.
    verdict : str
        A sentence.
    slope : float or None
        That of the Taylor remainder, 2 for a right gradient; None where it could not be measured.
    taylor : TaylorReport or None
        The remainders behind it.
    is_broken : bool
        Whether the text has a gradient that is wrong, while the one of autograd is right.
    printed : str
        The first characters that it printed.
    """

    regularizer: Any
    verdict: str
    slope: float | None = None
    taylor: TaylorReport | None = None
    is_broken: bool = False
    printed: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it passed the check."""
        return self.regularizer is not None


class TypedRegularizer:
    """The functions of the text as a regularizer; what they leave out is supplied by autograd.

    Parameters
    ----------
    functions : dict
        ``R``, and perhaps ``gradient`` and ``hessian``.
    text : str
        The text itself, for the code that the page shows.
    printed : StringIO, optional
        Where the functions print.
    """

    def __init__(self, functions: dict[str, Callable], text: str, printed: io.StringIO | None = None) -> None:
        self.text, self.printed = text, printed or io.StringIO()
        self.value = limited(functions["R"])
        for name in ("gradient", "hessian"):
            if name in functions:
                setattr(self, name, limited(functions[name]))

    def __repr__(self) -> str:
        return "R"


def compile_text(text: str) -> TypedRegularizer:
    """Execute the text, and return the regularizer that it defines.

    Parameters
    ----------
    text : str
        Python. `np` is autograd's NumPy.

    Returns
    -------
    TypedRegularizer

    Raises
    ------
    ValueError
        If it is no Python, raises an exception, or defines no function R.

    Examples
    --------
    >>> float(compile_text("def R(D): return np.sum(D**2)").value(np.eye(2)))
    2.0
    >>> compile_text("def R(D) return 1")
    Traceback (most recent call last):
    ...
    ValueError: Line 1: expected ':'.
    >>> compile_text("import nump")
    Traceback (most recent call last):
    ...
    ValueError: Line 1: ModuleNotFoundError: No module named 'nump'
    """
    if len(text) > LONGEST:
        raise ValueError(f"The text has {len(text):,} characters; at most {LONGEST:,} are read.")
    printed = io.StringIO()
    namespace: dict[str, Any] = {"np": anp, "__name__": "your_regularizer", "print": _printer(printed)}
    try:
        code = compile(text, FILE, "exec")
        limited(lambda: exec(code, namespace))()
    except SyntaxError as error:
        raise ValueError(f"Line {error.lineno or 1}: {error.msg}.") from None
    except BaseException as error:  # SystemExit and KeyboardInterrupt of the text would end the page
        raise ValueError(_words(error)) from None
    functions = {
        name: namespace[name] for name in ("R", "gradient", "hessian") if callable(namespace.get(name))
    }
    if "R" not in functions:
        raise ValueError("The text defines no function R: begin with def R(D):")
    return TypedRegularizer(functions, text, printed)


def _printer(printed: io.StringIO) -> Callable:
    """What `print` is in the text: the page shows the beginning, and a run prints nothing to a terminal."""

    def print_to_page(*values: Any, **options: Any) -> None:
        if printed.tell() < MOST_PRINTED:
            print(*values, **{**options, "file": printed})

    return print_to_page


def check_text(text: str, m: int, d: int) -> Typed:
    """Compile the text and check it: the slope of the Taylor remainder, and a verdict.

    Parameters
    ----------
    text : str
    m, d : int
        The size of the dictionaries that it will be given.

    Returns
    -------
    Typed

    Examples
    --------
    >>> check_text("def R(D): return np.sum(D**4)", 4, 6).verdict
    'The gradient is right: the first-order remainder falls with slope 2.00, and 2 was expected.'
    >>> wrong = "def R(D): return np.sum(D**4)" + chr(10) + "def gradient(D): return 3 * D**3"
    >>> check_text(wrong, 4, 6).verdict
    'The gradient is wrong: the first-order remainder falls with slope 1.00, and 2 was expected.'
    """
    found: list[Typed] = []
    # In a thread of its own: what sleeps, or catches `TooSlow`, is left behind and blocks nothing.
    thread = threading.Thread(target=lambda: found.append(_check(text, m, d)), daemon=True)
    thread.start()
    thread.join(1.25 * LIMIT)
    return found[0] if found else Typed(None, _TOO_SLOW.format(LIMIT))


@np.errstate(all="ignore")  # a value that is not finite is a verdict, not a warning
def _check(text: str, m: int, d: int) -> Typed:
    regularizer = taylor = None
    try:
        regularizer = compile_text(text)
        taylor = limited(_taylor)(regularizer, m, d)
        if not taylor:
            has_gradient = has_member(regularizer, "gradient")
            is_broken = has_gradient and bool(limited(_taylor)(_without(regularizer), m, d))
            verdict = _verdict(regularizer, taylor)
            return Typed(None, verdict, taylor.slope, taylor, is_broken, _printed(regularizer))
        limited(check_regularizer)(regularizer, m=m, n_atoms=d)
    except BaseException as error:  # whatever the functions of the text raise
        slope = None if taylor is None else taylor.slope
        return Typed(None, _words(error), slope, taylor, printed=_printed(regularizer))
    return Typed(regularizer, taylor.verdict, taylor.slope, taylor, printed=_printed(regularizer))


def _printed(regularizer: TypedRegularizer | None) -> str:
    return "" if regularizer is None else regularizer.printed.getvalue()[:MOST_PRINTED]


def _without(regularizer: TypedRegularizer) -> TypedRegularizer:
    """The same without the derivatives that it brings: autograd supplies them."""
    return TypedRegularizer({"R": regularizer.value}, regularizer.text)


def _words(error: BaseException) -> str:
    """What went wrong: of the text with the line, of a check in its own words."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == FILE]
    if not lines or isinstance(error, TooSlow):
        words = str(error) or type(error).__name__
        return words.replace("TypedRegularizer.value", "R").replace("TypedRegularizer.", "").replace(
            "TypedRegularizer", "R"
        )  # fmt: skip
    return f"Line {lines[-1]}: {type(error).__name__}" + (f": {error}" if str(error) else ".")


def _verdict(regularizer: TypedRegularizer, taylor: TaylorReport) -> str:
    """What a wrong slope means: autograd makes no errors, but at a kink there is no gradient."""
    if has_member(regularizer, "gradient") or not np.isfinite(taylor.slope):
        return taylor.verdict
    slope = f"the first-order remainder falls with slope {taylor.slope:.2f}, and 2 was expected"
    return f"R is not smooth, or not written with np alone: {slope}."


def limited(function: Callable, seconds: float | None = None) -> Callable:
    """The function, ended by `TooSlow` where a line of the user's text begins after the time is over.

    Parameters
    ----------
    function : callable
    seconds : float, optional
        `LIMIT` by default.

    Returns
    -------
    callable
    """

    def call(*arguments: Any, **options: Any) -> Any:
        before, end = sys.gettrace(), time.monotonic() + (LIMIT if seconds is None else seconds)

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            if frame.f_code.co_filename != FILE:
                return None  # lines of other files run at full speed
            frame.f_trace_opcodes = True  # an endless loop on one line has no events of lines
            if time.monotonic() > end:
                raise TooSlow(_TOO_SLOW.format(LIMIT))
            return trace

        sys.settrace(trace)
        try:
            return function(*arguments, **options)
        finally:
            sys.settrace(before)

    return call


def _taylor(regularizer: Any, m: int, d: int) -> TaylorReport:
    """Measure the remainder of the gradient at a random dictionary of unit atoms, in a random direction."""
    rng = np.random.default_rng(0)
    D, U = rng.standard_normal((2, m, d))
    D, U = D / np.linalg.norm(D, axis=0), U / np.linalg.norm(U)
    value = regularizer.value(D)
    if np.ndim(value) != 0:
        raise CheckFailed(f"R returned an array of shape {np.shape(value)}, and one number is needed.")
    if has_member(regularizer, "gradient") and np.shape(given := regularizer.gradient(D)) != D.shape:
        shapes = f"an array of shape {np.shape(given)}, and one of shape {D.shape}"
        raise CheckFailed(f"gradient returned {shapes} is needed.")
    penalty = differentiable(regularizer)
    slope = float(np.vdot(penalty.gradient(D), U))
    return taylor_report("gradient", lambda t: penalty.value(D + t * U), [slope])
