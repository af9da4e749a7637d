"""The objective of all runs against iterations, evaluations or seconds."""

from collections.abc import Sequence

from manifold_dl.lab.figures.axes import Axes, spread, tag
from manifold_dl.lab.run import Run

MEASURES = {"iterations": "iterations", "evaluations": "evaluations", "seconds": "seconds of computing"}
COLOURS = 6  # of the style sheet, .run-0 to .run-5


def convergence_figure(
    runs: Sequence[Run], measure: str, numbers: Sequence[int], chosen: int | None = None
) -> str:
    """Draw the objective of every run; the last run is strong, the earlier ones are pale.

    Parameters
    ----------
    runs : sequence of Run
    measure : str
        One of `MEASURES`.
    numbers : sequence of int
        The number of each run, which decides its colour.
    chosen : int, optional
        The iterate of the last run that is marked.

    Returns
    -------
    str
        SVG.
    """
    curves = [_curve(run, measure) for run in runs]
    ys = [y for _, curve in curves for y in curve]
    log = bool(ys) and min(ys) > 0 and max(ys) > 20 * min(ys)
    xs = [x for curve, _ in curves for x in curve]
    axes = Axes(
        (0.0, max([1e-3 if measure == "seconds" else 1.0, *xs]) * 1.03),
        spread(ys, log),
        MEASURES[measure],
        "objective f(D)",
        f"The objective against {MEASURES[measure]}",
        log_y=log,
        whole_x=measure != "seconds",
        width=860,
        height=300,
    )
    for k, ((x, y), number) in enumerate(zip(curves, numbers, strict=True)):
        look = "last" if k == len(runs) - 1 else "pale"
        axes.line(x, y, class_=f"run run-{number % COLOURS} {look}")
        if look == "last" and x:
            axes.dot(x[-1], y[-1], 4.5, class_=f"end run-{number % COLOURS}")
            if chosen is not None and 0 <= chosen < len(x):
                axes.dot(x[chosen], y[chosen], 6, class_="chosen")
    if not xs:
        axes.marks.append(_invitation(axes))
    return axes.text()


def _curve(run: Run, measure: str) -> tuple[list[float], list[float]]:
    iterates = list(run.iterates)  # the run may append to it meanwhile
    values = [iterate.value for iterate in iterates]
    if measure == "iterations":
        return list(map(float, range(len(iterates)))), values
    return [float(getattr(iterate, measure)) for iterate in iterates], values


def _invitation(axes: Axes) -> str:
    place = {"x": axes.width / 2, "y": axes.height / 2, "text_anchor": "middle"}
    return tag("text", "Press Run, or Step ▸", **place, class_="invitation")
