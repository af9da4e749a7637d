"""The unit sphere in matplotlib's 3-D axes: smooth, and with its far side dimmed from wherever one looks.

matplotlib sorts whole artists by depth, so a path around a sphere would be either in front of it or behind.
Here every curve is drawn twice, by two artists that keep, at the moment of drawing, the points that face the
eye and those that do not; and the sphere is an image made for that view. Turning it with the mouse stays
right. `plot_sphere_path` loads this module when it is called, because it loads matplotlib.
"""

import numpy as np
from matplotlib import colormaps, patheffects
from matplotlib.colors import to_rgb
from matplotlib.image import BboxImage
from matplotlib.transforms import Bbox
from mpl_toolkits.mplot3d import proj3d
from mpl_toolkits.mplot3d.art3d import Line3D

MARK = "manifold_dl sphere"  # the gid by which an axes is known to have its sphere already
PAPER, LINES = "#DCE7F0", "#5B7083"
GRID = np.linspace(-np.pi, np.pi, 121), np.linspace(-np.pi / 2, np.pi / 2, 61)  # longitudes and latitudes
FINE = np.linspace(-np.pi, np.pi, 481), np.linspace(-np.pi / 2, np.pi / 2, 241)


def has_sphere(ax):
    return any(artist.get_gid() == MARK for artist in ax.get_children())


def draw_sphere(ax, cost=None, cmap=None, levels=14):
    """A glassy sphere with meridians and parallels; or one in the colours of a cost, with its level lines.

    `cost` takes k unit vectors, k×3, and returns k values.
    """
    ax.computed_zorder = False  # what is in front is decided here
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


def draw_curve(ax, points, *, alpha=1.0, hidden=0.3, zorder=4, halo=0.0, **line):
    """A curve, or dots, in two halves: one for each side of the sphere."""
    if hidden:
        ax.add_line(Half(points, False, alpha=hidden * alpha, zorder=zorder - 0.5, **line))
    front = Half(points, True, alpha=alpha, zorder=zorder, **line)
    if halo:
        edge = patheffects.Stroke(linewidth=line["linewidth"] + 2 * halo, foreground="white")
        front.set_path_effects([edge, patheffects.Normal()])
    ax.add_line(front)


def draw_graticule(ax):
    """Meridians and parallels every 30 degrees."""
    turn, rise = np.linspace(-np.pi, np.pi, 181), np.linspace(-np.pi / 2, np.pi / 2, 91)
    curves = [on_sphere(turn, np.radians(latitude)) for latitude in range(-60, 61, 30)]
    curves += [on_sphere(np.radians(longitude), rise) for longitude in range(-180, 180, 30)]
    draw_curve(ax, joined(curves), color=LINES, linewidth=0.5, alpha=0.6, hidden=0.35, zorder=2)


def draw_contours(ax, values, levels):
    """Level lines, along which the cost stays the same."""
    import contourpy  # matplotlib's own

    generator = contourpy.contour_generator(*FINE, values)
    curves = [on_sphere(*line.T) for level in levels for line in generator.lines(level)]
    if curves:
        draw_curve(ax, joined(curves), color="white", linewidth=0.6, alpha=0.6, hidden=0, zorder=2)


