"""Table 1: running times as ratios to MOD."""

import numpy as np
import pytest
from small_studies import labelled, read_back

from manifold_dl.experiments import table1
from manifold_dl.experiments.methods import PAPER
from manifold_dl.experiments.tables import select

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
    return read_back(table1.table1, tmp_path_factory, figures=SMALL_FIGURES, repeats=2)[0]


def test_table1_has_a_ratio_for_every_figure_method_and_turn(times):
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
