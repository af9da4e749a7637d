"""The distribution of the condition numbers κ over the signals, Section VI-A of the paper."""

from typing import TYPE_CHECKING, Any

import numpy as np

from manifold_dl.plotting.style import GREY, as_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_condition(
    dictionary: np.ndarray, support: Any, ax: "Axes | None" = None, label: str | None = None, **line: Any
) -> "Axes":
    """Draw the fraction of signals whose condition number exceeds κ, against κ.

    The curve of a well-conditioned dictionary decreases early. It reaches zero at the paper's κ(D), the
    largest condition number, which is marked. If some signals use dependent atoms (κ = ∞), the curve does not
    reach zero, and their number is written at its end.

    Parameters
    ----------
    dictionary : array (m×d)
        An atom in every column.
    support : boolean mask (d×n), sparse array (d×n), codes (d×n) or indices (n×S)
        As in `metrics.condition_number`.
    ax : matplotlib Axes, optional
        A new figure by default.
    label : str, optional
        The name in the legend.
    **line
        Properties of the line, passed to ``ax.plot``.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> D = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> ax = plot_condition(D, [[0, 1], [1, 2]])  # κ is 1 for the first signal, 3 for the second
    >>> ax.lines[0].get_xdata().round(12), ax.lines[0].get_ydata()
    (array([1., 1., 3.]), array([1. , 0.5, 0. ]))
    """
    from matplotlib.ticker import LogFormatter

    from manifold_dl.metrics import condition_numbers

    per_signal = condition_numbers(dictionary, support)
    n = len(per_signal)
    if not n:
        raise ValueError("the support has no signals: there is no distribution to draw.")
    finite = np.sort(per_signal[np.isfinite(per_signal)])
    above = 1 - np.arange(1, len(finite) + 1) / n
    infinite = n - len(finite)

    ax = as_axes(ax)
    steps = ax.plot([1, *finite], [1, *above], drawstyle="steps-post", label=label, **line)[0]
    end = (finite[-1] if len(finite) else 1.0, infinite / n)
    if infinite:
        text = f"{infinite} of {n} signals: κ = ∞"
        ax.annotate(text, end, (4, 4), textcoords="offset points", color=steps.get_color(), fontsize="small")
    else:
        ax.plot(*end, marker="o", color=steps.get_color(), clip_on=False, zorder=3)
        ax.annotate(
            f"{end[0]:.3g}",
            end,
            (0, 6),
            textcoords="offset points",
            ha="center",
            color=GREY,
            fontsize="small",
        )
    ax.set_xscale("log")
    for set_formatter in (ax.xaxis.set_major_formatter, ax.xaxis.set_minor_formatter):
        set_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))  # 2, not 2 × 10⁰
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("κ of the atoms that a signal uses")
    ax.set_ylabel("fraction of signals above κ")
    if label:
        ax.legend()
    return ax
