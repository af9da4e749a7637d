"""What the experiments without an average over n claim, in a form of a few seconds; and that they draw it.

Each is measured once, at a small size. The claims are those of docs/reproduction.md.
"""

import sys

import numpy as np
import pytest

from manifold_dl.experiments import fig1, fig4, solvers, table1, theorem1
from manifold_dl.experiments.methods import PAPER, TRUTH, draw_signals
from manifold_dl.experiments.running import redraw, run
from manifold_dl.experiments.tables import as_csv, in_order, read_csv, select
from manifold_dl.plotting import style
from manifold_dl.problem.update_problem import update_problem


def measured(study, tmp_path_factory, **changes):
    """The table of a small run, as it is read back from its file, and the parameters."""
    parameters = {**study.parameters(quick=True), **changes}
    rows = [row for part in study.parts(parameters) for row in study.measure(parameters, 0, **part)]
    path = tmp_path_factory.mktemp(study.name) / "table.csv"
    path.write_text(as_csv(rows), encoding="utf-8")
    return read_csv(path), parameters


@pytest.fixture
def drawn():
    """Draw in our style, and close what was drawn."""
    import matplotlib.pyplot as plt

    with style():
        yield lambda study, *data: study.draw(*data)
    plt.close("all")


def labelled(figure):
    """The axes that have axes to label."""
    axes = [ax for ax in figure.axes if ax.axison and ax.name != "3d"]
    assert axes
    assert axes[0].get_ylabel()
    assert all(ax.get_xlabel() or any(label.get_text() for label in ax.get_xticklabels()) for ax in axes)
    return axes


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return measured(fig1.fig1, tmp_path_factory, trials=1, iterations=100)[0]


def test_figure1_three_methods_end_ill_conditioned_and_one_does_not(course):
    last = select(course, draw=3, iteration=100)
    kappa = dict(zip(last["method"].tolist(), last["kappa"], strict=True))
    assert all(kappa[method] > 10 for method in PAPER[:3])
    # The dictionary that made the signals has 3.7, the start 3.
    assert kappa["regularized SimCO"] < 5 and kappa[TRUTH] < 5
    assert np.all(select(course, draw=3, iteration=0)["kappa"] < 5)


def test_figure1_the_gradients_do_not_vanish_and_the_objective_stays_behind(course):
    runs = {method: select(course, draw=3, method=method) for method in PAPER}
    for method in PAPER[:3]:
        gradient = runs[method]["gradient"]
        # A descent that converges linearly would have lost much more in the second half of the run.
        assert gradient[-1] > 0.8 * gradient[50]
        # Measured: 5 to 8 against 0.2.
        assert runs[method]["objective"][-1] > 10 * runs["regularized SimCO"]["objective"][-1]


def test_figure1_every_draw_has_its_end_and_the_example_its_course(course):
    assert in_order(course["draw"]) == [0, 3]
    assert len(select(course, draw=0)["method"]) == len(PAPER) + 1
    assert len(select(course, draw=3, method="MOD")["method"]) == 101


def test_figure1_draws_what_is_in_the_table(course, drawn):
    axes = labelled(drawn(fig1.fig1, course))
    assert len(axes) == 4
    for ax, column in zip(axes, ("objective", "gradient", "kappa"), strict=False):
        for line, method in zip(ax.lines[:4], PAPER, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), select(course, draw=3, method=method)[column])
    dots = axes[3].lines[0]
    np.testing.assert_array_equal(dots.get_ydata(), select(course, iteration=100, method="MOD")["kappa"])


@pytest.fixture(scope="module")
def landscape(tmp_path_factory):
    return measured(theorem1.theorem1, tmp_path_factory, starts=6)


def test_theorem1_theta_falls_along_every_path_outside_the_bad_set(landscape):
    _, parameters = landscape
    for start in range(7):
        theta = [row["theta"] for row in theorem1.measure(parameters, 0, start=start)]
        assert np.all(np.diff(theta) < 0)


def test_theorem1_those_paths_end_at_a_global_minimum(landscape):
    table, parameters = landscape
    values = np.array(parameters["singular_values"]) ** 2
    for start in range(7):
        path = select(table, start=start)
        # The path that begins 1e-3 from B falls to a fifth of a degree in 150 steps, the others farther.
        assert path["theta"][-1] < 1
        # What is left of ‖A‖² when the largest singular value is taken away; θ² of it is missing.
        assert path["value"][-1] == pytest.approx(values[1:].sum(), abs=np.radians(1) ** 2)


