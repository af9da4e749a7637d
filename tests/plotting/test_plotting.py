"""Pictures: what is drawn is what was given. Nothing is shown."""

import csv
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from pymanopt.manifolds import Euclidean
from pymanopt.optimizers import SteepestDescent

import manifold_dl as mdl
from manifold_dl import OMP, History, Reason, Result, datasets, learn_dictionary
from manifold_dl.line_search import SearchRecord, trace
from manifold_dl.plotting import (
    STYLE,
    method_style,
    plot_atoms,
    plot_condition,
    plot_convergence,
    plot_line_search,
    plot_recovery,
    plot_sphere_path,
    style,
)
from manifold_dl.plotting.recovery import wilson_interval

Y = datasets.synthetic(9, 12, 60, sparsity=2, rng=0).signals


@pytest.fixture(scope="module")
def result():
    return learn_dictionary(Y, 12, coder=OMP(sparsity=2), max_iter=4, tol=0, rng=0)


@pytest.fixture
def problem():
    _, X, signals = datasets.synthetic(6, 8, 40, sparsity=2, rng=0)
    problem = mdl.update_problem(signals, X.astype(bool), mu=0.1)
    start = problem.manifold.random_point(rng=0)
    SteepestDescent(line_searcher=mdl.WolfeSearch(), max_iterations=5, verbosity=0).run(
        problem, initial_point=start
    )
    return problem


@pytest.fixture(autouse=True)
def close(monkeypatch):
    def shown(*args, **kwargs):
        raise AssertionError("a plotting function called show")

    monkeypatch.setattr(plt, "show", shown)
    plt.close("all")  # what doctests have left open
    yield
    plt.close("all")


# One ax for all of them: given and returned, or made in one new figure.

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
def test_the_ax_is_used_and_returned_and_nothing_is_shown(name):
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
def test_the_pictures_can_be_drawn_in_our_style_and_as_svg(name, tmp_path):
    draw, arguments, _ = PLOTS[name]
    texts = []
    for path in (tmp_path / "a.svg", tmp_path / "b.svg"):
        with style():
            draw(*arguments).figure.savefig(path, metadata={"Date": None})
        texts.append(path.read_text())
    assert texts[0] == texts[1]  # the salt of the style makes them reproducible


# The style.


def test_the_style_ends_with_the_block():
    before = dict(matplotlib.rcParams)
    with style():
        assert matplotlib.rcParams["savefig.dpi"] == 200
        assert not matplotlib.rcParams["axes.spines.right"]
        assert matplotlib.rcParams["figure.constrained_layout.use"]
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(KeyError), style():
        raise KeyError
    assert dict(matplotlib.rcParams) == before


def test_the_style_file_is_where_matplotlib_finds_it():
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
def test_the_colours_of_the_cycle_can_be_told_apart(simulation):
    seen = lab(cycle(), simulation)
    distances = [np.linalg.norm(a - b) for a, b in combinations(seen, 2)]
    assert (
        min(distances) > 15
    )  # 2.3 is just noticeable side by side; thin lines far apart need several times it


def test_the_colours_of_the_cycle_can_be_seen_on_white():
    assert max(lab(cycle())[:, 0]) < 75  # a lightness of 100 is the paper; the yellow left out has 89


METHODS = [
    *["MOD", "K-SVD", "primitive SimCO", "regularized SimCO", "two-step SimCO", "SimCO, CG", "SimCO, L-BFGS"],
    "SimCO, trust region",
]


def test_methods_of_one_figure_differ_in_colour_and_without_it():
    looks = [method_style(name) for name in METHODS]
    for key in ("color", "marker"):
        assert len({look[key] for look in looks}) == len(METHODS)
    # Two unbroken lines, the best of both kinds, differ by marker; all others by their dashes, too.
    assert len({str(look["linestyle"]) for look in looks}) == len(METHODS) - 1


@pytest.mark.parametrize("group", [["golden section", "Armijo", "derivative search"], METHODS[4:]])
def test_looks_without_colour(group):
    assert len({method_style(name)["marker"] for name in group}) == len(group)


def test_a_method_looks_the_same_by_all_its_names():
    assert method_style("GoldenSection") == method_style("golden section")
    assert method_style("trust region") == method_style("SimCO, trust region")
    assert method_style("k-svd ") == method_style("K-SVD")
    assert method_style("K-SVD") is not method_style("K-SVD")  # a dict of one's own, to be changed


