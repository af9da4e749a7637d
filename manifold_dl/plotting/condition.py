"""How well conditioned the atoms are that each signal uses: κ of the paper's Section VI-A, one by one."""

import numpy as np

from manifold_dl.plotting.style import GREY, as_axes


def plot_condition(dictionary, support, ax=None, label=None, **line):
    """The share of signals whose condition number exceeds κ, against κ.

    A curve that falls early is a well-conditioned dictionary. The paper's κ(D), the worst signal, is where
    it reaches zero, and is marked. Signals with dependent atoms (κ = ∞) keep it from getting there; how many
    they are is written at the end.

    Parameters
    ----------
    dictionary : m×d array
    support : boolean d×n mask, sparse d×n array, codes or n×S indices
        As in `metrics.condition_number`.
    ax : matplotlib Axes, optional
    label : str, optional
        The name in the legend.
    **line
        Passed to ``ax.plot``.

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

    from manifold_dl.metrics import condition_number

    kappa, per_signal = condition_number(dictionary, support, distribution=True)
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
            f"{kappa:.3g}", end, (0, 6), textcoords="offset points", ha="center", color=GREY, fontsize="small"
        )
    ax.set_xscale("log")
    for set_formatter in (ax.xaxis.set_major_formatter, ax.xaxis.set_minor_formatter):
        set_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))  # 2, not 2 × 10⁰
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("κ of the atoms that a signal uses")
    ax.set_ylabel("share of signals above κ")
    if label:
        ax.legend()
    return ax
