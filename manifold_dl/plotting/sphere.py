"""Paths on the unit sphere S² in three dimensions: the one manifold of ours that can be seen whole."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from manifold_dl.plotting.style import INK, VERMILION, as_axes, method_style


def plot_sphere_path(points=(), ax=None, *, cost=None, label=None, view=None, cmap=None, ends=True, **line):
    """One path or several on S², in three dimensions.

    Consecutive points are joined by arcs of great circles. The start is a white dot, the end a star, and
    what is on the far side of the sphere is dimmed, also after the picture was turned with the mouse. A
    second call with the same `ax` adds to the picture.

    Parameters
    ----------
    points : k×3 array, or list of points
        Unit vectors: the rows of an array, or a list of arrays of shape (3,) or (3, 1). A dict of name →
        path draws several, each in its `method_style`. Nothing at all draws the sphere alone.
    ax : 3-D matplotlib Axes, optional
        As made by ``plt.subplots(subplot_kw={"projection": "3d"})``.
    cost : callable, optional
        Point → float, for points of the shape of those in the path, or (3,) if there are none. The sphere is
        coloured with it, dark where it is low, and level lines are drawn.
    label : str, optional
        The name in the legend.
    view : (elevation, azimuth) in degrees, optional
        Where to look from. By default the sphere is turned so that the path is in front.
    cmap : str, optional
        Colours of the cost; "viridis" by default.
    ends : bool
        Mark the start and the end. Without, and with ``marker="none"``, a curve is just a curve.
    **line
        Passed to the lines: ``color=``, ``linewidth=``, ``marker=``, ...

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
    ax = as_axes(ax, "3d")
    if getattr(ax, "name", "") != "3d":
        raise ValueError(
            "ax is flat, and a sphere is not: make it with plt.subplots(subplot_kw={'projection': '3d'})."
        )
    if not globe.has_sphere(ax):
        globe.draw_sphere(ax, cost and (lambda grid: [float(cost(x.reshape(shape))) for x in grid]), cmap)
        if view is None:
            ax.view_init(*_in_front(np.concatenate([*paths.values(), np.zeros((1, 3))])))
    if view is not None:
        ax.view_init(*view)

    for name, path in paths.items():
        own = {"color": INK, "marker": "o", "linestyle": "-"} if name is None else method_style(name)
        looks = {"linewidth": 1.8, "markersize": 4.5} | own | line
        marks = {key: looks.pop(key) for key in ("marker", "markersize")}
        globe.draw_curve(ax, _arcs(path), halo=1.0, **looks)
        dots = {"color": looks["color"], "linestyle": "none", "markeredgecolor": "white"}
        globe.draw_curve(ax, path[1:-1] if ends else path, zorder=4.2, markeredgewidth=0.6, **marks, **dots)
        if ends:
            star = VERMILION if name is None and "color" not in line else looks["color"]
            first = {"marker": "o", "markersize": 7, "markeredgecolor": looks["color"], "color": "white"}
            last = {"marker": "*", "markersize": 14, "color": star}
            globe.draw_curve(ax, path[:1], zorder=4.4, **(dots | first))
            globe.draw_curve(ax, path[-1:], zorder=4.6, **(dots | last))
        if label or name:
            ax.plot([], [], [], label=label or name, **looks, **marks)
    if label or any(paths):
        ax.legend(loc="upper left", frameon=True, framealpha=0.8, edgecolor="none")
    return ax


def _paths(points):
    """Name → k×3 array (None for a path without a name), and the shape of a point as the cost knows it."""
    if isinstance(points, Mapping):
        parts = {str(name): _path(path) for name, path in points.items()}
    else:
        points = list(points)
        parts = {None: _path(points)} if points else {}
    shapes = {shape for _, shape in parts.values()}
    return {name: path for name, (path, _) in parts.items()}, shapes.pop() if shapes else (3,)


def _path(points):
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
    # Far more than rounding, far less than one sees.
    if not np.all(abs(lengths - 1) < 1e-3):
        worst = np.flatnonzero(~(abs(lengths - 1) < 1e-3))[0]
        raise ValueError(
            f"point {worst} of the path has norm {lengths[worst]:.3g}; points on S² have norm 1."
        )
    return path / lengths[:, None], shape


def _in_front(path):
    """Elevation and azimuth from which the middle of a path is in front."""
    middle = path.mean(axis=0)
    if np.linalg.norm(middle) < 1e-3:
        return 25, -50
    elevation = np.degrees(np.arctan2(middle[2], np.hypot(*middle[:2])))
    elevation = np.clip(elevation, -60, 60) if abs(elevation) > 20 else 20  # the equator, from a little above
    return elevation, np.degrees(np.arctan2(middle[1], middle[0]))


def _arcs(path):
    """Points along the great circles from one point of the path to the next, about a degree apart."""
    pieces = []
    for a, b in pairwise(path):
        angle = 2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))
        t = np.linspace(0, 1, max(2, int(np.degrees(angle)) + 1))[:, None]
        # Where the two are equal or opposite there is no one arc, and a straight line has to do.
        regular = 1e-6 < angle < np.pi - 1e-6
        pieces.append(
            (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)
            if regular
            else (1 - t) * a + t * b
        )
    return np.concatenate(pieces) if pieces else path
