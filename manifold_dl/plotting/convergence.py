"""Convergence of a run: values against iterations, evaluations or seconds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from manifold_dl.plotting.style import as_axes, method_style
from manifold_dl.problem.recorder import Iterate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS = {
    "iterations": "iterations",
    "evaluations": "evaluations",
    "seconds": "seconds",
    "loss": "‖Y − DX‖² / n",
    "value": "f",
    "gradient_norm": "‖grad f‖",
    "objective": "objective",
    "kappa": "κ",
    "coherence": "coherence",
}
_COUNTS = ("value", "gradient", "hessian", "probe")


@runtime_checkable
class HasColumns(Protocol):
    """A run with named columns, such as a `History`."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return column name → values, one per outer iteration."""


def plot_convergence(
    run: Any,
    ax: "Axes | None" = None,
    label: str | None = None,
    *,
    x: Any = "iterations",
    y: str | None = None,
    minimum: float = 0.0,
    **line: Any,
) -> "Axes":
    """Draw the values of one run, or of several, on a logarithmic axis.

    Parameters
    ----------
    run : History, list of Iterate, sequence of float, or dict
        The history of a `Result`; the `record` of an update problem; plain values; or a dictionary of name →
        any of these, which draws one line for each name in its `method_style`.
    ax : matplotlib Axes, optional
        A new figure by default.
    label : str, optional
        The name in the legend. If it is that of a method, pass ``**method_style(label)`` too.
    x : "iterations", "evaluations" or "seconds", or an array
        The abscissae. Evaluations are those of values, gradients, Hessian products and probes of line
        searches. Plain values have iterations only.
    y : str, optional
        Another column of a history ("objective", "kappa", ...), or "gradient_norm" of a record. By default
        the loss of a history and the value of a record.
    minimum : float
        Subtracted from the values, so that a straight line is linear convergence. Values that are not
        positive after that are not drawn.
    **line
        Properties of the line, passed to ``ax.plot``.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> ax = plot_convergence([8.0, 4.0, 2.0, 1.0], label="halved")
    >>> ax.get_yscale(), ax.lines[0].get_ydata()
    ('log', array([8., 4., 2., 1.]))
    """
    if isinstance(run, Mapping) and "loss" not in run:
        if label is not None:
            raise ValueError(f"label={label!r}: several runs have their names in the dictionary.")
        if not run:
            raise ValueError("run is an empty dictionary: there is nothing to draw.")
        ax = as_axes(ax)
        for name, one in run.items():
            look = method_style(name) | line
            plot_convergence(one, ax, label=str(name), x=x, y=y, minimum=minimum, **look)
        return ax

    columns, default, first = _columns(run)
    name = default if y is None else y
    values = _column(columns, name)
    abscissae, x_label = _abscissae(columns, x, len(values), first)
    values = np.where(values > minimum, values - minimum, np.nan)

    from matplotlib import rcParams

    ax = as_axes(ax)
    look = {"marker": "o", "markersize": 3.5} | line
    if len(values) > 40:  # a few markers distinguish the lines; one at every point would hide them
        look = {"markevery": max(1, len(values) // 12)} | look
    ax.plot(abscissae, values, label=label, **look)
    ax.set_yscale("log")
    ax.set_xlabel(x_label)
    ax.set_ylabel(_LABELS.get(name, name) + (" − minimum" if minimum else ""))
    if not rcParams["axes.grid"]:
        ax.grid(True, alpha=0.3)
    if label:
        ax.legend()
    return ax


def _columns(run: Any) -> tuple[dict[str, np.ndarray], str, int]:
    """Return column name → array, the column to draw, and the number of iterations before the first entry."""
    if isinstance(run, HasColumns):  # a History
        run = run.to_dict()
    if isinstance(run, Mapping):
        columns = {name: np.asarray(column, dtype=float) for name, column in run.items()}
        if set(_COUNTS) <= set(columns):
            columns["evaluations"] = np.cumsum(sum(columns[name] for name in _COUNTS))
        return columns, "loss", 1  # a loss is measured after an iteration
    run = list(run)
    if run and isinstance(run[0], Iterate):  # the record of a problem, which begins at the starting point
        columns = dict(zip(Iterate._fields, np.array(run, dtype=float).T, strict=True))
        return columns, "value", 0
    values = np.asarray(run, dtype=float)
    if values.ndim != 1:
        raise ValueError(
            f"run is an array of shape {values.shape}; plot_convergence takes one value per iteration, a "
            "History, the record of a problem, or a dictionary of name → any of these."
        )
    return {"value": values}, "value", 0


def _column(columns: dict[str, np.ndarray], name: str) -> np.ndarray:
    if name not in columns:
        raise ValueError(f"there is no column {name!r} in this run; it has {', '.join(columns)}.")
    return columns[name]


def _abscissae(columns: dict[str, np.ndarray], x: Any, length: int, first: int) -> tuple[np.ndarray, str]:
    if not isinstance(x, str):
        x = np.asarray(x, dtype=float)
        if x.shape != (length,):
            raise ValueError(f"x has shape {x.shape}, but there are {length} values to draw.")
        return x, ""
    if x == "iterations":
        outer = columns.get("iteration")
        return (np.arange(length), "iterations") if outer is None else (outer + first, "outer iteration")
    if x not in ("evaluations", "seconds"):
        raise ValueError(f"x={x!r}: draw against 'iterations', 'evaluations', 'seconds' or an array.")
    return _column(columns, x), _LABELS[x]
