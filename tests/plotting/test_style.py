"""The style: restored after the block, colours that can be distinguished, one look per method."""

import subprocess
import sys
from itertools import combinations
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from manifold_dl.plotting import (
    STYLE,
    method_style,
    style,
)


def test_style_is_restored_after_the_block():
    before = dict(matplotlib.rcParams)
    with style():
        assert matplotlib.rcParams["savefig.dpi"] == 200
        assert not matplotlib.rcParams["axes.spines.right"]
        assert matplotlib.rcParams["figure.constrained_layout.use"]
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(KeyError), style():
        raise KeyError
    assert dict(matplotlib.rcParams) == before


def test_style_file_can_be_read_by_matplotlib():
    with plt.style.context(STYLE):
        cycle = [entry["color"] for entry in matplotlib.rcParams["axes.prop_cycle"]]
    assert Path(STYLE).is_file() and len(cycle) == 8


def cycle():
    with style():
        return [to_rgb(entry["color"]) for entry in matplotlib.rcParams["axes.prop_cycle"]]


def lab(colours, simulation=None):
    """CIE L*a*b* of sRGB colours, as seen with a colour-vision deficiency (a matrix for linear RGB)."""
    c = np.asarray(colours)
    c = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    if simulation is not None:
        c = np.clip(c @ np.transpose(simulation), 0, 1)
    xyz = c @ np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T
    xyz /= [0.9505, 1.0, 1.089]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


# Machado, Oliveira and Fernandes (2009), complete deficiency.
DEUTERANOPIA = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
]


PROTANOPIA = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
]


@pytest.mark.parametrize(
    "simulation", [None, DEUTERANOPIA, PROTANOPIA], ids=["all", "deuteranopia", "protanopia"]
)
def test_colours_of_the_cycle_are_distinguishable(simulation):
    seen = lab(cycle(), simulation)
    distances = [np.linalg.norm(a - b) for a, b in combinations(seen, 2)]
    assert (
        min(distances) > 15
    )  # 2.3 is just noticeable side by side; thin lines far apart need several times it


def test_colours_of_the_cycle_are_visible_on_white():
    assert max(lab(cycle())[:, 0]) < 75  # a lightness of 100 is the paper; the yellow left out has 89


METHODS = [
    *["MOD", "K-SVD", "primitive SimCO", "regularized SimCO", "two-step SimCO", "SimCO, CG", "SimCO, L-BFGS"],
    "SimCO, trust region",
]


def test_methods_of_one_figure_differ_in_colour_marker_and_dash():
    looks = [method_style(name) for name in METHODS]
    for key in ("color", "marker"):
        assert len({look[key] for look in looks}) == len(METHODS)
    # Two unbroken lines, the best of both kinds, differ by marker; all others by their dashes, too.
    assert len({str(look["linestyle"]) for look in looks}) == len(METHODS) - 1


@pytest.mark.parametrize("group", [["golden section", "Armijo", "derivative search"], METHODS[4:]])
def test_markers_distinguish_methods_without_colour(group):
    assert len({method_style(name)["marker"] for name in group}) == len(group)


def test_aliases_of_a_method_have_the_same_style():
    assert method_style("GoldenSection") == method_style("golden section")
    assert method_style("trust region") == method_style("SimCO, trust region")
    assert method_style("k-svd ") == method_style("K-SVD")
    assert method_style("K-SVD") is not method_style("K-SVD")  # a new dict, which the caller may change


def test_style_of_an_unknown_method_is_the_same_in_every_process():
    code = "from manifold_dl.plotting import method_style; print(method_style('my own idea'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(method_style("my own idea"))
    names = [f"method {i}" for i in range(20)]
    assert len({str(method_style(name)) for name in names}) >= 19  # of 672 looks, two may meet by chance
    line = plt.plot([1, 2], **method_style("my own idea"))[0]
    assert line.get_color() in [entry.upper() for entry in map(matplotlib.colors.to_hex, cycle())]
