"""Plots of a recorded line search: probes, bracket, slope and accepted step."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Text
from pymanopt.manifolds import Euclidean

import manifold_dl as mdl
from manifold_dl.line_search import SearchRecord, trace
from manifold_dl.plotting import (
    method_style,
    plot_line_search,
)

SEARCH = SearchRecord("GoldenSection", 4.0, -4.0, 2.0, [(1.0, 2.5), (3.0, 3.0), (2.0, 2.0)], 2.0)


def parabola(t):
    return (t - 2) ** 2 / 2 + 2  # 4 at 0 with slope −2, and lowest at 2


def searched(searcher):
    with trace() as searches:
        searcher.search(
            lambda x: parabola(x[0]), Euclidean(1), np.zeros(1), np.ones(1), f0=parabola(0), df0=-2.0
        )
    return searches[0]


def numbers(ax):
    """All numbers that are written at the probes."""
    found = []
    for text in ax.texts:
        for part in text.get_text().split(", "):
            first, _, last = part.partition("–")
            found += range(int(first), int(last or first) + 1)
    return sorted(found)


@pytest.mark.parametrize("searcher", [mdl.GoldenSection(), mdl.WolfeSearch()], ids=["golden", "geodesic"])
def test_every_probe_is_drawn_and_numbered(searcher):
    search = searched(searcher)
    ax = plot_line_search(search, phi=parabola)
    assert numbers(ax) == list(range(1, len(search.probes) + 1))
    dots = next(line for line in ax.lines if line.get_color() == method_style(search.method)["color"])
    assert dots.get_marker() == method_style(search.method)["marker"]
    np.testing.assert_array_equal(np.column_stack(dots.get_data()), search.probes)
    curve = ax.lines[0]
    np.testing.assert_allclose(curve.get_ydata(), parabola(curve.get_xdata()))
    left, right = ax.get_xlim()
    assert left < 0 and right >= max(t for t, _ in search.probes)
    low, high = ax.get_ylim()
    assert low < 2 and high > parabola(0)


def test_the_accepted_step_the_slope_and_the_bracket_are_marked():
    ax = plot_line_search(SEARCH, phi=parabola, armijo=0.5)
    star = next(line for line in ax.lines if line.get_marker() == "*")
    assert star.get_xydata().tolist() == [[2.0, 2.0]] and star.get_label() == "accepted, t = 2"
    tangent = next(line for line in ax.lines if line.get_label() == "slope φ′(0)")
    (x0, x1), (y0, y1) = tangent.get_data()
    assert (x0, y0) == (0, 4.0) and (y1 - y0) / (x1 - x0) == pytest.approx(-4.0)
    armijo = next(line for line in ax.lines if line.get_label() == "Armijo's line")
    (x0, x1), (y0, y1) = armijo.get_data()
    assert (y1 - y0) / (x1 - x0) == pytest.approx(-2.0)
    # 4 at 0, 2.5 at 1 and 3 at 3: the second probe completes the bracket (0, 3).
    bracket = next(patch for patch in ax.patches if patch.get_label() == "bracket after probe 2")
    assert (bracket.get_x(), bracket.get_x() + bracket.get_width()) == (0, 3)


def test_length_option_scales_the_abscissae_by_the_norm():
    ax = plot_line_search(SEARCH, phi=parabola, length=True)  # the direction has norm 2
    star = next(line for line in ax.lines if line.get_marker() == "*")
    assert star.get_xydata().tolist() == [[4.0, 2.0]] and "length = 4" in star.get_label()
    curve = ax.lines[0]
    np.testing.assert_allclose(curve.get_ydata(), parabola(curve.get_xdata() / 2))


def test_span_limits_the_interval_and_separates_probes():
    search = searched(mdl.GoldenSection())
    near = [i for i, (t, _) in enumerate(search.probes, start=1) if 1.9 <= t <= 2.1]
    ax = plot_line_search(search, phi=parabola, span=(1.9, 2.1))
    assert numbers(ax) == near
    assert len(ax.texts) > sum(1 for text in plot_line_search(search).texts if "–" in text.get_text())
    assert ax.get_xlim()[1] == 2.1 and ax.get_ylim()[1] < 2.1


def test_close_probes_have_one_common_label():
    probes = [(1.0, 1.0), (2.0, 3.0), (1.001, 1.0), (1.002, 1.0), (1.003, 1.0)]
    ax = plot_line_search(SearchRecord("Mine", 4.0, -4.0, 1.0, probes, 1.0))
    assert sorted(text.get_text() for text in ax.texts) == ["1, 3–5", "2"]


def test_labels_do_not_overlap():
    ax = plot_line_search(searched(mdl.GoldenSection()), phi=parabola)
    ax.figure.canvas.draw()
    boxes = [Text.get_window_extent(text).shrunk(0.9, 0.7) for text in ax.texts]  # of the letters alone
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_without_phi_the_curve_interpolates_the_probes():
    curve = plot_line_search(SEARCH).lines[0]
    assert curve.get_linestyle() == ":" and "interpolated" in curve.get_label()
    x, y = curve.get_data()
    assert (x[0], x[-1]) == (0, 3) and (y[0], y[-1]) == (4.0, 3.0)
    assert y.min() == pytest.approx(2.0, abs=1e-3)  # the lowest probe; the interpolation is not lower


def test_searches_without_a_step_without_a_probe_and_with_an_infinite_value():
    nothing = plot_line_search(SearchRecord("GoldenSection", 1.0, 0.0, 0.0, [], 0.0))
    assert not nothing.texts and not any(line.get_marker() == "*" for line in nothing.lines)
    nothing.figure.canvas.draw()
    uphill = plot_line_search(SearchRecord("GoldenSection", 1.0, -1.0, 1.0, [(2.0, 3.0), (1.0, 2.0)], 0.0))
    assert numbers(uphill) == [1, 2] and not uphill.patches  # nothing lower than the start, so no bracket
    ax = plot_line_search(SearchRecord("GoldenSection", 4.0, -4.0, 1.0, [(9.0, np.inf), (1.0, 3.0)], 1.0))
    assert numbers(ax) == [1, 2] and np.isfinite(ax.get_ylim()).all()
    ax.figure.canvas.draw()


def test_invalid_searches_are_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"search is a list; draw one record at a time: .* searches\[0\]"):
        plot_line_search([SEARCH])
    with pytest.raises(ValueError, match=r"span=\(2, 1\) is empty"):
        plot_line_search(SEARCH, span=(2, 1))