class Sphere(BboxImage):
    """A picture of the sphere, made anew for the direction from which one looks."""

    def __init__(self, ax, colours):
        super().__init__(self._disc, zorder=1, origin="lower", interpolation="nearest")
        self.colours = colours  # latitudes×longitudes×3, None for glass
        self.set_in_layout(False)
        self.set_clip_on(False)

    def _disc(self, renderer=None):
        """The square around the disc, in pixels."""
        across = view(self.axes)[:2]
        corners = np.linalg.norm(across, axis=1) * [[-1, -1], [1, 1]]
        return Bbox(self.axes.transData.transform(corners + centre(self.axes)))

    def draw(self, renderer):
        size = int(np.clip(self._disc().width * renderer.get_image_magnification(), 2, 1500))
        x, y = np.meshgrid(*2 * [np.linspace(-1, 1, size)])
        inside = x**2 + y**2 <= 1
        height = np.sqrt(np.maximum(1 - x**2 - y**2, 0))
        light = np.clip((-0.4 * x + 0.5 * y + 0.77 * height), 0, 1)  # it comes from the upper left
        if self.colours is None:
            # Glass: clear in the middle, denser towards the edge.
            paint = np.array(to_rgb(PAPER)) * (0.85 + 0.15 * light[..., None])
            alpha = 0.35 + 0.45 * (1 - height) ** 2
        else:
            axes = view(self.axes)
            points = np.stack([x, y, height], axis=-1) @ (axes / np.linalg.norm(axes, axis=1)[:, None])
            paint, alpha = self._painted(points) * (0.88 + 0.12 * light[..., None]), 1.0
        self.set_data(np.dstack([np.clip(paint, 0, 1), np.where(inside, alpha, 0.0)]))
        super().draw(renderer)

    def _painted(self, points):
        from scipy.ndimage import map_coordinates

        rows, columns = (np.array(self.colours.shape[:2]) - 1)[:, None, None]
        latitude = np.arcsin(np.clip(points[..., 2], -1, 1)) / np.pi + 0.5
        longitude = np.arctan2(points[..., 1], points[..., 0]) / (2 * np.pi) + 0.5
        where = [latitude * rows, longitude * columns]
        channels = [map_coordinates(self.colours[..., c], where, order=1, mode="nearest") for c in range(3)]
        return np.stack(channels, axis=-1)


class Half(Line3D):
    """Those points of a curve on the sphere that face the eye (`front`), or those that do not."""

    def __init__(self, points, front, **line):
        super().__init__(*points.T, clip_on=False, in_layout=False, **line)
        self.points, self.front = points, front

    def draw(self, renderer):
        facing = self.points @ view(self.axes)[2] >= 0
        kept = np.where((facing == self.front)[:, None], self.points, np.nan)
        self.set_data_3d(*kept.T)
        super().draw(renderer)


class Outline(Line3D):
    """The great circle at right angles to the line of sight: the edge of the disc that one sees."""

    def draw(self, renderer):
        axes = view(self.axes)
        angles = np.linspace(0, 2 * np.pi, 181)
        right, up = axes[:2] / np.linalg.norm(axes[:2], axis=1)[:, None]
        self.set_data_3d(*(np.outer(right, np.cos(angles)) + np.outer(up, np.sin(angles))))
        super().draw(renderer)


def view(ax):
    """How the axes projects: the rows give right, up (as long as in the picture) and towards the eye."""
    places = np.stack(proj3d.proj_transform(*np.eye(3), ax.get_proj())[:2])
    right, up = places - centre(ax)[:, None]
    towards = np.cross(right, up)
    return np.stack([right, up, towards / np.linalg.norm(towards)])


def centre(ax):
    return np.array(proj3d.proj_transform(0.0, 0.0, 0.0, ax.get_proj())[:2])


def on_sphere(longitudes, latitudes):
    """Unit vectors …×3."""
    longitudes, latitudes = np.broadcast_arrays(longitudes, latitudes)
    level = np.cos(latitudes)
    return np.stack([level * np.cos(longitudes), level * np.sin(longitudes), np.sin(latitudes)], axis=-1)


def smooth(cost):
    """The cost on the fine grid, from its values on the coarse one: level lines have no corners then."""
    from scipy.interpolate import RectBivariateSpline

    points = on_sphere(*np.meshgrid(*GRID))
    values = np.reshape(cost(points.reshape(-1, 3)), points.shape[:2])
    return RectBivariateSpline(GRID[1], GRID[0], values)(FINE[1], FINE[0])


def joined(curves):
    """One array of several curves, with a gap after each."""
    gap = np.full((1, 3), np.nan)
    return np.concatenate([part for one in curves for part in (one, gap)])
