"""Faults in a part that the user chose: one exception that names the part, and where it is raised.

A coder, an update rule, an optimizer, a line searcher, a manifold, a regularizer, a schedule or a callback
may be written by anybody. `naming` surrounds a call of such a part: what it raises becomes a `ComponentError`
that names the part and is chained to the original. `learn_dictionary` adds the iteration and the best result
so far.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["ComponentError"]


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
        What was learned until then: the best dictionary so far with its codes and history. None outside of a
        loop.

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


@contextmanager
def naming(component: Any, role: str) -> Iterator[None]:
    """Turn an exception raised inside the block into a `ComponentError` that names the component.

    Refusals of our own parts (a `ValueError` or `TypeError` raised by a class of this package) are sentences
    for the user already, and pass as they are; so does a `ComponentError` of a part inside this one. A
    `TypeError` that this package raises, whoever called it, says what another part lacks, a Hessian for
    example, and passes, too.

    Examples
    --------
    >>> with naming(print, "callback"):
    ...     1 / 0
    Traceback (most recent call last):
    ...
    manifold_dl.errors.ComponentError: The callback <built-in function print> (builtin_function_or_method)
    raised ZeroDivisionError: division by zero.
    """
    try:
        yield
    except ComponentError:
        raise
    except Exception as error:
        if _is_ours(component) and isinstance(error, ValueError | TypeError):
            raise
        if isinstance(error, TypeError) and raised_in(error, "manifold_dl"):
            raise
        problem = f"raised {type(error).__name__}: {str(error).rstrip('.')}"
        raise ComponentError(component, role, problem) from error


def raised_in(error: BaseException, package: str) -> bool:
    """Whether the line that raised the error belongs to this package."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = "" if traceback is None else traceback.tb_frame.f_globals.get("__name__", "")
    return module.partition(".")[0] == package


def _is_ours(component: Any) -> bool:
    cls = component if isinstance(component, type) else type(component)
    return cls.__module__.partition(".")[0] == "manifold_dl"


def _described(component: Any) -> str:
    """The part as it prints itself, cut where that is long, and its class."""
    shown = repr(component)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    cls = type(component)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    return shown if name in shown else f"{shown} ({name})"
