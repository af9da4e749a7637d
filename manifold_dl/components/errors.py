"""Faults in a part that the user chose: one exception that names the part, and where it is raised.

A coder, an update rule, an optimizer, a line searcher, a manifold, a regularizer, a schedule, an engine or a
callback may come from other authors. `naming` surrounds a call of such a part: what it raises becomes a
`ComponentError` that names the part and is chained to the original. `learn_dictionary` adds the iteration and
the best result so far.
"""

import dis
import re
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import FrameType, TracebackType
from typing import Any, NoReturn

__all__ = ["ComponentError", "UndefinedValue"]

# Functions of these modules are not the user's.
_LIBRARIES = sys.stdlib_module_names | {
    *("manifold_dl", "pymanopt", "numpy", "scipy", "autograd", "numba", "sklearn", "joblib", "matplotlib"),
    *("rich", "dask", "distributed"),
}
# Whatever failed, it may have been the engine, which runs all sums over signals; where an optimizer failed,
# also one of those that are called from inside its `run`.
_ENGINE = {"engine": ("open", "total", "states")}
_NESTED = {"line searcher": ("search",), "manifold": ("inner_product", "projection"), **_ENGINE}


class ComponentError(RuntimeError):
    """A part of a run raised an exception, or returned something that cannot be right.

    Parameters
    ----------
    component : object
        The part.
    role : str
        What the part is in the run: "optimizer", "regularizer", "coder", ...
    problem : str
        What it did, as the end of a sentence: "returned NaN".
    iteration : int, optional
        The outer iteration, counted from 0, if a learning loop was running.

    Attributes
    ----------
    partial : Result or None
        What was learned until then: the best dictionary so far with its codes and history, and the reason
        `Reason.FAILED`. None outside of a loop.

    Examples
    --------
    >>> print(ComponentError(sum, "regularizer", "returned NaN", iteration=3))
    The regularizer <built-in function sum> (builtin_function_or_method) returned NaN, in iteration 3.
    """

    def __init__(self, component: Any, role: str, problem: str, iteration: int | None = None) -> None:
        super().__init__(component, role, problem, iteration)
        self.component, self.role, self.problem, self.iteration = component, role, problem, iteration
        self.partial: Any = None

    def __str__(self) -> str:
        where = "" if self.iteration is None else f", in iteration {self.iteration}"
        return f"The {self.role} {_described(self.component)} {self.problem}{where}."

    def __reduce__(self) -> tuple:
        # It is pickled with a description in the place of the component, which may be a function that another
        # process cannot import.
        arguments = (_Description(_described(self.component)), self.role, self.problem, self.iteration)
        state = {"partial": self.partial} | ({"__notes__": notes} if (notes := _notes(self)) else {})
        return type(self), arguments, state


class UndefinedValue(ComponentError, ArithmeticError):
    """A function of the dictionary has no value there: for a line search, a place to keep away from."""


class naming:
    """Turn an exception raised inside a ``with`` block into a `ComponentError` that names the component.

    Refusals of this package are sentences for the user already, and pass as they are: a `ValueError`, a
    `TypeError` or an `OSError` raised by code of ours that no code of the user's called. So does a
    `ComponentError` of a part inside this one, and what a problem says to an optimizer by a `TypeError`: that
    another part lacks something, a Hessian for example.

    It is no generator with `contextlib.contextmanager`: that would not catch a `StopIteration`, because it
    attributes a `RuntimeError` caused by one to Python itself.

    Parameters
    ----------
    component : object
        The part that is called in the block.
    role : str
        What it is in the run: "coder", "callback", ...

    Examples
    --------
    >>> with naming(print, "callback"):
    ...     1 / 0
    Traceback (most recent call last):
    ...
    manifold_dl.components.errors.ComponentError: The callback <built-in function print>
    (builtin_function_or_method) raised ZeroDivisionError: division by zero.
    """

    def __init__(self, component: Any, role: str) -> None:
        self.component, self.role = component, role

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, Exception):
            raise_named(error, self.component, self.role)


