"""The unit sphere in matplotlib's 3-D axes: smooth, and with its far side dimmed for every direction of view.

matplotlib sorts whole artists by depth, so a path around a sphere would be either in front of it or behind.
Here every curve consists of two artists, which select, whenever they are drawn, the points on the near side
and those on the far side; and the sphere is an image computed for that view. So rotation with the mouse
works. `plot_sphere_path` imports this module when it is called, because it imports matplotlib.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps, patheffects
from matplotlib.colors import to_rgb
from matplotlib.image import BboxImage
from matplotlib.transforms import Bbox
from mpl_toolkits.mplot3d import Axes3D, proj3d
from mpl_toolkits.mplot3d.art3d import Line3D

MARK = "manifold_dl sphere"  # the gid of the sphere, so that it is drawn once per axes
PAPER, LINES = "#DCE7F0", "#5B7083"
GRID = np.linspace(-np.pi, np.pi, 121), np.linspace(-np.pi / 2, np.pi / 2, 61)  # longitudes and latitudes
FINE = np.linspace(-np.pi, np.pi, 481), np.linspace(-np.pi / 2, np.pi / 2, 241)


Cost = Callable[[np.ndarray], Any]


def has_sphere(ax: Axes3D) -> bool:
    """Return whether `draw_sphere` was called for these axes."""
    return any(artist.get_gid() == MARK for artist in ax.get_children())


def draw_sphere(ax: Axes3D, cost: Cost | None = None, cmap: str | None = None, levels: int = 14) -> None:
    """Draw a translucent sphere with meridians and parallels; or one in the colours of a cost.

    Parameters
    ----------
    ax : 3-D matplotlib Axes
        Its limits, projection and aspect are set.
    cost : callable, optional
        k unit vectors (k×3) → k values. Its level lines are drawn.
    cmap : str, optional
        The colours of the cost; "viridis" by default.
    levels : int
        The number of level lines.
    """
    ax.computed_zorder = False  # the order of the artists is given here
    ax.set_proj_type("ortho")
    ax.set_axis_off()
    ax.set_box_aspect((1, 1, 1), zoom=1.55)
    ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    colours = None
    if cost is not None:
        values = smooth(cost)
        low, high = values.min(), values.max()
        colours = colormaps[cmap or "viridis"]((values - low) / ((high - low) or 1.0))[..., :3]
        draw_contours(ax, values, np.linspace(low, high, levels + 2)[1:-1])
    else:
        draw_graticule(ax)
    sphere = Sphere(ax, colours)
    sphere.set_gid(MARK)
    ax.add_artist(sphere)
    ax.add_line(
        Outline([0.0], [0.0], [0.0], color=LINES, linewidth=0.9, zorder=2, clip_on=False, in_layout=False)
    )


def draw_curve(
    ax: Axes3D,
    points: np.ndarray,
    *,
    alpha: float = 1.0,
    hidden: float = 0.3,
    zorder: float = 4,
    halo: float = 0.0,
    **line: Any,
) -> None:
    """Draw a curve, or dots, as two artists: one for each side of the sphere.

    Parameters
    ----------
    ax : 3-D matplotlib Axes
        Where it is drawn.
    points : array (k×3)
        Unit vectors; NaN ends a curve.
    alpha : float
        Opacity on the near side.
    hidden : float
        Opacity on the far side, relative to `alpha`; 0 draws nothing there.
    zorder : float
        Of the near side; the far side is half a unit below.
    halo : float
        Width of a white edge.
    **line
        Properties of the line.
    """
    if hidden:
        ax.add_line(Half(points, False, alpha=hidden * alpha, zorder=zorder - 0.5, **line))
    front = Half(points, True, alpha=alpha, zorder=zorder, **line)
    if halo:
        edge = patheffects.Stroke(linewidth=line["linewidth"] + 2 * halo, foreground="white")
        front.set_path_effects([edge, patheffects.Normal()])
    ax.add_line(front)


def draw_graticule(ax: Axes3D) -> None:
    """Draw meridians and parallels every 30 degrees."""
    turn, rise = np.linspace(-np.pi, np.pi, 181), np.linspace(-np.pi / 2, np.pi / 2, 91)
    curves = [on_sphere(turn, np.radians(latitude)) for latitude in range(-60, 61, 30)]
    curves += [on_sphere(np.radians(longitude), rise) for longitude in range(-180, 180, 30)]
    draw_curve(ax, joined(curves), color=LINES, linewidth=0.5, alpha=0.6, hidden=0.35, zorder=2)


def draw_contours(ax: Axes3D, values: np.ndarray, levels: np.ndarray) -> None:
    """Draw level lines of values on the grid `FINE`."""
    import contourpy

    generator = contourpy.contour_generator(*FINE, values)
    curves = [on_sphere(*np.asarray(line).T) for level in levels for line in generator.lines(level)]
    if curves:
        draw_curve(ax, joined(curves), color="white", linewidth=0.6, alpha=0.6, hidden=0, zorder=2)


class Sphere(BboxImage):
    """An image of the sphere, computed for the direction of view whenever it is drawn.

    Parameters
    ----------
    ax : 3-D matplotlib Axes
        Where it is drawn.
    colours : array (latitudes×longitudes×3), optional
        The colours of the surface; translucent without.
    """

    def __init__(self, ax: Axes3D, colours: np.ndarray | None) -> None:
        super().__init__(self._disc, zorder=1, origin="lower", interpolation="nearest")
        self.colours = colours
        self.set_in_layout(False)
        self.set_clip_on(False)

    def _disc(self, renderer: Any = None) -> Bbox:
        """Return the square around the disc, in pixels."""
        across = view(self.axes)[:2]
        corners = np.linalg.norm(across, axis=1) * [[-1, -1], [1, 1]]
        return Bbox(self.axes.transData.transform(corners + centre(self.axes)))

    def draw(self, renderer: Any) -> None:
        """Compute the image and draw it."""
        size = int(np.clip(self._disc().width * renderer.get_image_magnification(), 2, 1500))
        x, y = np.meshgrid(*2 * [np.linspace(-1, 1, size)])
        inside = x**2 + y**2 <= 1
        height = np.sqrt(np.maximum(1 - x**2 - y**2, 0))
        light = np.clip((-0.4 * x + 0.5 * y + 0.77 * height), 0, 1)  # from the upper left
        if self.colours is None:
            # Translucent: clear in the middle, less so towards the edge.
            paint = np.array(to_rgb(PAPER)) * (0.85 + 0.15 * light[..., None])
            alpha = 0.35 + 0.45 * (1 - height) ** 2
        else:
            axes = view(self.axes)
            points = np.stack([x, y, height], axis=-1) @ (axes / np.linalg.norm(axes, axis=1)[:, None])
            paint = self._painted(points, self.colours) * (0.88 + 0.12 * light[..., None])
            alpha = np.ones_like(x)
        self.set_data(np.dstack([np.clip(paint, 0, 1), np.where(inside, alpha, 0.0)]))
        super().draw(renderer)

    def _painted(self, points: np.ndarray, colours: np.ndarray) -> np.ndarray:
        """Interpolate the colours at points of the sphere."""
        from scipy.ndimage import map_coordinates

        rows, columns = (np.array(colours.shape[:2]) - 1)[:, None, None]
        latitude = np.arcsin(np.clip(points[..., 2], -1, 1)) / np.pi + 0.5
        longitude = np.arctan2(points[..., 1], points[..., 0]) / (2 * np.pi) + 0.5
        where = [latitude * rows, longitude * columns]
        channels = [map_coordinates(colours[..., c], where, order=1, mode="nearest") for c in range(3)]
        return np.stack(channels, axis=-1)


class Half(Line3D):
    """The points of a curve on the near side of the sphere, or those on the far side.

    Parameters
    ----------
    points : array (k×3)
        Unit vectors.
    front : bool
        Which side.
    **line
        Properties of the line.
    """

    def __init__(self, points: np.ndarray, front: bool, **line: Any) -> None:
        super().__init__(*points.T, clip_on=False, in_layout=False, **line)
        self.points, self.front = points, front

    def draw(self, renderer: Any) -> None:
        """Select the points for the direction of view and draw them."""
        facing = self.points @ view(self.axes)[2] >= 0
        kept = np.where((facing == self.front)[:, None], self.points, np.nan)
        self.set_data_3d(*kept.T)
        super().draw(renderer)


class Outline(Line3D):
    """The great circle orthogonal to the direction of view: the edge of the visible disc."""

    def draw(self, renderer: Any) -> None:
        """Compute the circle for the direction of view and draw it."""
        axes = view(self.axes)
        angles = np.linspace(0, 2 * np.pi, 181)
        right, up = axes[:2] / np.linalg.norm(axes[:2], axis=1)[:, None]
        self.set_data_3d(*(np.outer(right, np.cos(angles)) + np.outer(up, np.sin(angles))))
        super().draw(renderer)


def view(ax: Axes3D) -> np.ndarray:
    """Return the projection as a 3×3 matrix: right, up (with their lengths in the figure) and the viewer."""
    places = np.stack(proj3d.proj_transform(*np.eye(3), ax.get_proj())[:2])
    right, up = places - centre(ax)[:, None]
    towards = np.cross(right, up)
    return np.stack([right, up, towards / np.linalg.norm(towards)])


def centre(ax: Axes3D) -> np.ndarray:
    """Return the position of the sphere's centre in the projection."""
    return np.array(proj3d.proj_transform(0.0, 0.0, 0.0, ax.get_proj())[:2])


def on_sphere(longitudes: Any, latitudes: Any) -> np.ndarray:
    """Return unit vectors (…×3) at longitudes and latitudes in radians."""
    longitudes, latitudes = np.broadcast_arrays(longitudes, latitudes)
    level = np.cos(latitudes)
    return np.stack([level * np.cos(longitudes), level * np.sin(longitudes), np.sin(latitudes)], axis=-1)


def smooth(cost: Cost) -> np.ndarray:
    """Return the cost on the grid `FINE`, interpolated from `GRID`, so that level lines have no corners."""
    from scipy.interpolate import RectBivariateSpline

    points = on_sphere(*np.meshgrid(*GRID))
    values = np.reshape(cost(points.reshape(-1, 3)), points.shape[:2])
    return RectBivariateSpline(GRID[1], GRID[0], values)(FINE[1], FINE[0])


def joined(curves: Sequence[np.ndarray]) -> np.ndarray:
    """Return several curves as one array, with a row of NaN after each."""
    gap = np.full((1, 3), np.nan)
    return np.concatenate([piece for curve in curves for piece in (curve, gap)])
