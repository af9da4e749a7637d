"""The remainder of the Taylor check of a regularizer, on logarithmic axes."""

import numpy as np

from manifold_dl.diagnostics.taylor import TaylorReport
from manifold_dl.lab.figures.axes import Axes, spread


def taylor_figure(report: TaylorReport) -> str:
    """Draw the remainders, and a line of the slope that a right gradient has.

    Parameters
    ----------
    report : TaylorReport

    Returns
    -------
    str
        SVG.
    """
    seen = np.isfinite(report.remainders) & (report.remainders > 0)
    t, remainders = report.t[seen], report.remainders[seen]
    title = f"Taylor remainder, slope {report.slope:.2f}"
    axes = Axes(
        spread(report.t.tolist(), log=True),
        spread(remainders.tolist(), log=True),
        "step t",
        "Taylor remainder",
        title,
        log_x=True,
        log_y=True,
        width=430,
        height=240,
    )
    if len(t):
        ideal = remainders[-1] * (t / t[-1]) ** report.expected
        drawn = ideal >= axes.y[0]
        axes.line(t[drawn], ideal[drawn], class_="slope")
        axes.line(t, remainders, class_="run run-0 last")
        axes.label(float(t[0]), float(remainders[-1]), f"slope {report.slope:.2f}", 6, 12, class_="name")
    return axes.text()
