"""What a check returns, and what it raises: the convention that all checks share."""

from dataclasses import dataclass


class CheckFailed(AssertionError):
    """A plug-in does not keep its contract. The message names the fault.

    Attributes
    ----------
    report : Report or TaylorReport
        What was found up to the fault; the one of a derivative has a `plot`.
    """

    def __init__(self, message, report=None):
        super().__init__(message)
        self.report = report


@dataclass(frozen=True)
class Report:
    """What a check found in order, and what it had to skip. True unless a fault was found.

    Examples
    --------
    >>> Report("Blocks(size=3)", passed=("a seed repeats the sweep",), skipped=("covers every atom",))
    Blocks(size=3): 1 property holds.
      holds: a seed repeats the sweep
      skipped: covers every atom
    """

    subject: str
    passed: tuple = ()
    skipped: tuple = ()
    fault: str | None = None

    def __bool__(self):
        return self.fault is None

    def __str__(self):
        count = "1 property holds" if len(self.passed) == 1 else f"{len(self.passed)} properties hold"
        lines = [f"{self.subject}: {count}."]
        lines += [f"holds: {fact}" for fact in self.passed]
        lines += [f"skipped: {fact}" for fact in self.skipped]
        lines += [f"fault: {self.fault}"] if self.fault else []
        return "\n  ".join(lines)

    __repr__ = __str__


class Inspection:
    """The notes of a check under way: what holds, what was skipped, and the fault that ends it."""

    def __init__(self, subject):
        self.subject = subject if isinstance(subject, str) else type(subject).__name__
        self.passed, self.skipped = [], []

    def require(self, holds, fact, fault):
        """Note the fact if it holds; otherwise raise `CheckFailed` with the fault, said of the subject."""
        if not holds:
            raise CheckFailed(f"{self.subject} {fault}.", self.report(fault))
        if fact not in self.passed:
            self.passed.append(fact)

    def skip(self, fact):
        if fact not in self.skipped:
            self.skipped.append(fact)

    def report(self, fault=None):
        return Report(self.subject, tuple(self.passed), tuple(self.skipped), fault)
