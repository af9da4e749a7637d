"""Success rates with Wilson's intervals and the counting bound."""

import csv

import numpy as np
import pytest

from manifold_dl.plotting import (
    method_style,
    plot_recovery,
)
from manifold_dl.plotting.recovery import wilson_interval

TRIALS = {"method": ["MOD", "MOD", "K-SVD"], "n": [50, 60, 50], "success": [0, 1, 1]}


def test_success_rates_have_wilson_intervals():
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


def test_wilson_interval_solves_its_quadratic_equation():
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


def test_table_of_strings_from_a_csv_file_is_accepted(tmp_path):
    path = tmp_path / "recovery.csv"
    path.write_text("method,n,success\nMOD,50,0\nMOD,50,1\nK-SVD,60,True\n")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    table = {name: [row[name] for row in rows] for name in rows[0]}
    ax = plot_recovery(table)
    assert [container[0].get_xydata().tolist() for container in ax.containers] == [[[50, 0.5]], [[60, 1]]]


def test_invalid_tables_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="table has no column n, success; plot_recovery needs method, n and"):
        plot_recovery({"method": []})
    with pytest.raises(ValueError, match=r"success is 0 or 1 for every trial, not 0\.5"):
        plot_recovery(TRIALS | {"success": [0, 1, 0.5]})
    with pytest.raises(ValueError, match=r"shapes \(3,\), \(3,\) and \(2,\); they hold one entry per trial"):
        plot_recovery(TRIALS | {"success": [0, 1]})
    with pytest.raises(ValueError, match="table has no trials"):
        plot_recovery({"method": [], "n": [], "success": []})
