"""The unit sphere in matplotlib's 3-D axes: what lies on its far side is dimmed, from wherever one looks.

matplotlib sorts whole artists by depth, so a path around a sphere would be either in front of it or behind.
Here every curve is drawn twice, by two artists that keep, at the moment of drawing, the points that face the
eye and those that do not. Turning the picture with the mouse stays right. `plot_sphere_path` alone loads
this module, because it loads matplotlib.
"""

import numpy as np
from matplotlib import colormaps, patheffects
from matplotlib.colors import Normalize
from mpl_toolkits.mplot3d.art3d import Line3D

MARK = "manifold_dl sphere"  # the gid by which an axes is known to have its sphere already
SPHERE, LINES = "#EAF1F7", "#5B7083"


class Half(Line3D):
    """Those points of a curve on the sphere that face the eye (`front`), or those that do not."""

    def __init__(self, points, front, **line):
        super().__init__(*points.T, **line)
        self.points, self.front = points, front

    def draw(self, renderer):
        facing = self.points @ eye(self.axes) >= 0
        kept = np.where((facing == self.front)[:, None], self.points, np.nan)
        self.set_data_3d(*kept.T)
        super().draw(renderer)


class Outline(Line3D):
    """The great circle at right angles to the line of sight: the edge of the disc that one sees."""

    def draw(self, renderer):
        towards = eye(self.axes)
        across = np.linalg.svd(towards[None])[2][1:]  # two unit vectors orthogonal to it and to each other
        angles = np.linspace(0, 2 * np.pi, 181)
        self.set_data_3d(*(np.column_stack([np.cos(angles), np.sin(angles)]) @ across).T)
        super().draw(renderer)


def eye(ax):
    """The unit vector towards the eye."""
    elevation, azimuth = np.radians([ax.elev, ax.azim])
    return np.array(
        [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    )


def has_sphere(ax):
    return any(artist.get_gid() == MARK for artist in ax.collections)


def draw_sphere(ax, cost=None, cmap=None, levels=14, alpha=None):
    """A sphere with meridians and parallels; or in the colours of a cost, with its level lines.

    `cost` takes k unit vectors, k×3, and returns k values.
    """
    ax.computed_zorder = False  # what is in front is decided here
    ax.set_proj_type("ortho")
    ax.set_axis_off()
    ax.set_box_aspect((1, 1, 1), zoom=1.55)
    ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))

    longitudes, latitudes = np.meshgrid(
        np.linspace(-np.pi, np.pi, 121), np.linspace(-np.pi / 2, np.pi / 2, 61)
    )
    points = on_sphere(longitudes, latitudes)
    looks = {"color": SPHERE, "alpha": 0.55 if alpha is None else alpha}
    if cost is not None:
        values = cost(points.reshape(-1, 3)).reshape(longitudes.shape)
        scale = Normalize(values.min(), values.max())
        # A facet has the colour of its middle, and is a little lighter towards the top, which looks round.
        middle = (values[1:, 1:] + values[:-1, 1:] + values[1:, :-1] + values[:-1, :-1]) / 4
        looks = {"facecolors": colormaps[cmap or "viridis"](scale(middle)), "alpha": alpha}
        contours(ax, longitudes, latitudes, values, np.linspace(values.min(), values.max(), levels + 2)[1:-1])
    surface = ax.plot_surface(
        *np.moveaxis(points, -1, 0),
        rcount=60,
        ccount=120,
        shade=False,
        linewidth=0,
        antialiased=False,
        zorder=1,
        **looks,
    )
    surface.set_gid(MARK)
    surface.set_rasterized(True)  # 7,200 facets are no drawing
    if cost is None:
        graticule(ax)
    ax.add_line(Outline([0.0], [0.0], [0.0], color=LINES, linewidth=0.9, zorder=2))


def on_sphere(longitudes, latitudes):
    return np.stack(
        [
            np.cos(latitudes) * np.cos(longitudes),
            np.cos(latitudes) * np.sin(longitudes),
            np.sin(latitudes) * np.ones_like(longitudes),
        ],
        axis=-1,
    )


def graticule(ax):
    """Meridians and parallels every 30 degrees."""
    turn, rise = np.linspace(-np.pi, np.pi, 181), np.linspace(-np.pi / 2, np.pi / 2, 91)
    curves = [on_sphere(turn, np.radians(latitude)) for latitude in range(-60, 61, 30)]
    curves += [
        on_sphere(np.radians(longitude) * np.ones_like(rise), rise) for longitude in range(-180, 180, 30)
    ]
    curve(ax, joined(curves), color=LINES, linewidth=0.5, alpha=0.6, hidden=0.2, zorder=2)


def contours(ax, longitudes, latitudes, values, levels):
    """Level lines, where the cost has the same value."""
    import contourpy  # matplotlib's own

    generator = contourpy.contour_generator(longitudes, latitudes, values)
    lines = [on_sphere(*line.T) for level in levels for line in generator.lines(level)]
    if lines:
        curve(ax, joined(lines), color="white", linewidth=0.6, alpha=0.55, hidden=0, zorder=2)


def joined(curves):
    """One array of several curves, with a gap after each."""
    gap = np.full((1, 3), np.nan)
    return np.concatenate([part for one in curves for part in (one, gap)])


def curve(ax, points, *, alpha=1.0, hidden=0.3, zorder=4, label=None, halo=0.0, **line):
    """A curve (or dots) in two halves: one for each side of the sphere."""
    if hidden:
        ax.add_line(Half(points, False, alpha=hidden * alpha, zorder=zorder - 0.5, **line))
    front = Half(points, True, alpha=alpha, zorder=zorder, label=label, **line)
    if halo:
        width = line.get("linewidth", 1.5) + 2 * halo
        front.set_path_effects(
            [patheffects.Stroke(linewidth=width, foreground="white"), patheffects.Normal()]
        )
    ax.add_line(front)
    return front