def test_an_unknown_method_has_a_look_that_does_not_change_from_run_to_run():
    code = "from manifold_dl.plotting import method_style; print(method_style('my own idea'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(method_style("my own idea"))
    names = [f"method {i}" for i in range(20)]
    assert len({str(method_style(name)) for name in names}) >= 19  # of 672 looks, two may meet by chance
    line = plt.plot([1, 2], **method_style("my own idea"))[0]
    assert line.get_color() in [entry.upper() for entry in map(matplotlib.colors.to_hex, cycle())]


# Convergence.


def test_a_result_plots_its_loss(result):
    ax = result.plot()
    x, y = ax.lines[0].get_data()
    np.testing.assert_array_equal(x, [1, 2, 3, 4])
    np.testing.assert_array_equal(y, result.history.loss)
    assert ax.get_yscale() == "log" and ax.get_xlabel() and ax.get_ylabel()
    ax.figure.canvas.draw()


def test_curves_share_an_axes(result):
    _, ax = plt.subplots()
    assert plot_convergence(result.history, ax=ax, label="one") is ax
    assert result.plot(ax=ax) is ax and len(ax.lines) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one"]
    assert len(plt.get_fignums()) == 1


def test_a_history_against_seconds_and_evaluations(result):
    history = result.history
    np.testing.assert_array_equal(
        plot_convergence(history, x="seconds").lines[0].get_xdata(), history.seconds
    )
    every = history.value + history.gradient + history.hessian + history.probe
    x = plot_convergence(history, x="evaluations").lines[0].get_xdata()
    np.testing.assert_array_equal(x, np.cumsum(every))
    line = plot_convergence(history.to_dict(), y="objective").lines[0]  # its columns will do
    np.testing.assert_array_equal(line.get_ydata(), history.objective)


def test_the_record_of_a_problem(problem):
    record = problem.record
    ax = plot_convergence(record)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), range(len(record)))  # 0 is the start
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [iterate.value for iterate in record])
    for x in ("seconds", "evaluations"):
        drawn = plot_convergence(record, x=x, y="gradient_norm").lines[0]
        np.testing.assert_array_equal(drawn.get_xdata(), [getattr(iterate, x) for iterate in record])
        np.testing.assert_array_equal(drawn.get_ydata(), [iterate.gradient_norm for iterate in record])
        assert np.all(np.diff(drawn.get_xdata()) > 0)
    # Asked at a new point: one value and one gradient more than before.
    counts = problem.counts
    before = counts.value + counts.gradient + counts.hessian + counts.probe
    problem.riemannian_gradient(problem.manifold.random_point(rng=5))
    assert problem.record[-1].evaluations == before + 2


def test_values_above_a_minimum():
    line = plot_convergence([5.0, 3.0, 2.0], minimum=2.0).lines[0]
    np.testing.assert_array_equal(line.get_ydata(), [3.0, 1.0, np.nan])  # zero has no logarithm
    line = plot_convergence([5.0, 3.0], x=[10, 30]).lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [10, 30])


def test_several_runs_in_the_looks_of_their_methods(problem):
    ax = plot_convergence({"K-SVD": [3.0, 2.0], "trust region": problem.record}, linewidth=3)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["K-SVD", "trust region"]
    for line in ax.lines:
        look = method_style(line.get_label())
        assert (line.get_color(), line.get_marker()) == (look["color"], look["marker"])
        assert line.get_linewidth() == 3


def test_an_empty_history_and_a_loss_of_zero_can_be_drawn(result):
    empty = Result(result.dictionary, result.codes, History(), Reason.INTERRUPTED)
    empty.plot().figure.canvas.draw()
    history = History()
    history.restore({"iteration": [0, 1], "loss": [1.0, 0.0]})
    plot_convergence(history).figure.canvas.draw()
    plot_convergence([0.0, 0.0]).figure.canvas.draw()


