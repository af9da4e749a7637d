"""Figures say what is so: labels of ticks are the places of the ticks, and curves stay inside of the axes."""

import html
import json
import re

import numpy as np
import pytest

from manifold_dl.diagnostics.taylor import taylor_report
from manifold_dl.lab.figures import atoms_figure, search_figure, sphere_element, taylor_figure
from manifold_dl.lab.figures.axes import Axes
from manifold_dl.line_search import SearchRecord

LABEL = re.compile(r'<text x="([-.0-9]+)" y="[-.0-9]+" text-anchor="middle" class="tick">([^<]*)</text>')


def ticks(axes):
    """Position and number of every label below the axes."""
    return [(float(x), float(text)) for x, text in LABEL.findall(axes.text())]


@pytest.mark.parametrize("high", [0.069, 0.5, 0.66, 1.3, 2.9, 6.5, 7.0, 13.0, 42.0, 66.0, 650.0])
def test_labels_of_ticks_are_their_places(high):
    axes = Axes((0.0, high), (0.0, 1.0), "x", "y", "a test")
    found = ticks(axes)
    assert len(found) >= 3
    for x, number in found:
        assert abs(axes.px(number) - x) < 1  # of 540 pixels


def test_a_curve_that_leaves_the_axes_is_drawn_at_their_edge():
    axes = Axes((0.0, 1.0), (1.0, 2.0), "x", "y", "a test")
    assert axes.py(-5.0) == axes.height - axes.bottom and axes.py(9.0) == axes.top


def test_the_ideal_slope_of_a_taylor_check_ends_where_the_axes_end():
    report = taylor_report("gradient", lambda t: t**2 + 0.1 * t, [0.0])  # a wrong slope: 0 in place of 0.1
    figure = taylor_figure(report)
    path = re.search('d="([^"]*)" fill="none" class="slope"', figure).group(1)
    lowest = max(float(point.split()[1]) for point in re.split("[ML]", path)[1:])
    assert lowest <= 240 - Axes.bottom


def test_the_number_of_the_accepted_probe_is_drawn():
    probes = [(0.1, 0.9), (0.2, 0.7), (0.2001, 0.6999), (0.2002, 0.7)]
    figure = search_figure(SearchRecord("golden", 1.0, -2.0, 1.0, probes, 0.2001))
    assert re.findall('class="number">([0-9]+)<', figure)[0] == "3"


def test_atoms_of_any_norm_are_drawn_on_the_sphere():
    paths = [np.array([[0.0, 3.0, 4.0], [1.0, 0.0, 0.0]]), np.array([[0.0, 0.0, -0.1], [0.0, 0.0, 0.0]])]
    data = re.search('data-paths="([^"]*)"', sphere_element(paths)).group(1)
    drawn = json.loads(html.unescape(data))["paths"]
    assert drawn == [[[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]], [[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]]]


@pytest.mark.parametrize("d", [1, 3, 12, 64, 128])
def test_atoms_stay_inside_of_their_figure(d):
    figure = atoms_figure(np.random.default_rng(0).standard_normal((9, d)))
    width, height = map(int, re.search('viewBox="0 0 ([0-9]+) ([0-9]+)"', figure).groups())
    marks = re.findall(r"M([-.0-9]+) ([-.0-9]+)V([-.0-9]+)", figure)
    assert all(
        0 <= float(x) <= width and 0 <= float(a) <= height and 0 <= float(b) <= height for x, a, b in marks
    )
