"""The menu of μ: the ridges of a run, in turn, from the numbers that stand beside the menu.

`TwoStep` and `Sawtooth` are those of `updates/ridge.py`; a turn of the page takes the place of an outer
iteration. `parts.penalties` calls `ridges`, and `code.py` writes the numbers out.
"""

from collections.abc import Callable

from manifold_dl.updates import Sawtooth, TwoStep

#: Every schedule of μ, with its name on the page.
RIDGES = {
    "constant": "constant",
    "in turn": "several, in turn",
    "continuation": "continuation to 0",
    "TwoStep": "TwoStep: a ridge, then 0",
    "Sawtooth": "Sawtooth: down, twice, then 0",
}
#: What is typed for it.
LABELS = {"constant": "ridge μ", "in turn": "ridges μ, separated by commas"}
FIRST = "ridge μ to begin with"


def has_turns(name: str) -> bool:
    """Whether a schedule is made for a number of turns; those of the others is how many numbers are typed.

    Examples
    --------
    >>> has_turns("TwoStep"), has_turns("in turn")
    (True, False)
    """
    return name in _MADE


def ridges(name: str, typed: list[float], turns: int) -> list[float]:
    """The ridges of a run, in turn.

    Parameters
    ----------
    name : str
        One of `RIDGES`.
    typed : list of float
        The numbers that the user gave.
    turns : int
        How many ridges there are to be, for those schedules that have a length.

    Returns
    -------
    list of float

    Raises
    ------
    ValueError
        If the numbers do not fit the schedule.

    Examples
    --------
    >>> ridges("continuation", [0.1], 4)
    [0.1, 0.01, 0.001, 0.0]
    >>> ridges("TwoStep", [0.1], 5)
    [0.1, 0.1, 0.1, 0.0, 0.0]
    >>> ridges("constant", [0.1, 0.0], 5)
    Traceback (most recent call last):
    ...
    ValueError: mu has 2 numbers: give one, or choose 'several, in turn'.
    """
    if name == "in turn":
        return typed
    if len(typed) > 1:
        raise ValueError(f"mu has {len(typed)} numbers: give one, or choose {RIDGES['in turn']!r}.")
    if not has_turns(name):
        return typed
    if not typed[0] > 0:
        raise ValueError(f"mu={typed[0]:g}: {RIDGES[name].partition(':')[0]} begins with a ridge above 0.")
    return _MADE[name](typed[0], turns)


def _continuation(first: float, turns: int) -> list[float]:
    return [first / 10**turn for turn in range(turns - 1)] + [0.0]


def _two_step(first: float, turns: int) -> list[float]:
    schedule = TwoStep(ridge=first).bind(turns)
    return [schedule(turn) for turn in range(turns)]


def _sawtooth(first: float, turns: int) -> list[float]:
    schedule = Sawtooth(first, first / 100, period=max(2, (turns - 1) // 2), until=turns - 1)
    return [schedule(turn) for turn in range(turns)]


_MADE: dict[str, Callable[[float, int], list[float]]] = {
    "continuation": _continuation,
    "TwoStep": _two_step,
    "Sawtooth": _sawtooth,
}
