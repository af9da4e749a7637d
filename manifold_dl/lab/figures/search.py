"""φ(t) of one step: the curve, the probes of the line search with their numbers, and the accepted t."""

import math
from collections.abc import Callable

import numpy as np

from manifold_dl.lab.figures.axes import Axes, short, spread, tag
from manifold_dl.line_search import SearchRecord

POINTS = 81


def search_figure(record: SearchRecord, phi: Callable[[float], float] | None = None) -> str:
    """Draw a line search.

    Parameters
    ----------
    record : SearchRecord
        Its probes. A step without a line search has none.
    phi : callable, optional
        t → φ(t).

    Returns
    -------
    str
        SVG.
    """
    reach = max([t for t, _ in record.probes] + [record.t]) or 1.0
    # Far probes of the first bracket would hide the minimum.
    if record.t > 0:
        reach = min(reach, 6 * record.t)
    ts = np.linspace(0, 1.06 * reach, POINTS)
    curve = [] if phi is None else [_value(phi, t) for t in ts]
    base = _offset([*curve, *(value for _, value in record.probes)], record.f0)
    f0, curve = record.f0 - base, [value - base for value in curve]
    shown = [(k, t, value - base) for k, (t, value) in enumerate(record.probes, 1) if t <= ts[-1]]
    values = [v for v in [*curve, *(v for _, _, v in shown), f0] if math.isfinite(v)]
    high = min(max(values), f0 + 1.5 * (f0 - min(values)) or max(values))
    axes = Axes(
        (float(-0.02 * reach), float(ts[-1])),
        spread([min(values), max(high, f0)], log=False),
        "t, in multiples of the direction",
        "φ(t) − φ(0)" if base else "φ(t)",
        f"φ along the step; accepted t = {record.t:.3g}",
        width=430,
        height=280,
    )
    if curve:
        axes.line(ts, curve, class_="phi")
    if record.slope and curve:
        run = min(0.35 * reach, 0.6 * (f0 - min(values)) / abs(record.slope) or reach)
        axes.line([0, run], [f0, f0 + run * record.slope], class_="slope")
    axes.dot(0.0, f0, 4.5, class_="start")
    _draw_probes(axes, shown, record.t)
    if record.t > 0:
        end = dict(record.probes).get(record.t, _value(phi, record.t) if phi else math.nan)
        axes.dot(record.t, end - base, 8, class_="accepted")
        place = {"x": axes.width - axes.right, "y": 15, "text_anchor": "end", "class_": "accepted-name"}
        axes.marks.append(tag("text", f"accepted: t = {short(record.t)}", **place))
    return axes.text()


def _offset(values: list[float], f0: float) -> float:
    """φ(0), if all values agree with it in three digits: labels of ticks would not tell them apart."""
    finite = [value for value in values if math.isfinite(value)]
    return f0 if finite and max(abs(value - f0) for value in finite) < 1e-3 * abs(f0) else 0.0


def _draw_probes(axes: Axes, shown: list[tuple[int, float, float]], accepted: float) -> None:
    """Dots with numbers, that of the accepted t first; one that would cover another number is left out."""
    taken: list[tuple[float, float]] = []
    for number, t, value in sorted(shown, key=lambda probe: probe[1] != accepted):
        axes.dot(t, value, 4, class_="probe")
        x, y = axes.px(t), axes.py(axes.y[1] if value == math.inf else value)
        if all(abs(x - a) > 13 or abs(y - b) > 13 for a, b in taken):
            taken.append((x, y))
            # Above a dot at the upper edge stands the accepted t.
            below = y <= axes.top + 4
            above = -13 if t == accepted > 0 else -9  # a ring marks the accepted one
            dy = 18 if below else above
            axes.label(t, value, str(number), 0, dy, text_anchor="middle", class_="number")


def _value(phi: Callable[[float], float], t: float) -> float:
    try:
        with np.errstate(all="ignore"):
            return float(phi(float(t)))
    except (ArithmeticError, np.linalg.LinAlgError):
        return math.inf