def test_what_cannot_be_drawn_as_a_run_is_told_why(result):
    with pytest.raises(
        ValueError, match="x='hours': draw against 'iterations', 'evaluations', 'seconds' or an"
    ):
        plot_convergence(result.history, x="hours")
    with pytest.raises(ValueError, match="no column 'seconds' in this run; it has value"):
        plot_convergence([1.0, 2.0], x="seconds")
    with pytest.raises(ValueError, match="no column 'kappa' in this run; it has iteration, loss"):
        plot_convergence(result.history, y="kappa")
    with pytest.raises(ValueError, match=r"array of shape \(2, 2\); plot_convergence takes one value per"):
        plot_convergence(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"x has shape \(3,\), but there are 2 values"):
        plot_convergence([1.0, 2.0], x=[1, 2, 3])
    with pytest.raises(ValueError, match="empty dictionary"):
        plot_convergence({})
    with pytest.raises(ValueError, match="several runs have their names in the dictionary"):
        plot_convergence({"MOD": [1.0]}, label="MOD")
    assert not plt.get_fignums()  # nothing was begun


# Atoms.


def test_atoms_are_small_pictures_in_a_grid(result):
    ax = plot_atoms(result.dictionary)
    canvas = np.ma.filled(ax.images[0].get_array(), np.nan)
    assert canvas.shape == (3 * 4 + 1, 4 * 4 + 1)  # 3 rows of 4 pictures of 3×3, with lines between
    for i, atom in enumerate(result.dictionary.T):
        top, left = 1 + i // 4 * 4, 1 + i % 4 * 4
        picture = canvas[top : top + 3, left : left + 3]
        np.testing.assert_array_equal(picture, atom.reshape(3, 3) / np.abs(atom).max())
    assert np.isnan(canvas[0]).all() and np.isnan(canvas[:, 0]).all()
    ax.figure.canvas.draw()


def test_atoms_of_another_shape():
    ax = plot_atoms(np.ones((6, 5)), shape=(2, 3), columns=5)
    assert ax.images[0].get_array().shape == (1 * 3 + 1, 5 * 4 + 1)
    with pytest.raises(ValueError, match=r"atoms of length 6 are no 2×2 images; give shape="):
        plot_atoms(np.ones((6, 5)))
    with pytest.raises(ValueError, match=r"atoms of length 8 are no 2×2×2 images; give shape="):
        plot_atoms(np.ones((8, 5)), shape=(2, 2, 2))
    with pytest.raises(ValueError, match=r"shape \(6,\); it needs an atom in every column"):
        plot_atoms(np.ones(6))


def test_atoms_of_three_channels_are_in_colour():
    atoms = np.random.default_rng(0).standard_normal((12, 4))
    atoms[:, 3] = 0
    canvas = plot_atoms(atoms, shape=(2, 2, 3)).images[0].get_array()
    assert canvas.shape == (7, 7, 3) and canvas.min() >= 0 and canvas.max() <= 1
    first = atoms[:, 0].reshape(2, 2, 3)
    np.testing.assert_allclose(canvas[1:3, 1:3], (first / np.abs(first).max() + 1) / 2)
    np.testing.assert_array_equal(canvas[4:6, 4:6], 0.5)  # zero is grey
    np.testing.assert_array_equal(canvas[0], 1.0)


def test_a_single_atom_and_an_atom_of_zero():
    assert plot_atoms(np.ones((4, 1))).images[0].get_array().shape == (4, 4)
    plot_atoms(np.zeros((4, 2))).figure.canvas.draw()


# Line searches.


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
    # 4 at 0, 2.5 at 1 and 3 at 3: after the second probe a minimum is known to be between 0 and 3.
    bracket = next(patch for patch in ax.patches if patch.get_label() == "bracket after probe 2")
    assert (bracket.get_x(), bracket.get_x() + bracket.get_width()) == (0, 3)


def test_against_the_length_of_the_step_everything_is_stretched():
    ax = plot_line_search(SEARCH, phi=parabola, length=True)  # the direction has norm 2
    star = next(line for line in ax.lines if line.get_marker() == "*")
    assert star.get_xydata().tolist() == [[4.0, 2.0]] and "length = 4" in star.get_label()
    curve = ax.lines[0]
    np.testing.assert_allclose(curve.get_ydata(), parabola(curve.get_xdata() / 2))


def test_a_span_shows_a_part_and_takes_probes_apart():
    search = searched(mdl.GoldenSection())
    near = [i for i, (t, _) in enumerate(search.probes, start=1) if 1.9 <= t <= 2.1]
    ax = plot_line_search(search, phi=parabola, span=(1.9, 2.1))
    assert numbers(ax) == near
    assert len(ax.texts) > sum(1 for text in plot_line_search(search).texts if "–" in text.get_text())
    assert ax.get_xlim()[1] == 2.1 and ax.get_ylim()[1] < 2.1


