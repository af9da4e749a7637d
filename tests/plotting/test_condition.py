"""The distribution of condition numbers over the signals."""

import numpy as np
import pytest

from manifold_dl import datasets
from manifold_dl.plotting import (
    plot_condition,
)


def test_fraction_of_signals_above_each_condition_number():
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
