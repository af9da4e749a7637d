"""Pictures: what is drawn is what was learned. Nothing is shown."""

import matplotlib
import numpy as np
import pytest

from manifold_dl import OMP, History, Reason, Result, datasets, learn_dictionary
from manifold_dl.plotting import plot_atoms, plot_convergence

matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

Y = datasets.synthetic(9, 12, 60, sparsity=2, rng=0).signals


@pytest.fixture(scope="module")
def result():
    return learn_dictionary(Y, 12, coder=OMP(sparsity=2), max_iter=4, tol=0, rng=0)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


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


def test_an_empty_history_and_a_loss_of_zero_can_be_drawn(result):
    empty = Result(result.dictionary, result.codes, History(), Reason.INTERRUPTED)
    empty.plot().figure.canvas.draw()
    history = History()
    history.restore({"iteration": [0, 1], "loss": [1.0, 0.0]})
    plot_convergence(history).figure.canvas.draw()


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
    with pytest.raises(ValueError, match=r"atoms of length 6 are no 2×2 pictures; give shape="):
        plot_atoms(np.ones((6, 5)))


def test_a_single_atom_and_an_atom_of_zero():
    assert plot_atoms(np.ones((4, 1))).images[0].get_array().shape == (4, 4)
    plot_atoms(np.zeros((4, 2))).figure.canvas.draw()