def test_probes_on_top_of_each_other_share_a_label():
    probes = [(1.0, 1.0), (2.0, 3.0), (1.001, 1.0), (1.002, 1.0), (1.003, 1.0)]
    ax = plot_line_search(SearchRecord("Mine", 4.0, -4.0, 1.0, probes, 1.0))
    assert sorted(text.get_text() for text in ax.texts) == ["1, 3–5", "2"]


def test_labels_do_not_lie_on_each_other():
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


def test_what_is_no_search_is_told_why():
    with pytest.raises(ValueError, match=r"search is a list; draw one record at a time: .* searches\[0\]"):
        plot_line_search([SEARCH])
    with pytest.raises(ValueError, match=r"span=\(2, 1\) is empty"):
        plot_line_search(SEARCH, span=(2, 1))


# Paths on the sphere.


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


def test_what_is_behind_is_dimmed_also_after_turning():
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


def test_the_sphere_is_painted_with_the_cost():
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


def test_the_cost_is_asked_with_points_of_the_shape_of_the_path():
    shapes = set()
    path = [point[:, None] for point in quarter()]
    plot_sphere_path(path, cost=lambda x: shapes.add(x.shape) or float(x[0, 0]))
    assert shapes == {(3, 1)}
    plot_sphere_path(cost=lambda x: 1.0).figure.canvas.draw()  # constant: no level lines, no division by zero


def test_level_lines_are_level():
    from manifold_dl.plotting.globe import draw_contours, smooth

    _, ax = plt.subplots(subplot_kw={"projection": "3d"})
    draw_contours(ax, smooth(lambda x: x[:, 2] ** 2), [0.25])
    points = halves(ax)[0].points
    heights = points[~np.isnan(points[:, 0]), 2]
    np.testing.assert_allclose(abs(heights), 0.5, atol=1e-3)  # cells of 0.75 degrees, interpolated linearly
    assert heights.min() < 0 < heights.max()


def test_several_paths_in_the_looks_of_their_methods_and_a_second_call():
    from manifold_dl.plotting.globe import MARK

    ax = plot_sphere_path({"steepest descent": quarter(), "trust region": quarter()[::2]}, view=(10, 20))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["steepest descent", "trust region"]
    colours = {half.get_color() for half in halves(ax)}
    assert {method_style(name)["color"] for name in ("steepest descent", "trust region")} <= colours
    plot_sphere_path(-quarter(), ax=ax, label="other")
    assert (ax.elev, ax.azim) == (10, 20)  # one view, one sphere
    assert sum(artist.get_gid() == MARK for artist in ax.get_children()) == 1
    assert "other" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_what_is_no_path_on_a_sphere_is_told_why():
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


# Condition numbers.


def test_the_share_of_signals_above_a_condition_number():
    D = datasets.synthetic(6, 10, 30, sparsity=3, rng=0).dictionary
    support = np.array([[0, 1, 2], [3, 4, 5], [5, 6, 7], [0, 5, 9]])
    ax = plot_condition(D, support, label="mine", color="C3")
    values = [np.linalg.cond(D[:, atoms]) for atoms in support]
    x, y = ax.lines[0].get_data()
    np.testing.assert_allclose(x, [1, *sorted(values)])
    np.testing.assert_allclose(y, [1, 0.75, 0.5, 0.25, 0])
    assert ax.lines[0].get_drawstyle() == "steps-post" and ax.get_xscale() == "log"
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[max(values), 0]])  # κ(D) is marked
    assert ax.texts[0].get_text() == f"{max(values):.3g}"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mine"]


def test_dependent_atoms_are_counted():
    D = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    ax = plot_condition(D, [[0, 1], [0, 2], [0, 1], [1, 2]])
    assert ax.lines[0].get_ydata().tolist()[-1] == 0.25 and ax.texts[0].get_text() == "1 of 4 signals: κ = ∞"
    plot_condition(D, [[0, 2]]).figure.canvas.draw()
    with pytest.raises(ValueError, match="the support has no signals"):
        plot_condition(D, np.zeros((3, 0), dtype=bool))


# Recovery.