def raise_named(
    error: Exception, component: Any, role: str, kind: type[ComponentError] = ComponentError
) -> NoReturn:
    """Raise what `naming` raises, for an ``except`` clause where a context manager would take too long."""
    is_of_the_part = is_users(component) and not _is_raised_by_statement(error)
    if isinstance(error, ComponentError) or (_is_refusal(error) and not is_of_the_part):
        raise error
    is_said_to_optimizer = isinstance(error, TypeError) and raised_in(error, "manifold_dl")
    if role == "optimizer" and is_said_to_optimizer and not _is_miscall(error):
        raise error
    inside = _innermost_part(error.__traceback__, _NESTED if role == "optimizer" else _ENGINE)
    component, role = inside or (component, role)
    raise kind(component, role, _raised(error)) from error


class naming_nested:
    """Turn an exception raised inside a ``with`` block into a `ComponentError`, as `raise_nested` does."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, Exception):
            raise_nested(error)


def raise_nested(error: Exception) -> NoReturn:
    """Raise a `ComponentError` that names the user's manifold, searcher or engine at work, else the error."""
    part = None if isinstance(error, ComponentError) else _innermost_part(error.__traceback__)
    if part is None or _is_refusal(error):
        raise error
    raise ComponentError(*part, _raised(error)) from error


def raised_in(error: BaseException, package: str) -> bool:
    """Whether the line that raised the error belongs to this package."""
    frames = list(_frames(error.__traceback__))
    return bool(frames) and _root(_module(frames[-1])) == package


def is_users(component: Any) -> bool:
    """Whether a part is neither ours nor one of Pymanopt's."""
    while isinstance(component, partial):
        component = component.func
    module = getattr(component, "__module__", None) or type(component).__module__
    return _root(module) not in ("manifold_dl", "pymanopt")


def _raised(error: Exception) -> str:
    text = str(error).rstrip(".")
    return f"raised {type(error).__name__}" + (f": {text}" if text else "")


def _is_refusal(error: Exception) -> bool:
    """Whether code of ours raised it that no code of the user's called."""
    if not isinstance(error, ValueError | TypeError | OSError | MemoryError) or _is_miscall(error):
        return False
    frames = list(_frames(error.__traceback__))
    if any(_root(_module(frame)) not in _LIBRARIES for frame in frames):
        return False
    # Memory may run out anywhere. The message of another library is not one of ours.
    return isinstance(error, MemoryError) or raised_in(error, "manifold_dl")


def _is_raised_by_statement(error: Exception) -> bool:
    """Whether a ``raise`` raised it, not a function written in C, such as `math.log`.

    Such a function has no frame: an error of the user's appears to come from the line that called it.
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    return dis.opname[traceback.tb_frame.f_code.co_code[traceback.tb_lasti]] == "RAISE_VARARGS"


def _is_miscall(error: Exception) -> bool:
    """Whether a function was called with arguments that it does not take, in Python's own words.

    The line that raises is the caller's, ours, but the signature is the fault of the part that was called.
    """
    return isinstance(error, TypeError) and re.search(r"\(\) (takes|missing|got) ", str(error)) is not None


def _innermost_part(
    traceback: TracebackType | None, roles: Mapping[str, tuple[str, ...]] = _NESTED
) -> tuple[Any, str] | None:
    """The user's part of these roles at work, known by the first arguments of the functions called."""
    found = None
    for frame in _frames(traceback):
        code = frame.f_code
        part = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        for role, methods in roles.items():
            if all(hasattr(type(part), method) for method in methods) and is_users(part):
                found = part, role
    return found


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _module(frame: FrameType) -> str:
    return frame.f_globals.get("__name__") or ""


def _root(module: str) -> str:
    return module.partition(".")[0]


class _Description(str):
    """The description of a part in another process: what prints instead of it."""

    def __repr__(self) -> str:
        return str(self)


def _described(component: Any) -> str:
    """The part as it prints itself, cut where that is long, and its class."""
    if isinstance(component, _Description):
        return str(component)
    cls = type(component)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    try:
        shown = repr(component)
    except Exception:  # a part that fails may fail here, too
        return name
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return shown if name in shown else f"{shown} ({name})"


def _notes(error: Exception) -> list[str]:
    return list(getattr(error, "__notes__", ()))
