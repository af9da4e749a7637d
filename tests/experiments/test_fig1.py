"""Figure 1: ill-conditioned dictionaries, at a small size."""

import numpy as np
import pytest
from small_studies import labelled, read_back

from manifold_dl.experiments import fig1
from manifold_dl.experiments.methods import PAPER, TRUTH
from manifold_dl.experiments.tables import in_order, select


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return read_back(fig1.fig1, tmp_path_factory, trials=1, iterations=100)[0]


def test_figure1_three_methods_end_ill_conditioned_and_one_does_not(course):
    last = select(course, draw=3, iteration=100)
    kappa = dict(zip(last["method"].tolist(), last["kappa"], strict=True))
    assert all(kappa[method] > 10 for method in PAPER[:3])
    # The dictionary that made the signals has 3.7, the start 3.
    assert kappa["regularized SimCO"] < 5 and kappa[TRUTH] < 5
    assert np.all(select(course, draw=3, iteration=0)["kappa"] < 5)


def test_figure1_gradients_do_not_vanish_at_singular_points(course):
    runs = {method: select(course, draw=3, method=method) for method in PAPER}
    for method in PAPER[:3]:
        gradient = runs[method]["gradient"]
        # A descent that converges linearly would have lost much more in the second half of the run.
        assert gradient[-1] > 0.8 * gradient[50]
        # Measured: 5 to 8 against 0.2.
        assert runs[method]["objective"][-1] > 10 * runs["regularized SimCO"]["objective"][-1]


def test_figure1_table_has_last_iterates_and_all_of_the_example(course):
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
