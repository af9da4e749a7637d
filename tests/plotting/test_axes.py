"""The contract of all plotting functions: `ax` is used and returned, and nothing is shown."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from manifold_dl.line_search import SearchRecord
from manifold_dl.plotting import (
    plot_atoms,
    plot_condition,
    plot_convergence,
    plot_line_search,
    plot_recovery,
    plot_sphere_path,
    style,
)

SEARCH = SearchRecord("GoldenSection", 4.0, -4.0, 2.0, [(1.0, 2.5), (3.0, 3.0), (2.0, 2.0)], 2.0)


TRIALS = {"method": ["MOD", "MOD", "K-SVD"], "n": [50, 60, 50], "success": [0, 1, 1]}


PLOTS = {
    "convergence": (plot_convergence, [[4.0, 2.0, 1.0]], None),
    "atoms": (plot_atoms, [np.eye(9)], None),
    "line search": (plot_line_search, [SEARCH], None),
    "sphere": (plot_sphere_path, [[[1, 0, 0], [0, 1, 0]]], "3d"),
    "condition": (plot_condition, [np.eye(3), [[0, 1], [1, 2]]], None),
    "recovery": (plot_recovery, [TRIALS], None),
}


@pytest.mark.parametrize("name", PLOTS)
def test_ax_is_used_and_returned_and_nothing_is_shown(name):
    draw, arguments, projection = PLOTS[name]
    _, (other, ax) = plt.subplots(1, 2, subplot_kw={"projection": projection})
    plt.sca(other)  # the current one is not touched
    before = len(other.get_children())
    assert draw(*arguments, ax=ax) is ax
    assert len(plt.get_fignums()) == 1 and len(other.get_children()) == before
    ax.figure.canvas.draw()
    assert draw(*arguments).figure is not ax.figure
    assert len(plt.get_fignums()) == 2


@pytest.mark.parametrize("name", PLOTS)
def test_svg_files_in_our_style_are_reproducible(name, tmp_path):
    draw, arguments, _ = PLOTS[name]
    texts = []
    for path in (tmp_path / "a.svg", tmp_path / "b.svg"):
        with style():
            draw(*arguments).figure.savefig(path, metadata={"Date": None})
        texts.append(path.read_text())
    assert texts[0] == texts[1]  # the salt of the style makes them reproducible