def test_success_rates_with_the_intervals_of_wilson():
    table = {"method": ["MOD"] * 10 + ["K-SVD"] * 4, "n": [50] * 10 + [60, 60, 50, 50]}
    table["success"] = [1] * 3 + [0] * 7 + [1, 0, 1, 1]
    ax = plot_recovery(table, bound=40)
    containers = {container.get_label(): container for container in ax.containers}
    assert list(containers) == ["MOD", "K-SVD"]
    line, _, (bars,) = containers["MOD"]
    assert line.get_xydata().tolist() == [[50, 0.3]]
    # By hand, with z = 1.96: 3 of 10 has the centre (0.3 + 0.192)/1.384 and the half width 0.248.
    np.testing.assert_allclose(bars.get_segments()[0], [[50, 0.1078], [50, 0.6032]], atol=1e-4)
    line, _, (bars,) = containers["K-SVD"]
    assert line.get_xydata().tolist() == [[50, 1.0], [60, 0.5]]  # in order of n
    np.testing.assert_allclose(bars.get_segments()[0], [[50, 2 / (2 + 1.959964**2)], [50, 1]], atol=1e-6)
    look = method_style("K-SVD")
    assert (line.get_color(), line.get_marker()) == (look["color"], look["marker"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["MOD", "K-SVD"]


def test_the_interval_solves_its_quadratic_equation():
    # Wilson's ends are the p with (p̂ − p)² = z² p(1 − p)/n.
    for k, n in ((0, 7), (2, 7), (7, 7), (19, 20)):
        for p in wilson_interval(k, n):
            assert (k / n - p) ** 2 == pytest.approx(1.959964**2 * p * (1 - p) / n, abs=1e-12)


def test_the_counting_bound_is_a_labelled_vertical_line():
    ax = plot_recovery(TRIALS, bound=40)
    line = next(line for line in ax.lines if list(line.get_xdata()) == [40, 40])
    assert list(line.get_ydata()) == [0, 1]  # of the height of the axes
    assert [text.get_text() for text in ax.texts] == ["counting bound n = 40"]
    assert ax.get_xlim()[0] < 40
    assert not plot_recovery(TRIALS).texts


def test_a_table_as_it_comes_from_a_file(tmp_path):
    path = tmp_path / "recovery.csv"
    path.write_text("method,n,success\nMOD,50,0\nMOD,50,1\nK-SVD,60,True\n")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    table = {name: [row[name] for row in rows] for name in rows[0]}
    ax = plot_recovery(table)
    assert [container[0].get_xydata().tolist() for container in ax.containers] == [[[50, 0.5]], [[60, 1]]]


def test_what_is_no_table_of_trials_is_told_why():
    with pytest.raises(ValueError, match="table has no column n, success; plot_recovery needs method, n and"):
        plot_recovery({"method": []})
    with pytest.raises(ValueError, match=r"success is 0 or 1 for every trial, not 0\.5"):
        plot_recovery(TRIALS | {"success": [0, 1, 0.5]})
    with pytest.raises(ValueError, match=r"shapes \(3,\), \(3,\) and \(2,\); they hold one entry per trial"):
        plot_recovery(TRIALS | {"success": [0, 1]})
    with pytest.raises(ValueError, match="table has no trials"):
        plot_recovery({"method": [], "n": [], "success": []})


# The backend for machines without a screen, in a process of its own.

SCRIPT = """
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.figure(); plt.plot([2, 1])
plt.show()
plt.figure(figsize=(1, 2)); plt.plot([3])
plt.show(block=True)
plt.show()
assert not plt.get_fignums()
"""


@pytest.mark.parametrize("named", [True, False])
def test_show_writes_files_named_after_the_script(named, tmp_path, monkeypatch):
    script = tmp_path / "07_my_script.py"
    script.write_text(SCRIPT)
    monkeypatch.setenv("MPLBACKEND", "module://manifold_dl.plotting.files")
    folder = tmp_path / "pictures"
    monkeypatch.delenv("MANIFOLD_DL_PICTURES", raising=False)
    if named:
        folder = tmp_path / "some" / "where"
        monkeypatch.setenv("MANIFOLD_DL_PICTURES", str(folder))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == [f"07_my_script_{i}.png" for i in (1, 2, 3)]
    assert plt.imread(folder / "07_my_script_3.png").shape[:2] == (400, 200)  # at 200 dots per inch
    first, second = done.stdout.splitlines()
    assert first == f"The 2 pictures are in {folder}: 07_my_script_1.png, 07_my_script_2.png"
    assert second == f"The picture is in {folder}: 07_my_script_3.png"
