"""All choices of the page as plain values: what a run is made of, and what an address carries.

Every field of `Settings` is one control of the page. Bounds are those of the sliders; `convert` applies them
to values that come from an address.
"""

from dataclasses import dataclass, fields
from typing import Any

PROBLEMS = ("update_problem", "lasso_problem")
SOURCES = {"synthetic": "synthetic signals", "picture": "patches of a picture", "file": "your own file"}
STARTS = {"random": "random", "typed": "typed"}
NONE, OWN = "none", "own"  # of the regularizers: no penalty, and the one in the text box

BOUNDS: dict[str, tuple[float, float]] = {
    "m": (2, 64),
    "patch": (3, 8),
    "d": (1, 128),
    "n": (10, 2000),
    "sparsity": (1, 8),
    "noise": (0, 200),
    "seed": (0, 99),
    "start_seed": (0, 99),
    "weight": (0, 1e6),
    "turns": (2, 12),
    "size": (1, 64),
    "iterations": (1, 500),
    "sweeps": (1, 50),
}


class Refused(ValueError):
    """A setting that cannot be used.

    Parameters
    ----------
    control : str
        The field of `Settings` beside whose control the message is shown.
    message : str
        A sentence.

    Examples
    --------
    >>> Refused("mu", "mu='x' is no number.").control
    'mu'
    """

    def __init__(self, control: str, message: object) -> None:
        super().__init__(str(message))
        self.control = control


@dataclass(frozen=True)
class Settings:
    """The choices of one run.

    Attributes
    ----------
    data : str
        One of `SOURCES`.
    m, d, n, sparsity : int
        Length of the signals, atoms, signals, and atoms per signal.
    patch : int
        Side of the patches of a picture, for which m = patch².
    noise : float
        Norm of the noise as a percentage of that of the signals; synthetic signals only.
    seed, start_seed : int
        Of the signals, and of the initial dictionary and everything random in a run.
    start : str
        One of `STARTS`.
    typed : str
        The initial atoms as numbers, atoms separated by semicolons.
    problem : str
        One of `PROBLEMS`.
    alpha : str
        The ℓ₁ penalty of `lasso_problem`: one, or several in turn.
    manifold, optimizer, line_searcher, schedule, regularizer : str
        Names of the registry; a regularizer may be "none" or "own".
    weight : float
        Of the regularizer, as a fraction of ‖Y‖².
    ridge : str
        One of `ridges.RIDGES`: how μ changes in the course of a run.
    mu : str
        One ridge, or for ``ridge="in turn"`` several: ``"0.1, 0.01, 0"``.
    turns : int
        How many ridges there are in turn, for the schedules of μ that have a length.
    size : int
        Atoms in a block, for the schedules that have a size.
    iterations, sweeps : int
        The most iterations of the optimizer in one run of it, and passes over the schedule for each μ.

    Examples
    --------
    >>> Settings(optimizer="TrustRegions").mu
    '0'
    """

    data: str = "synthetic"
    m: int = 16
    patch: int = 8
    d: int = 32
    n: int = 300
    sparsity: int = 4
    noise: float = 0.0
    seed: int = 0
    start: str = "random"
    start_seed: int = 1
    typed: str = ""
    problem: str = "update_problem"
    alpha: str = "0.3, 0.1, 0.03"
    manifold: str = "Spheres"
    optimizer: str = "SteepestDescent"
    line_searcher: str = "GoldenSection"
    schedule: str = "AllAtoms"
    size: int = 8
    ridge: str = "constant"
    mu: str = "0"
    turns: int = 5
    regularizer: str = NONE
    weight: float = 0.01
    iterations: int = 50
    sweeps: int = 1

    @property
    def length(self) -> int:
        """The length m of the signals, as far as the settings tell; a file of signals has its own."""
        return self.m if self.data == "synthetic" else self.patch**2

    @property
    def start_rng(self) -> int:
        """The seed of the start as it is used: with that of the signals, a start would be the true atoms."""
        return 100 + self.start_seed


def convert(name: str, value: Any) -> Any:
    """A value of the type that a field has.

    Parameters
    ----------
    name : str
        A field of `Settings`.
    value : object
        A number or a text.

    Returns
    -------
    int, float or str

    Raises
    ------
    Refused
        If it is no such number, or outside of the bounds.

    Examples
    --------
    >>> convert("m", "16"), convert("noise", 5)
    (16, 5.0)
    >>> convert("m", "1000")
    Traceback (most recent call last):
    ...
    manifold_dl.lab.settings.Refused: m=1000 is outside of 2 to 64.
    """
    kind = type(_DEFAULTS[name])
    if kind is str:
        return str(value)
    try:
        number = kind(float(value)) if kind is int and float(value).is_integer() else kind(value)
    except (TypeError, ValueError, OverflowError):
        what = "a whole number" if kind is int else "a number"
        raise Refused(name, f"{name}={value!r} is not {what}.") from None
    low, high = BOUNDS[name]
    if not low <= number <= high:  # false for NaN
        raise Refused(name, f"{name}={number:g} is outside of {low:g} to {high:g}.")
    return number


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Settings)}
