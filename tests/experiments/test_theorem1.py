"""Theorem 1: gradient paths on the sphere."""

import numpy as np
import pytest
from small_studies import labelled, read_back

from manifold_dl.experiments import theorem1
from manifold_dl.experiments.tables import select


@pytest.fixture(scope="module")
def landscape(tmp_path_factory):
    return read_back(theorem1.theorem1, tmp_path_factory, starts=6)


def test_theorem1_theta_decreases_along_every_path_outside_the_bad_set(landscape):
    _, parameters = landscape
    for start in range(7):
        theta = [row["theta"] for row in theorem1.measure(parameters, 0, start=start)]
        assert np.all(np.diff(theta) < 0)


def test_theorem1_paths_outside_the_bad_set_end_at_a_global_minimum(landscape):
    table, parameters = landscape
    values = np.array(parameters["singular_values"]) ** 2
    for start in range(7):
        path = select(table, start=start)
        # The path that begins 1e-3 from B falls to a fifth of a degree in 150 steps, the others farther.
        assert path["theta"][-1] < 1
        # What is left of ‖A‖² when the largest singular value is taken away; θ² of it is missing.
        assert path["value"][-1] == pytest.approx(values[1:].sum(), abs=np.radians(1) ** 2)


def test_theorem1_path_in_the_bad_set_ends_at_the_saddle(landscape):
    table, parameters = landscape
    path = select(table, start=7)
    assert path["in_bad_set"].all() and not select(table, start=6)["in_bad_set"].any()
    # B repels: rounding grows by 9 % a step, to about 1e-10 degrees times a few in 150 of them.
    assert path["from_bad_set"].max() < 1e-6
    values = np.array(parameters["singular_values"]) ** 2
    # Along B the rate is that of the second gap, 0.36 · 0.2 a step: 1e-4 of the angle, squared, is left.
    assert path["value"][-1] == pytest.approx(values[[0, 2]].sum(), abs=1e-6)


def test_theorem1_quadratic_form_follows_from_the_values(landscape):
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
