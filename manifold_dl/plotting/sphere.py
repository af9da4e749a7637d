"""Paths on the unit sphere S², drawn in three dimensions. `globe.py` draws the sphere itself."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from manifold_dl.plotting.style import INK, VERMILION, as_axes, method_style

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d import Axes3D


def plot_sphere_path(
    points: Any = (),
    ax: "Axes3D | None" = None,
    *,
    cost: Callable[[np.ndarray], float] | None = None,
    label: str | None = None,
    view: tuple[float, float] | None = None,
    cmap: str | None = None,
    ends: bool = True,
    **line: Any,
) -> "Axes3D":
    """Draw one path or several on S², in three dimensions.

    Consecutive points are joined by arcs of great circles. The start is a white dot, the end a star. The far
    side of the sphere is dimmed, also after the figure was rotated with the mouse. A second call with the
    same `ax` adds to the figure.

    Parameters
    ----------
    points : k×3 array, or list of points
        Unit vectors: the rows of an array, or a list of arrays of shape (3,) or (3, 1). A dict of name →
        path draws several, each in its `method_style`. Without points the sphere alone is drawn.
    ax : 3-D matplotlib Axes, optional
        As made by ``plt.subplots(subplot_kw={"projection": "3d"})``.
    cost : callable, optional
        Point → float, for points of the shape of those in the path, or (3,) if there are none. The sphere is
        coloured with it, dark where it is low, and level lines are drawn.
    label : str, optional
        The name in the legend.
    view : (elevation, azimuth) in degrees, optional
        The direction of view. By default the path is in front.
    cmap : str, optional
        Colours of the cost; "viridis" by default.
    ends : bool
        Mark the start and the end. With ``ends=False`` and ``marker="none"`` the curve has no markers.
    **line
        Properties of the lines: ``color=``, ``linewidth=``, ``marker=``, ...

    Returns
    -------
    ax : 3-D matplotlib Axes

    Examples
    --------
    A quarter of the equator:

    >>> ax = plot_sphere_path([[1, 0, 0], [0, 1, 0]], cost=lambda x: x[2])
    >>> ax.name, int(ax.elev), int(ax.azim)
    ('3d', 20, 45)
    """
    from manifold_dl.plotting import globe

    paths, shape = _paths(points)
    axes = cast("Axes3D", as_axes(ax, "3d"))  # checked in the next line
    if axes.name != "3d":
        raise ValueError(
            "ax is flat, and a sphere is not: make it with plt.subplots(subplot_kw={'projection': '3d'})."
        )
    if not globe.has_sphere(axes):
        values = None if cost is None else (lambda grid: [float(cost(x.reshape(shape))) for x in grid])
        globe.draw_sphere(axes, values, cmap)
        if view is None:
            axes.view_init(*_in_front(np.concatenate([*paths.values(), np.zeros((1, 3))])))
    if view is not None:
        axes.view_init(*view)

    for name, path in paths.items():
        own = {"color": INK, "marker": "o", "linestyle": "-"} if name is None else method_style(name)
        look = {"linewidth": 1.8, "markersize": 4.5} | own | line
        star = VERMILION if name is None and "color" not in line else look["color"]
        _draw_path(axes, path, look, star if ends else None)
        if label or name:
            axes.plot([], [], [], label=label or name, **look)
    if label or any(paths):
        axes.legend(loc="upper left", frameon=True, framealpha=0.8, edgecolor="none")
    return axes


def _draw_path(ax: "Axes3D", path: np.ndarray, look: dict[str, Any], star: str | None) -> None:
    """Draw arcs, dots and, if `star` is a colour, the start and the end."""
    from manifold_dl.plotting import globe

    marks = {key: look[key] for key in ("marker", "markersize")}
    globe.draw_curve(ax, _arcs(path), halo=1.0, **{key: look[key] for key in look if key not in marks})
    dots = {"color": look["color"], "linestyle": "none", "markeredgecolor": "white"}
    inner = path if star is None else path[1:-1]
    globe.draw_curve(ax, inner, zorder=4.2, markeredgewidth=0.6, **marks, **dots)
    if star is not None:
        first = {"marker": "o", "markersize": 7, "markeredgecolor": look["color"], "color": "white"}
        last = {"marker": "*", "markersize": 14, "color": star}
        globe.draw_curve(ax, path[:1], zorder=4.4, **(dots | first))
        globe.draw_curve(ax, path[-1:], zorder=4.6, **(dots | last))


def _paths(points: Any) -> tuple[dict[str | None, np.ndarray], tuple[int, ...]]:
    """Return name → k×3 array (None for a path without a name), and the shape of a point for the cost."""
    named: dict[str | None, tuple[np.ndarray, tuple[int, ...]]]
    if isinstance(points, Mapping):
        named = {str(name): _path(path) for name, path in points.items()}
    else:
        points = list(points)
        named = {None: _path(points)} if points else {}
    shapes = {shape for _, shape in named.values()}
    return {name: path for name, (path, _) in named.items()}, shapes.pop() if shapes else (3,)


def _path(points: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return a path as a k×3 array of unit vectors, and the shape of one point as it was given."""
    try:
        path = np.asarray(points, dtype=float)
    except ValueError:  # ragged: paths of different lengths
        path = np.empty(0)
    if path.ndim not in (2, 3) or path.shape[1] != 3 or path.shape[2:] not in ((), (1,)):
        raise ValueError(
            "points are no path on S²: give an array k×3, a list of points of shape (3,) or (3, 1), or for "
            "several paths a dictionary of name → path."
        )
    shape, path = path.shape[1:], path.reshape(-1, 3)
    lengths = np.linalg.norm(path, axis=1)
    # Far above rounding, far below what is visible.
    if not np.all(abs(lengths - 1) < 1e-3):
        worst = np.flatnonzero(~(abs(lengths - 1) < 1e-3))[0]
        raise ValueError(
            f"point {worst} of the path has norm {lengths[worst]:.3g}; points on S² have norm 1."
        )
    return path / lengths[:, None], shape


def _in_front(path: np.ndarray) -> tuple[float, float]:
    """Return elevation and azimuth from which the middle of a path is in front."""
    middle = path.mean(axis=0)
    if np.linalg.norm(middle) < 1e-3:
        return 25, -50
    elevation = np.degrees(np.arctan2(middle[2], np.hypot(*middle[:2])))
    elevation = np.clip(elevation, -60, 60) if abs(elevation) > 20 else 20  # the equator, from a little above
    return elevation, np.degrees(np.arctan2(middle[1], middle[0]))


def _arcs(path: np.ndarray) -> np.ndarray:
    """Return points along the great circles from one point of the path to the next, about a degree apart."""
    pieces = []
    for a, b in pairwise(path):
        angle = 2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))
        t = np.linspace(0, 1, max(2, int(np.degrees(angle)) + 1))[:, None]
        # Equal or opposite points have no unique arc: a straight line is used.
        regular = 1e-6 < angle < np.pi - 1e-6
        pieces.append(
            (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)
            if regular
            else (1 - t) * a + t * b
        )
    return np.concatenate(pieces) if pieces else path