def test_theorem1_a_path_that_starts_in_the_bad_set_stays_and_ends_at_the_saddle(landscape):
    table, parameters = landscape
    path = select(table, start=7)
    assert path["in_bad_set"].all() and not select(table, start=6)["in_bad_set"].any()
    # B repels: rounding grows by 9 % a step, to about 1e-10 degrees times a few in 150 of them.
    assert path["from_bad_set"].max() < 1e-6
    values = np.array(parameters["singular_values"]) ** 2
    # Along B the rate is that of the second gap, 0.36 · 0.2 a step: 1e-4 of the angle, squared, is left.
    assert path["value"][-1] == pytest.approx(values[[0, 2]].sum(), abs=1e-6)


def test_theorem1_the_landscape_comes_from_the_values_alone(landscape):
    table, parameters = landscape
    eigenvalues = np.linalg.eigvalsh(theorem1.quadratic_form(table))
    values = np.array(parameters["singular_values"]) ** 2
    # f(u) = ‖A‖² − ‖Aᵀu‖²; the table keeps six digits.
    np.testing.assert_allclose(eigenvalues, values.sum() - values, atol=1e-5)


def test_theorem1_draws_what_is_in_the_table(landscape, drawn):
    table, _ = landscape
    figure = drawn(theorem1.theorem1, table)
    sphere, plane = figure.axes
    assert sphere.name == "3d"
    assert labelled(figure) == [plane]
    assert len(plane.lines) == 8
    for start, line in enumerate(plane.lines):
        np.testing.assert_array_equal(line.get_ydata(), select(table, start=start)["theta"])


PROBLEM = {"shape": [8, 12], "signals": 100, "sparsity": 2, "iterations": 500}


@pytest.fixture(scope="module")
def race(tmp_path_factory):
    return measured(solvers.solvers, tmp_path_factory, problems=[PROBLEM], repeats=1)


def test_solvers_every_solver_reaches_the_same_minimum(race):
    table, _ = race
    ends = [select(table, solver=name)["gap"][-1] for name in solvers.LOOKS]
    # They stop at gradients of 1e-9 ‖Y‖²; the gap is of the order of the square.
    assert max(ends) < 1e-10


def test_solvers_the_trust_region_needs_the_fewest_iterations_and_golden_section_most_evaluations(race):
    table, _ = race
    iterations, evaluations = {}, {}
    for name in solvers.LOOKS:
        course = select(table, solver=name)
        there = np.flatnonzero(course["gap"] < 1e-8)[0]
        iterations[name], evaluations[name] = course["iteration"][there], course["evaluations"][there]
    assert min(iterations, key=iterations.get) == "trust region"
    assert max(evaluations, key=evaluations.get) == "steepest descent, golden section"


def test_solvers_evaluations_are_those_that_the_problem_counts(race):
    table, parameters = race
    _, X, Y, start = draw_signals(8, 12, 100, 2, 0, snr_db=parameters["snr_db"])
    for name in solvers.LOOKS:
        problem = update_problem(Y, X.astype(bool), mu=parameters["mu"], threads=1)
        solvers.optimizers(500, 1e-9 * problem.scale)[name].run(problem, initial_point=start)
        course = select(table, solver=name)
        assert len(course["iteration"]) == len(problem.record)
        counts = problem.counts
        total = counts.value + counts.gradient + counts.hessian + counts.probe
        # After the last point there may be one more search, in vain: golden section takes up to 40 probes.
        assert total - 40 <= course["evaluations"][-1] <= total
        assert np.all(np.diff(course["evaluations"]) > 0) and np.all(np.diff(course["seconds"]) >= 0)


def test_solvers_draws_what_is_in_the_table(race, drawn):
    table, _ = race
    axes = labelled(drawn(solvers.solvers, table))
    for ax, column in zip(axes, ("iteration", "evaluations", "seconds"), strict=True):
        for line, name in zip(ax.lines, solvers.LOOKS, strict=True):
            np.testing.assert_array_equal(line.get_xdata(), select(table, solver=name)[column])


SMALL_PICTURE = {
    "crop": [100, 220, 64],
    "shown": [110, 230, 16],
    "atoms": 100,
    "patches": 400,
    "iterations": 3,
}


