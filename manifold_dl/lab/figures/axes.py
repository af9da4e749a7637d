"""Axes with linear or logarithmic scales as SVG. The colours are those of the page's style sheet."""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator


def tag(name: str, content: str = "", **attributes: Any) -> str:
    """An SVG or HTML element; underscores in the names of attributes become hyphens.

    Examples
    --------
    >>> tag("text", "a < b", x=1.25, text_anchor="end")
    '<text x="1.25" text-anchor="end">a &lt; b</text>'
    """
    return element(name, html.escape(content), **attributes)


def element(name: str, content: str = "", **attributes: Any) -> str:
    """The same with content that is markup already."""
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_text(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{inside}>{content}</{name}>"


def short(value: float) -> str:
    """A number for a label: powers of ten with superscripts where it is very small or large.

    Examples
    --------
    >>> short(0.25), short(1e-7), short(12345), short(1.23e8)
    ('0.25', '10⁻⁷', '12345', '1.2·10⁸')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    mantissa = mantissa.removesuffix(".0")
    return power if mantissa == "1" else f"{mantissa}·{power}"


@dataclass
class Axes:
    """One pair of axes; `text()` is the whole picture.

    Parameters
    ----------
    x, y : (float, float)
        The intervals that are shown.
    x_label, y_label, title : str
        `title` is for screen readers.
    log_x, log_y : bool
        Whether the scale is logarithmic.
    whole_x : bool
        Whether the ticks are whole numbers.
    width, height : int
        In pixels.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    title: str
    log_x: bool = False
    log_y: bool = False
    whole_x: bool = False
    width: int = 620
    height: int = 330
    marks: list[str] = field(default_factory=list)

    left, right, top, bottom = 66, 14, 26, 44

    def px(self, value: float) -> float:
        """The horizontal position of a value."""
        return self.left + _place(value, self.x, self.log_x) * (self.width - self.left - self.right)

    def py(self, value: float) -> float:
        """The vertical position of a value; what is too high or too low is drawn at the edge."""
        part = min(max(_place(value, self.y, self.log_y), 0.0), 1.0)
        return self.height - self.bottom - part * (self.height - self.top - self.bottom)

    def line(self, xs: Iterable[float], ys: Iterable[float], **look: Any) -> None:
        """Draw a curve; points that are not finite, or not positive on a logarithmic scale, are left out."""
        points = [(x, y) for x, y in zip(xs, ys, strict=True) if self._is_shown(x, y)]
        if points:
            path = "M" + "L".join(f"{self.px(x):.1f} {self.py(y):.1f}" for x, y in points)
            self.marks.append(tag("path", d=path, fill="none", **look))

    def dot(self, x: float, y: float, radius: float = 4, **look: Any) -> None:
        """Draw a dot; an infinite y is at the upper edge."""
        y = self.y[1] if y == math.inf else y
        if self._is_shown(x, y):
            self.marks.append(tag("circle", cx=self.px(x), cy=self.py(y), r=radius, **look))

    def label(self, x: float, y: float, text: str, dx: float = 0, dy: float = 0, **look: Any) -> None:
        """Write a text beside a point."""
        y = self.y[1] if y == math.inf else y
        if self._is_shown(x, y):
            self.marks.append(tag("text", text, x=self.px(x) + dx, y=self.py(y) + dy, **look))

    def text(self) -> str:
        """The picture as an SVG element."""
        inner = "".join([*self._grid(), *self.marks])
        size = {"viewBox": f"0 0 {self.width} {self.height}", "role": "img", "aria_label": self.title}
        return element("svg", inner, class_="mdl-figure", **size)

    def _is_shown(self, x: float, y: float) -> bool:
        return bool(
            math.isfinite(x) and math.isfinite(y) and (x > 0 or not self.log_x) and (y > 0 or not self.log_y)
        )

    def _grid(self) -> list[str]:
        low, high, start, end = self.height - self.bottom, self.top, self.left, self.width - self.right
        marks, lines = [], []
        for value, text in _ticks(self.x, self.log_x, self.whole_x):
            x = self.px(value)
            lines.append(f"M{x:.1f} {low}V{high}")
            marks.append(tag("text", text, x=x, y=low + 16, text_anchor="middle", class_="tick"))
        for value, text in _ticks(self.y, self.log_y):
            y = self.py(value)
            lines.append(f"M{start} {y:.1f}H{end}")
            marks.append(tag("text", text, x=start - 7, y=y + 4, text_anchor="end", class_="tick"))
        frame = tag("path", d=f"M{start} {high}V{low}H{end}", fill="none", class_="frame")
        marks = [tag("path", d="".join(lines), class_="grid"), frame, *marks]
        middle = (start + end) / 2
        marks.append(
            tag("text", self.x_label, x=middle, y=self.height - 8, text_anchor="middle", class_="name")
        )
        marks.append(tag("text", self.y_label, x=8, y=15, class_="name"))
        return marks


def spread(values: Sequence[float], log: bool) -> tuple[float, float]:
    """An interval with a margin around the values that can be drawn.

    Examples
    --------
    >>> spread([0.0, 10.0], log=False)
    (-0.5, 10.5)
    """
    array = np.asarray(values, dtype=float)
    array = array[np.isfinite(array) & ((array > 0) | (not log))]
    if not array.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(array.min()), float(array.max())
    if log:
        margin = max((high / low) ** 0.05, 1.2)
        return low / margin, high * margin
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _place(value: float, interval: tuple[float, float], log: bool) -> float:
    low, high = interval
    if log:
        value, low, high = (math.log(v) for v in (value, low, high))
    return (value - low) / (high - low)


def _ticks(interval: tuple[float, float], log: bool, whole: bool = False) -> list[tuple[float, str]]:
    """The places of the ticks, and their labels: as many digits as distinguish them."""
    low, high = interval
    if log and high / low > 8:
        between = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)  # else there might be a single power of ten
        locations = LogLocator(subs=between, numticks=7).tick_values(low, high)
        places = [float(v) for v in locations if low <= v <= high]
        return [(v, short(v)) for v in places]
    locator = MaxNLocator(6, integer=whole)
    places = [float(v) for v in locator.tick_values(low, high) if low <= v <= high]
    step = places[1] - places[0] if len(places) > 1 else abs(high)
    largest = max(map(abs, places), default=0.0)
    if not step >= 1e-3 or largest >= 1e5:
        digits = min(8, math.ceil(math.log10(largest / step)) + 1) if step > 0 else 3
        return [(v, f"{v:.{digits}g}") if largest > 1e3 * step else (v, short(v)) for v in places]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    digits += abs(round(step, digits) - step) > 1e-3 * step  # a step of 0.15 or 2.5 needs one more
    return [(v, f"{v:.{digits}f}") for v in places]


def _text(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
