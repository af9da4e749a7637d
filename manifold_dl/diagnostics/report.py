"""What a check returns and what it raises: the convention of all checks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from manifold_dl.components.errors import ComponentError


class CheckFailed(AssertionError):
    """A plug-in does not keep its contract. The message names the fault.

    Attributes
    ----------
    report : Report or TaylorReport
        What was found up to the fault; that of a derivative has a `plot`.
    """

    def __init__(self, message: str, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


@dataclass(frozen=True)
class Report:
    """The result of a check. True unless a fault was found.

    Attributes
    ----------
    subject : str
        The name of the class or function that was checked.
    passed : tuple of str
        What holds.
    remarks : tuple of str
        What is allowed but worth knowing: it works, and another way would be faster or more accurate.
    skipped : tuple of str
        What could not be checked or was not promised, with the reason.
    fault : str or None
        The fault that ended the check.

    Examples
    --------
    >>> Report("Blocks", passed=("a seed repeats the sweep",), skipped=("covers every atom",))
    Blocks: 1 property holds.
      holds: a seed repeats the sweep
      skipped: covers every atom
    """

    subject: str
    passed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    fault: str | None = None

    def __bool__(self) -> bool:
        return self.fault is None

    def __str__(self) -> str:
        count = "1 property holds" if len(self.passed) == 1 else f"{len(self.passed)} properties hold"
        if self.remarks:
            count += ", with a remark" if len(self.remarks) == 1 else f", with {len(self.remarks)} remarks"
        lines = [f"{self.subject}: {count}."]
        lines += [f"holds: {fact}" for fact in self.passed]
        lines += [f"remark: {fact}" for fact in self.remarks]
        lines += [f"skipped: {fact}" for fact in self.skipped]
        lines += [f"fault: {self.fault}"] if self.fault else []
        return "\n  ".join(lines)

    __repr__ = __str__


class Inspection:
    """The record of a running check: what holds, what was skipped, and the fault that ends it.

    Parameters
    ----------
    subject : object
        What is checked; the title of the report is its name, see `title_of`.
    """

    def __init__(self, subject: Any) -> None:
        self.subject = title_of(subject)
        self.passed: list[str] = []
        self.remarks: list[str] = []
        self.skipped: list[str] = []

    def require(self, holds: Any, fact: str, fault: str) -> None:
        """Record the fact if it holds; otherwise raise `CheckFailed` with the fault of the subject."""
        if not holds:
            self.fail(fault)
        if fact not in self.passed:
            self.passed.append(fact)

    def fail(self, fault: str, cause: BaseException | None = None) -> NoReturn:
        """Raise `CheckFailed` with the fault of the subject."""
        raise CheckFailed(f"{self.subject} {fault}.", self.report(fault)) from cause

    @contextmanager
    def calling(self, where: str = "") -> Iterator[None]:
        """Turn what the subject raises inside the block into `CheckFailed`, with type and message."""
        try:
            yield
        except CheckFailed:
            raise
        except ComponentError as error:  # the message names the subject already
            self.fail(f"{error.problem}{where}", cause=error)
        except Exception as error:
            self.fail(f"raised {type(error).__name__}: {str(error).rstrip('.')}{where}", cause=error)

    def remark(self, fact: str) -> None:
        """Record what is no fault, but worth knowing."""
        if fact not in self.remarks:
            self.remarks.append(fact)

    def skip(self, fact: str) -> None:
        """Record what could not be checked, with the reason."""
        if fact not in self.skipped:
            self.skipped.append(fact)

    def report(self, fault: str | None = None) -> Report:
        """Return what was found so far."""
        return Report(self.subject, tuple(self.passed), tuple(self.skipped), tuple(self.remarks), fault)


def require_object(subject: Any, method: str, example: str) -> None:
    """Refuse a class in the place of an object, and an object without the method that its kind must have.

    Examples
    --------
    >>> require_object(dict, "encode", "OMP(sparsity=5)")
    Traceback (most recent call last):
    ...
    TypeError: dict is a class; pass an object of it, dict(...).
    >>> require_object({}, "encode", "OMP(sparsity=5)")
    Traceback (most recent call last):
    ...
    TypeError: {} has no method encode; pass an object that has, such as OMP(sparsity=5).
    """
    if isinstance(subject, type):
        name = subject.__name__
        raise TypeError(f"{name} is a class; pass an object of it, {name}(...).")
    if not callable(getattr(subject, method, None)):
        raise TypeError(f"{subject!r} has no method {method}; pass an object that has, such as {example}.")


def title_of(subject: Any) -> str:
    """Return the name of what is checked: of the function if it is one, of the class of an object otherwise.

    Examples
    --------
    >>> def peaks(D): ...
    >>> title_of(peaks), title_of(partial(peaks, power=4)), title_of(1.5)
    ('peaks', 'peaks', 'float')
    """
    if isinstance(subject, str):
        return subject
    if isinstance(subject, partial):
        return title_of(subject.func)
    return getattr(subject, "__name__", None) or type(subject).__name__
