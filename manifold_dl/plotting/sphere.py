"""Paths on the unit sphere S² in three dimensions: the one manifold of ours that can be seen whole."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from manifold_dl.plotting.style import INK, VERMILION, as_axes, method_style


def plot_sphere_path(points=(), ax=None, *, cost=None, label=None, view=None, cmap=None, **line):
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
        values = (
            None if cost is None else lambda grid: np.array([float(cost(x.reshape(shape))) for x in grid])
        )
        globe.draw_sphere(ax, values, cmap)
        if view is None:
            ax.view_init(*_in_front(np.concatenate([*paths.values(), np.zeros((1, 3))])))
    if view is not None:
        ax.view_init(*view)

    for name, path in paths.items():
        looks = {"color": INK, "marker": "o", "linestyle": "-"} if name is None else method_style(name)
        looks = {"linewidth": 1.8, "markersize": 4.5} | looks | line
        colour = looks["color"]
        marks = {"marker": looks.pop("marker"), "markersize": looks.pop("markersize"), "linestyle": "none"}
        globe.curve(ax, _arcs(path), halo=1.0, **looks)
        if len(path) > 2 and marks["marker"] not in (None, "", "none", "None"):
            globe.curve(
                ax,
                path[1:-1],
                color=colour,
                markeredgecolor="white",
                markeredgewidth=0.6,
                zorder=4.2,
                **marks,
            )
        ends = {"linestyle": "none", "zorder": 4.4, "markeredgewidth": 1.5}
        if len(path) > 1:
            globe.curve(ax, path[:1], color="white", marker="o", markersize=7, markeredgecolor=colour, **ends)
        star = VERMILION if name is None and "color" not in line else colour
        ends |= {"markeredgewidth": 0.8}
        globe.curve(ax, path[-1:], color=star, marker="*", markersize=14, markeredgecolor="white", **ends)
        if label or name:
            legend = looks | marks | {"linestyle": looks["linestyle"], "label": label or name}
            ax.plot([], [], [], **legend)
    if label or any(paths):
        ax.legend(loc="upper left")
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
    path = np.asarray(points, dtype=float)
    if path.ndim not in (2, 3) or path.shape[1] != 3 or path.shape[2:] not in ((), (1,)):
        raise ValueError(
            f"points have the shape {path.shape}; a path on S² is an array k×3, a list of points of shape "
            "(3,) or (3, 1), or a dictionary of name → path."
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
    return np.clip(elevation, 20, 60), np.degrees(np.arctan2(middle[1], middle[0]))


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
