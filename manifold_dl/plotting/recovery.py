"""Success rates of exact dictionary recovery against the number of signals, with the counting bound."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from manifold_dl.plotting.style import INK, as_axes, method_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_recovery(table: Mapping[str, Any], ax: "Axes | None" = None, bound: float | None = None) -> "Axes":
    """Draw success rates against n, a line for every method, with error bars and the counting bound.

    Parameters
    ----------
    table : mapping
        Columns of equal length, one entry per trial: "method" (its name), "n" (number of signals) and
        "success" (0 or 1). A dict of lists, what `csv.DictReader` collects, or a data frame.
    ax : matplotlib Axes, optional
        A new figure by default.
    bound : float, optional
        The counting bound d(m − 1)/(m − S), below which no method can succeed: a labelled vertical line.

    Returns
    -------
    ax : matplotlib Axes

    Notes
    -----
    The error bars are Wilson's 95 % intervals. Unlike p ± 2σ they have a positive width where all trials
    succeed or all fail, and stay within [0, 1].

    Examples
    --------
    >>> table = {"method": ["MOD"] * 4, "n": [50, 50, 60, 60], "success": [0, 0, 1, 0]}
    >>> ax = plot_recovery(table, bound=40)
    >>> ax.lines[0].get_xdata(), ax.lines[0].get_ydata()
    (array([50., 60.]), array([0. , 0.5]))
    """
    from matplotlib.container import Container

    methods, n, success = _trials(table)
    ax = as_axes(ax)
    for method in dict.fromkeys(methods):  # in order of appearance
        rows = methods == method
        counts = np.unique(n[rows])
        trials = np.array([np.sum(n[rows] == count) for count in counts])
        found = np.array([success[rows & (n == count)].sum() for count in counts])
        low, high = wilson_interval(found, trials)
        rate = found / trials
        bars = np.maximum([rate - low, high - rate], 0.0)  # rounding may leave −1e-17
        drawn = ax.errorbar(counts, rate, yerr=bars, label=method, elinewidth=1, **method_style(method))
        for artist in (*drawn[1], *drawn[2]):  # the caps and the bars, lighter than the rates
            artist.set_alpha(0.5)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("number of signals n")
    ax.set_ylabel("fraction of dictionaries recovered")
    if bound is not None:
        ax.axvline(bound, color=INK, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
        ax.annotate(
            f"counting bound n = {bound:g}",
            (bound, 0.5),
            (-3, 0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="center",
            color=INK,
            fontsize="small",
        )
        left, right = ax.get_xlim()
        ax.set_xlim(min(left, bound - 0.06 * (right - bound)), right)
    # Beside the axes, because the curves fill them; and without the error bars.
    handles, names = ax.get_legend_handles_labels()
    handles = [handle[0] if isinstance(handle, Container) else handle for handle in handles]
    ax.legend(handles, names, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3)
    return ax


def wilson_interval(successes: Any, trials: Any, z: float = 1.959964) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval for a probability, from a number of successes.

    Parameters
    ----------
    successes, trials : int or array of int
        How many of how many trials succeeded.
    z : float
        Quantile of the normal distribution; 95 % by default.

    Returns
    -------
    low, high : arrays
        The ends of the interval, within [0, 1].

    Examples
    --------
    >>> low, high = wilson_interval(0, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.0, 0.278)
    """
    k, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    p, shrink = k / n, 1 + z**2 / n
    centre = (p + z**2 / (2 * n)) / shrink
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / shrink
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def _trials(table: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns method, n and success, checked."""
    missing = [name for name in ("method", "n", "success") if name not in table]
    if missing:
        raise ValueError(
            f"table has no column {', '.join(missing)}; "
            "plot_recovery needs method, n and success, one entry per trial."
        )
    methods, n = np.asarray(table["method"]).astype(str), np.asarray(table["n"]).astype(float)
    success = np.asarray(table["success"])
    if success.dtype.kind in "USO":  # as read from a file
        success = np.array([{"True": 1, "False": 0}.get(str(entry), entry) for entry in success.tolist()])
    success = success.astype(float)
    if not methods.shape == n.shape == success.shape or methods.ndim != 1:
        raise ValueError(
            f"the columns have shapes {methods.shape}, {n.shape} and {success.shape}; "
            "they hold one entry per trial."
        )
    if not methods.size:
        raise ValueError("table has no trials: there is nothing to draw.")
    if not np.isin(success, (0, 1)).all():
        raise ValueError(f"success is 0 or 1 for every trial, not {success[~np.isin(success, (0, 1))][0]:g}.")
    return methods, n, success
