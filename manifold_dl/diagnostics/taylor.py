"""The slope of a Taylor remainder on logarithmic axes, by which a derivative is recognised as right.

Along a path x(t) that leaves x in a tangent direction d of length one,

    f(x(t)) = f(x) + t ⟨grad f, d⟩ + ½ t² ⟨Hess f[d], d⟩ + O(t³),

so what remains after the first-order model falls like t², after the second-order one like t³. A wrong
gradient leaves a remainder that falls like t, a wrong Hessian one that falls like t². The first holds along
any retraction; the second along geodesics and second-order retractions only [1]_. `derivatives.py` and
`regularizer.py` call `taylor_report`.

References
----------
.. [1] N. Boumal, An Introduction to Optimization on Smooth Manifolds, 2023, Sections 4.8 and 6.8.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from manifold_dl.diagnostics.report import CheckFailed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class TaylorReport:
    """The remainders of a Taylor model, and the verdict by their slope. True if the derivative is right.

    Attributes
    ----------
    subject : str
        What was checked.
    t, remainders : ndarray
        Steps along the path, and the absolute remainder at each, the mean over both directions.
    slope : float
        Measured on logarithmic axes where the steps are as small as rounding allows; infinite if the model
        is exact, so that nothing but rounding remains.
    expected : int
        The slope of a right derivative: 2 for a gradient, 3 for a Hessian. More is right, too.
    window : slice
        The steps at which the slope was measured.
    verdict : str
        The same in words.
    kink : float or None
        For a function that is smooth only piece by piece, the smallest of the steps that leads to another
        piece; it and all larger steps do not count. None if there is no such step.
    """

    subject: str
    t: np.ndarray = field(repr=False)
    remainders: np.ndarray = field(repr=False)
    slope: float
    expected: int
    window: slice
    verdict: str
    kink: float | None = None

    def __bool__(self) -> bool:
        return is_right(self.slope, self.expected)

    def __str__(self) -> str:
        return self.verdict

    __repr__ = __str__

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the remainders, and the slope they should have, on logarithmic axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        positive = self.remainders > 0
        ax.loglog(
            self.t[positive], self.remainders[positive], ".-", label=f"remainder, slope {self.slope:.2f}"
        )
        if positive.any():
            # The line of the right slope through the last remainder measured, for comparison.
            t, last = self.t[positive], self.remainders[positive][-1]
            ax.loglog(t, last * (t / t[-1]) ** self.expected, "--", label=f"slope {self.expected}")
            ax.set_ylim(bottom=self.remainders[positive].min() / 10)
        ax.set_xlabel("step t")
        ax.set_ylabel("|Taylor remainder|")
        ax.set_title(self.subject)
        ax.legend()
        return ax


def taylor_report(
    subject: str,
    function: Callable[[float], float],
    derivatives: Sequence[float],
    *,
    size: float = 1.0,
    noise: float = 0.0,
    eps: float | None = None,
    piece: Callable[[float], object] | None = None,
) -> TaylorReport:
    """Measure the remainder of φ(t) ≈ Σ φ⁽ᵏ⁾(0) tᵏ / k!.

    The slope is measured over one decade of t, just above the steps at which rounding errors dominate: of
    numbers as large as φ, of points with entries as large as `size`, and the noise of φ at steps that are too
    small to change anything else.

    Parameters
    ----------
    subject : str
        "gradient" or "Hessian", for the verdict.
    function : callable
        φ.
    derivatives : sequence of float
        φ′(0), and φ″(0) for a Hessian.
    size : float
        The largest entry of the point.
    noise : float
        A known rounding error of φ.
    eps : float, optional
        The precision in which φ is computed, float64 by default.
    piece : callable, optional
        For a function that is smooth only piece by piece: step → something that differs between pieces.

    Returns
    -------
    TaylorReport
    """
    with np.errstate(all="ignore"):
        value = float(function(0.0))
    if not math.isfinite(value):
        raise CheckFailed(f"The value at the point is {value}: nothing can be measured there.")
    eps = float(np.finfo(float).eps) if eps is None else eps
    # A remainder of order t³ in float64 exceeds rounding near t = 1e-5, in float32 near 1e-2.
    t = np.logspace(math.log10(eps) / 2, 0, 1 - round(8 * math.log10(eps) / 2))
    slopes = [float(c) for c in derivatives]
    remainders, floor = _remainders(function, value, slopes, t, size=size, noise=noise, eps=eps)
    kink = None if piece is None else _first_kink(piece, t)
    counts = t < (math.inf if kink is None else kink)
    slope, window = _lowest_slope(t, remainders, (remainders > floor) & counts)
    order = len(slopes)
    expected, model = order + 1, ("first-order", "second-order")[order - 1]
    if not np.isfinite(remainders).any():
        slope, found = math.nan, f"The {subject} cannot be judged: the function is not finite along the path."
    elif slope == math.inf and kink is not None:
        slope = math.nan
        found = (
            f"The {subject} cannot be judged along this direction: there is a kink at a step of {kink:.1g}, "
            "before remainders exceed rounding. Choose another point or direction."
        )
    elif slope == math.inf:
        found = f"The {subject} is right: the {model} model is exact, and nothing but rounding remains."
    else:
        word = "right" if is_right(slope, expected) else "wrong"
        if order == 2 and slope < 1.5:  # for any Hessian, a remainder of first order is due to the gradient
            subject, word = "gradient", "slightly wrong"
        found = (
            f"The {subject} is {word}: the {model} remainder falls with slope {slope:.2f}, "
            f"and {expected} was expected."
        )
    if kink is not None and math.isfinite(slope):
        found += f" There is a kink at a step of {kink:.1g}; only smaller steps count."
    return TaylorReport(subject, t, remainders, slope, expected, window, found, kink)


def _remainders(
    function: Callable[[float], float],
    value: float,
    derivatives: list[float],
    t: np.ndarray,
    *,
    size: float,
    noise: float,
    eps: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean remainders at t and −t, and the size of their rounding errors."""
    both = np.array([t, -t])
    terms = np.array([c * both ** (k + 1) / math.factorial(k + 1) for k, c in enumerate(derivatives)])
    with np.errstate(all="ignore"):
        values = np.array([[float(function(s)) for s in steps] for steps in both])
        # The mean of both directions: where the terms t³ and −t⁴ of one cancel, those of the other add.
        remainders = np.abs(values - value - terms.sum(axis=0)).mean(axis=0)
        tiny = eps * np.array([3, 10, 30, 100])
        noises = [float(function(s)) - value - s * derivatives[0] for s in tiny]
    noise = float(np.nanmax(np.abs(noises), initial=noise))
    # A derivative is a long sum, and so is a value near a minimum at zero: a few digits of either are lost.
    change = np.maximum(np.abs(values - value).max(axis=0), np.abs(terms).max(axis=(0, 1)))
    # A point is rounded as its entries are, and φ(t) changes with it by as much as change / t.
    floor = 30 * (eps * abs(value) + noise + eps * size * change / t) + 3000 * eps * change
    return remainders, floor


def _first_kink(piece: Callable[[float], object], t: np.ndarray) -> float | None:
    """The smallest step, to either side, that leads to another piece."""
    here = piece(0.0)
    return next((float(s) for s in t if piece(s) != here or piece(-s) != here), None)


def is_right(slope: float, expected: int) -> bool:
    """Whether a slope is at least the expected one minus 0.1; rounding and further terms change it less."""
    return bool(slope >= expected - 0.1)


def _lowest_slope(
    t: np.ndarray, remainders: np.ndarray, visible: np.ndarray, points: int = 9
) -> tuple[float, slice]:
    """Return the slope over the lowest decade of steps with visible remainders; infinite if too few."""
    usable = np.flatnonzero(visible & np.isfinite(remainders))
    runs = np.split(usable, np.flatnonzero(np.diff(usable) > 1) + 1)
    run = next((run for run in runs if len(run) >= points // 2), None)
    if run is None:
        return math.inf, slice(0, 0)
    window = slice(run[0], run[:points][-1] + 1)
    return float(np.polyfit(np.log(t[window]), np.log(remainders[window]), 1)[0]), window
