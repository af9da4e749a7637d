"""The sentences about entries that are missing: NaN, infinite or masked, and what can be done about them.

`_validation.py` finds such entries. What can be done differs from one caller to the next: weights, an option,
or nothing but cleaning the data.
"""

from typing import NamedTuple


class Advice(NamedTuple):
    """What a caller can do about entries that are missing: the ends of two sentences."""

    masked: str
    not_finite: str


FILL = Advice(
    "Fill it (`.filled(0)`), or drop the rows or columns that hold masked entries.", "clean the data first"
)
WEIGHTS = Advice(
    "Give signals as `.data` with `weights=~mask`.",
    "clean the data first, or give missing entries the weight 0 by `weights=`",
)


class NotFiniteError(ValueError):
    """Entries are NaN or infinite.

    Parameters
    ----------
    fact : str
        Which entries, and how many.
    advice : str
        What can be done about it.

    Examples
    --------
    >>> str(NotFiniteError("signals holds nan at row 0", "clean the data first"))
    'signals holds nan at row 0; clean the data first.'
    """

    def __init__(self, fact: str, advice: str) -> None:
        super().__init__(fact, advice)
        self.fact, self.advice = fact, advice

    def __str__(self) -> str:
        return f"{self.fact}; {self.advice}."


def not_finite(name: str, value: float, place: str, count: int, advice: Advice = FILL) -> NotFiniteError:
    """The error about so many entries that are NaN or infinite, of which the first is at `place`."""
    several = f"the first of {count} entries that are" if count > 1 else "the only entry that is"
    return NotFiniteError(f"{name} holds {value} {place}, {several} NaN or infinite", advice.not_finite)
