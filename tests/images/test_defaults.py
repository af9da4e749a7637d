"""The start and the penalty that denoising uses by default."""

import numpy as np
import pytest

from manifold_dl.images import Picture, cosines
from manifold_dl.images.defaults import tethered


def test_weight_of_the_tether_falls_with_patches_and_grows_with_noise():
    start = cosines(Picture.of(np.zeros((16, 16)), 8), 32)
    (few,) = tethered(start, noise_energy=2.0, n_patches=1_000).regularizers
    (many,) = tethered(start, noise_energy=4.0, n_patches=20_000).regularizers
    assert few.weight == pytest.approx(10 * many.weight)
    assert few.value(start) == pytest.approx(0, abs=1e-12)  # unit atoms, at rest
    assert len(tethered("data", 1.0, 1_000).regularizers) == 0  # no start to hold on to


@pytest.mark.parametrize("count", [1, 3, 4, 24, 256])
def test_cosines_in_colour_are_unit_atoms_of_one_colour_each(count):
    D = cosines(Picture.of(np.zeros((16, 16, 3)), 8), count)
    assert D.shape == (192, count)
    np.testing.assert_allclose(np.linalg.norm(D, axis=0), 1, rtol=1e-12)
    channels = D.reshape(3, 64, count)
    for atom in np.moveaxis(channels, 2, 0):
        assert np.linalg.matrix_rank(atom, tol=1e-10) == 1
