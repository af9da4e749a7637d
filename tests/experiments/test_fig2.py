"""Figure 2, in a few seconds."""

import matplotlib.figure
import numpy as np
import pytest
from small_studies import measured

from manifold_dl import experiments
from manifold_dl.experiments import fig2
from manifold_dl.experiments.tables import means, select


class TestFigure2:
    @pytest.fixture(scope="class")
    @classmethod
    def table(cls):
        study = experiments.find("fig2a")
        parameters = {**study.parameters(quick=True), "signals": [60], "iterations": 120, "trials": 5}
        return measured(study, parameters)

    def test_ridge_lowers_the_error_with_few_signals(self, table):
        # The paper's order: regularized SimCO below MOD and K-SVD. Full runs put a factor of 13
        # between them at n = 60; five draws of 120 iterations must keep a factor of one.
        errors = {method: errors[60] for method, errors in means(table, "error").items()}
        assert errors["regularized SimCO"] < min(errors["MOD"], errors["K-SVD"])

    def test_ridge_keeps_dictionaries_well_conditioned(self, table):
        kappa = {method: np.median(select(table, method=method)["kappa"]) for method in set(table["method"])}
        assert kappa["regularized SimCO"] < 10 < kappa["primitive SimCO"]

    def test_error_of_the_true_dictionary_is_the_noise_outside_the_supports(self):
        study = experiments.find("fig2b")
        parameters = {**study.parameters(quick=True), "signals": [300], "iterations": 5, "trials": 2}
        errors = select(measured(study, parameters), method="true dictionary")["error"]
        # At 20 dB noise has 1 % of the energy S = 4 of a signal; S of its m directions are fitted. With 300
        # signals of 12 free directions the mean is within 3 % or so of that.
        np.testing.assert_allclose(errors, 0.04 * (16 - 4) / 16, rtol=0.15)

    def test_the_figure_shows_the_means(self, table):
        figure = fig2.draw(table)
        assert isinstance(figure, matplotlib.figure.Figure)
        ax = figure.axes[0]
        assert "signals" in ax.get_xlabel()
        drawn = {curve.get_label(): curve.lines[0].get_ydata()[0] for curve in ax.containers}
        expected = {method: errors[60] for method, errors in means(table, "error").items()}
        assert drawn == pytest.approx(expected)
        matplotlib.pyplot.close(figure)
