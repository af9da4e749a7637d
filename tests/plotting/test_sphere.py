"""Paths on the sphere: arcs, near and far side, cost and level lines."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from manifold_dl.plotting import (
    method_style,
    plot_sphere_path,
)


def quarter():
    """A quarter of the equator in three points."""
    return np.array([[1, 0, 0], [np.sqrt(0.5), np.sqrt(0.5), 0], [0, 1, 0]])


def halves(ax):
    from manifold_dl.plotting.globe import Half

    return [line for line in ax.lines if isinstance(line, Half)]


def test_a_path_is_joined_by_arcs_on_the_sphere():
    ax = plot_sphere_path(quarter(), linewidth=2.5)
    arc = next(half for half in halves(ax) if half.get_linewidth() == 2.5).points
    np.testing.assert_allclose(np.linalg.norm(arc, axis=1), 1)
    np.testing.assert_allclose(arc[:, 2], 0, atol=1e-15)
    np.testing.assert_allclose(arc[[0, -1]], quarter()[[0, -1]])
    angles = np.unwrap(np.arctan2(arc[:, 1], arc[:, 0]))
    assert np.all(np.diff(angles) >= -1e-15) and np.diff(angles).max() < np.radians(1.1)


def test_start_and_end_are_marked_and_points_are_dots():
    marks = {
        half.get_marker(): half.points.tolist() for half in halves(plot_sphere_path(quarter(), marker="s"))
    }
    assert marks["o"] == [[1, 0, 0]] and marks["*"] == [[0, 1, 0]] and marks["s"] == [quarter()[1].tolist()]
    marks = {half.get_marker() for half in halves(plot_sphere_path(quarter(), ends=False, marker="s"))}
    assert marks == {"s", "None"}


def test_far_side_is_dimmed_also_after_rotation():
    circle = [[np.cos(a), np.sin(a), 0] for a in np.linspace(0, 1.9 * np.pi, 40)]
    ax = plot_sphere_path(circle, view=(20, 0), linewidth=2.5)
    back, front = [half for half in halves(ax) if half.get_linewidth() == 2.5]
    assert back.get_alpha() < 0.5 * front.get_alpha() and back.get_zorder() < front.get_zorder()
    for azimuth in (0, 120):
        ax.view_init(20, azimuth)
        ax.figure.canvas.draw()
        towards = [np.cos(np.radians(azimuth)), np.sin(np.radians(azimuth))]
        for half, sign in ((front, 1), (back, -1)):
            x, y, _ = half.get_data_3d()
            seen = ~np.isnan(x)
            assert seen.any() and np.all(sign * (x * towards[0] + y * towards[1])[seen] >= -1e-9)


def test_the_path_is_in_front_by_default():
    from manifold_dl.plotting.globe import view

    for middle in ([0, -1, 0], [-0.6, 0, 0.8], [0.6, 0, -0.8]):
        assert view(plot_sphere_path([middle]))[2] @ middle > 0.3
    plot_sphere_path([[0, 0, 1], [0, 0, -1]]).figure.canvas.draw()  # no middle, and no arc


def test_sphere_is_coloured_by_the_cost():
    _, ax = plt.subplots(figsize=(3, 3), dpi=100, subplot_kw={"projection": "3d"})
    shapes = set()

    def height(x):
        shapes.add(x.shape)
        return x[2]

    plot_sphere_path(ax=ax, cost=height, view=(0, 0), cmap="gray")
    assert shapes == {(3,)}
    ax.figure.canvas.draw()
    grey = np.asarray(ax.figure.canvas.buffer_rgba())[..., :3].mean(axis=2)
    # Seen from the equator: low is below and dark, high is above and bright.
    upper, lower = grey[100, 140:160], grey[200, 140:160]
    assert lower.mean() < 0.6 * upper.mean()


def test_cost_is_evaluated_at_points_of_the_shape_of_the_path():
    shapes = set()
    path = [point[:, None] for point in quarter()]
    plot_sphere_path(path, cost=lambda x: shapes.add(x.shape) or float(x[0, 0]))
    assert shapes == {(3, 1)}
    plot_sphere_path(cost=lambda x: 1.0).figure.canvas.draw()  # constant: no level lines, no division by zero


def test_level_lines_have_constant_values():
    from manifold_dl.plotting.globe import draw_contours, smooth

    _, ax = plt.subplots(subplot_kw={"projection": "3d"})
    draw_contours(ax, smooth(lambda x: x[:, 2] ** 2), [0.25])
    points = halves(ax)[0].points
    heights = points[~np.isnan(points[:, 0]), 2]
    np.testing.assert_allclose(abs(heights), 0.5, atol=1e-3)  # cells of 0.75 degrees, interpolated linearly
    assert heights.min() < 0 < heights.max()


def test_several_paths_and_calls_are_drawn_on_one_sphere():
    from manifold_dl.plotting.globe import MARK

    ax = plot_sphere_path({"steepest descent": quarter(), "trust region": quarter()[::2]}, view=(10, 20))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["steepest descent", "trust region"]
    colours = {half.get_color() for half in halves(ax)}
    assert {method_style(name)["color"] for name in ("steepest descent", "trust region")} <= colours
    plot_sphere_path(-quarter(), ax=ax, label="other")
    assert (ax.elev, ax.azim) == (10, 20)  # one view, one sphere
    assert sum(artist.get_gid() == MARK for artist in ax.get_children()) == 1
    assert "other" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_invalid_paths_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="point 1 of the path has norm 2; points on S² have norm 1"):
        plot_sphere_path([[1, 0, 0], [0, 2, 0]])
    with pytest.raises(ValueError, match="point 0 of the path has norm nan"):
        plot_sphere_path([[np.nan, 0, 0]])
    with pytest.raises(ValueError, match="points are no path on S²: give an array k×3"):
        plot_sphere_path(np.eye(2))
    with pytest.raises(ValueError, match="for several paths a dictionary"):
        plot_sphere_path([quarter(), quarter()[:2]])
    with pytest.raises(ValueError, match="ax is flat, and a sphere is not"):
        plot_sphere_path(quarter(), ax=plt.subplots()[1])
