"""Atoms are drawn as images in a grid."""

import numpy as np
import pytest

from manifold_dl.plotting import (
    plot_atoms,
)


def test_atoms_are_images_in_a_grid(result):
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


def test_single_atom_and_zero_atom_can_be_drawn():
    assert plot_atoms(np.ones((4, 1))).images[0].get_array().shape == (4, 4)
    plot_atoms(np.zeros((4, 2))).figure.canvas.draw()
