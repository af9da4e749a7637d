"""A recorded line search: φ(t), every probe with its number, the bracket and the accepted step."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from manifold_dl.line_search import SearchRecord
from manifold_dl.plotting.style import GREY, INK, SKY, VERMILION, as_axes, method_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEADER = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}


def plot_line_search(
    search: SearchRecord,
    ax: "Axes | None" = None,
    *,
    phi: Callable[[float], float] | None = None,
    span: tuple[float, float] | None = None,
    armijo: float | None = None,
    length: bool = False,
) -> "Axes":
    """Draw a search along a geodesic, with its probes numbered in the order of evaluation.

    The slope φ′(0) is a dashed line. The first interval that brackets a minimum is shaded. Probes that are
    too close together have one common label, such as "7, 9–12"; a smaller `span` separates them.

    Parameters
    ----------
    search : SearchRecord
        One of the records that `manifold_dl.line_search.trace` collects.
    ax : matplotlib Axes, optional
        A new figure by default.
    phi : callable, optional
        t → φ(t), such as ``problem.restrict(point, direction)``. Without it a smooth curve through the
        probes is drawn, dotted, because it is an interpolation.
    span : (float, float), optional
        The interval of t that is shown; by default all probes.
    armijo : float, optional
        Also draw the line φ(0) + armijo · t φ′(0), below which Armijo's condition holds.
    length : bool
        Draw against the length t‖d‖ of the step (an angle, on a sphere) instead of t. `span` and `phi` are
        in terms of t in any case.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from pymanopt.manifolds import Euclidean
    >>> from manifold_dl.line_search import WolfeSearch, trace
    >>> def parabola(x):
    ...     return (x[0] - 3) ** 2
    >>> with trace() as searches:
    ...     step, x = WolfeSearch().search(parabola, Euclidean(1), np.zeros(1), np.ones(1), f0=9, df0=-6)
    >>> ax = plot_line_search(searches[0], phi=lambda t: (t - 3) ** 2)
    >>> sorted(text.get_text() for text in ax.texts)
    ['1', '2']
    """
    if not isinstance(search, SearchRecord):
        raise ValueError(
            f"search is a {type(search).__name__}; draw one record at a time: `with trace() as searches` "
            "collects them, and the first is searches[0]."
        )
    ax = as_axes(ax)
    unit = search.norm if length else 1.0
    probes = np.array([(0.0, search.f0), *search.probes])  # probe 0 is the start, where f is given
    left, right = (0.0, 1.05 * (probes[:, 0].max() or 1.0)) if span is None else span
    if not left < right:
        raise ValueError(f"span=({left:g}, {right:g}) is empty; it goes from a smaller to a larger t.")

    t, curve = _curve(probes, phi, left, right)
    shown = (left <= probes[:, 0]) & (probes[:, 0] <= right)
    finite = np.concatenate([curve[np.isfinite(curve)], probes[shown & np.isfinite(probes[:, 1]), 1]])
    low, high = (finite.min(), finite.max()) if finite.size else (search.f0, search.f0)
    height = (high - low) or abs(low) or 1.0
    ax.set_xlim((left - 0.03 * (right - left)) * unit, right * unit)
    ax.set_ylim(low - 0.08 * height, high + 0.15 * height)

    look, label = (":", "φ, interpolated") if phi is None else ("-", "φ")
    ax.plot(t * unit, curve, look, color=INK, label=label)
    if left <= 0 and search.slope:
        reach = min(right, 0.4 * height / abs(search.slope))
        _draw_line(ax, search, 1.0, (0.0, reach), unit, linestyle="--", label="slope φ′(0)")
    if armijo is not None:
        _draw_line(ax, search, armijo, (left, right), unit, linestyle="-.", label="Armijo's line")
    _draw_bracket(ax, probes, unit)
    _draw_probes(ax, probes, np.flatnonzero(shown), unit, method_style(search.method))
    if search.t > 0 and left <= search.t <= right:
        _draw_accepted(ax, search, unit, "length" if length else "t")
    ax.set_xlabel("length of the step" if length else "t")
    ax.set_ylabel("φ(t)")
    ax.legend(fontsize="small")
    return ax


def _curve(
    probes: np.ndarray, phi: Callable[[float], float] | None, left: float, right: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return t and φ(t) for the curve, interpolated if φ is not given."""
    if phi is not None:
        t = np.linspace(max(left, 0.0), right, 401)
        return t, np.array([float(phi(s)) for s in t])
    from scipy.interpolate import PchipInterpolator  # monotone between the probes: no minimum is added

    known = probes[np.isfinite(probes[:, 1])]
    known = known[np.unique(known[:, 0], return_index=True)[1]]
    if len(known) < 2:
        return known[:, 0], known[:, 1]
    t = np.linspace(max(left, 0.0), min(right, known[-1, 0]), 401)
    return t, PchipInterpolator(*known.T)(t)