@pytest.fixture(scope="module")
def denoised(tmp_path_factory):
    pytest.importorskip("skimage")
    folder = tmp_path_factory.mktemp("fig4")
    parameters = {**fig4.fig4.parameters(quick=True), **SMALL_PICTURE, "trials": 1}
    return run(fig4.fig4, folder, parameters=parameters), parameters, folder


def test_figure4_every_method_gains_over_the_noisy_picture(denoised):
    table, _, _ = denoised
    noisy = select(table, method=fig4.NOISY)["psnr"][0]
    # 20 log₁₀(255/25); the noise of 4096 pixels has its variance to 2 %, which is 0.1 dB.
    assert noisy == pytest.approx(20.17, abs=0.3)
    for method in (fig4.START, *PAPER):
        assert select(table, method=method)["psnr"][0] > noisy + 3


def test_figure4_the_pictures_are_kept_and_drawn(denoised, drawn):
    table, parameters, folder = denoised
    with np.load(folder / "fig4.npz", allow_pickle=False) as file:
        pictures = dict(file)
    clean, _ = fig4.noisy_picture(parameters, 0, 0)
    np.testing.assert_array_equal(pictures["original"], clean[10:26, 10:26])
    figure = drawn(fig4.fig4, table, pictures)
    shown = [ax.images[0].get_array() for ax in figure.axes if ax.images]
    assert len(shown) == 6
    np.testing.assert_array_equal(shown[-1], pictures["regularized SimCO"])
    gains = labelled(figure)[0]
    highest = max(line.get_ydata().max() for line in gains.lines)
    best = table["psnr"].max() - select(table, method=fig4.NOISY)["psnr"][0]
    assert highest == pytest.approx(best)


def test_figure4_is_redrawn_from_what_was_kept(denoised):
    _, _, folder = denoised
    before = (folder / "fig4.png").read_bytes()
    (folder / "fig4.png").unlink()
    redraw(fig4.fig4, folder)
    assert (folder / "fig4.png").read_bytes() == before


def test_figure4_says_what_is_missing_without_pictures(denoised, tmp_path):
    _, _, folder = denoised
    (tmp_path / "fig4.csv").write_bytes((folder / "fig4.csv").read_bytes())
    with pytest.raises(ValueError, match=r"there is no .*fig4\.npz"):
        redraw(fig4.fig4, tmp_path)


def test_figure4_says_how_to_get_scikit_image(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "skimage"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "manifold-dl\[images\]"'):
        fig4.parts({"trials": 1})


FEW = {"signals": [40], "iterations": 3}
SMALL_FIGURES = {
    "fig2a": FEW,
    "fig2b": FEW,
    "fig3": FEW,
    "fig4": {"crop": [100, 220, 32], "atoms": 70, "patches": 100, "iterations": 1},
}


@pytest.fixture(scope="module")
def times(tmp_path_factory):
    pytest.importorskip("skimage")
    return measured(table1.table1, tmp_path_factory, figures=SMALL_FIGURES, repeats=2)[0]


def test_table1_every_figure_method_and_turn_has_its_ratio(times):
    assert len(times["ratio"]) == len(SMALL_FIGURES) * len(PAPER) * 2
    assert np.all(times["milliseconds"] > 0) and np.all(times["ratio"] > 0)
    assert np.all(select(times, method="MOD")["ratio"] == 1)
    ksvd = select(times, figure="fig4", method="K-SVD")
    assert ksvd["paper_ratio"][0] == pytest.approx(29.43 / 1.42, rel=1e-5)  # as the table rounds


def test_table1_ratios_are_those_of_the_same_turn(times):
    for turn in range(2):
        mod = select(times, figure="fig3", method="MOD", turn=turn)["milliseconds"]
        simco = select(times, figure="fig3", method="primitive SimCO", turn=turn)
        np.testing.assert_allclose(simco["ratio"], simco["milliseconds"] / mod, rtol=1e-4)


def test_table1_draws_what_is_in_the_table(times, drawn):
    (ax,) = labelled(drawn(table1.table1, times))
    medians = [np.median(select(times, figure=name, method="K-SVD")["ratio"]) for name in SMALL_FIGURES]
    (line,) = [line for line in ax.lines if line.get_label() == "K-SVD"]
    np.testing.assert_array_equal(line.get_ydata(), medians)