def _draw_line(
    ax: "Axes", search: SearchRecord, factor: float, span: tuple[float, float], unit: float, **look: Any
) -> None:
    """Draw the line φ(0) + factor · t φ′(0)."""
    t = np.array(span)
    ax.plot(t * unit, search.f0 + factor * search.slope * t, color=GREY, linewidth=1, zorder=1, **look)


def _draw_bracket(ax: "Axes", probes: np.ndarray, unit: float) -> None:
    """Shade the first bracket, if there is one."""
    found = _first_bracket(probes)
    if found is not None:
        number, begin, end = found
        label = f"bracket after probe {number}"
        ax.axvspan(begin * unit, end * unit, color=SKY, alpha=0.16, linewidth=0, zorder=0, label=label)


def _draw_accepted(ax: "Axes", search: SearchRecord, unit: float, name: str) -> None:
    """Mark the accepted step with a star and a vertical line."""
    place, value = search.t * unit, dict(search.probes).get(search.t, np.nan)
    look: dict[str, Any] = {"color": VERMILION, "markersize": 12, "markeredgecolor": "white", "zorder": 3.5}
    ax.axvline(place, color=VERMILION, linewidth=0.8, zorder=1)
    ax.plot(place, value, "*", label=f"accepted, {name} = {place:.3g}", **look)


def _first_bracket(probes: np.ndarray) -> tuple[int, float, float] | None:
    """Return the first bracket: the number of the probe that completed it, and its two ends."""
    for number in range(2, len(probes)):
        t, values = probes[: number + 1].T
        lowest = t[values.argmin()]
        if t.min() < lowest < t.max():
            return number, t[t < lowest].max(), t[t > lowest].min()
    return None


def _draw_probes(
    ax: "Axes", probes: np.ndarray, numbers: np.ndarray, unit: float, look: dict[str, Any]
) -> None:
    """Draw dots and their numbers, without overlap. Positions of labels are in typographic points."""
    from matplotlib.patheffects import withStroke

    top = ax.get_ylim()[1]
    places = np.column_stack([probes[:, 0] * unit, np.minimum(probes[:, 1], top)])  # ∞ at the upper edge
    start, numbers = numbers[numbers == 0], numbers[numbers > 0]
    ax.plot(*places[start].T, "o", color=INK, markersize=5, zorder=3)
    dots = look | {"linestyle": "none", "markersize": 5.5, "markeredgecolor": "white", "zorder": 3}
    ax.plot(*places[numbers].T, **dots)

    points = ax.transData.transform(places) * 72 / ax.figure.dpi
    lowest = probes[:, 1].argmin()
    size = 8.0  # of the font
    taken: list[tuple[float, float, float]] = []  # centre and width of the labels so far
    for group in _groups(points, numbers.tolist(), 0.75 * size):
        text, first = _ranges(group), group[0]
        width = 0.62 * size * len(text)
        # On a slope there is space on the side of the minimum, near the minimum above the curve.
        aside = points[lowest, 0] - points[first, 0]
        aside = np.sign(aside) * (4 + width / 2) if abs(aside) > 3 * size else 0.0
        x, y, lift = points[first, 0] + aside, points[first, 1], 1.0 if aside else 5.0
        while any(abs(x - a) < (width + w) / 2 + 1 and abs(y + lift - b) < 1.15 * size for a, b, w in taken):
            lift += 0.4 * size
        taken.append((x, y + lift, width))
        ax.annotate(
            text,
            places[first],
            (aside, lift),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=size,
            arrowprops=LEADER if lift > 5 else None,
            annotation_clip=True,
            path_effects=[withStroke(linewidth=2, foreground="white")],
            zorder=4,
        )


def _groups(points: np.ndarray, numbers: list[int], near: float) -> list[list[int]]:
    """Return lists of probes, each within `near` points of the first of its list."""
    groups: list[list[int]] = []
    for number in numbers:
        for group in groups:
            if np.abs(points[number] - points[group[0]]).max() < near:
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers as text: [7, 9, 10, 11] → "7, 9–11"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}–{b}" for a, b in runs)
