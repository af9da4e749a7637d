"""A picture from the codes of its patches: exact codes give it back, in strips of any size."""

import numpy as np
import pytest
from textures import missing_at_random, noisy, texture

from manifold_dl.coders import OMP
from manifold_dl.images import Picture
from manifold_dl.images.reconstruction import WeightedPatches, reconstruct


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("stride", [1, 3])
def test_exact_codes_reconstruct_the_picture(channels, stride):
    # A complete dictionary and no tolerance: every patch is represented exactly, and so is the average.
    picture = Picture.of(texture(21, 30, channels), patch_size=4, stride=stride)
    D = np.linalg.qr(np.random.default_rng(0).standard_normal((picture.length, picture.length)))[0]
    clean = reconstruct(picture, D, OMP(sparsity=picture.length), sigma=0.1)
    # A few hundred rounding errors of numbers near 1.
    np.testing.assert_allclose(picture.restore(clean), texture(21, 30, channels), atol=1e-12)


def test_size_of_strips_does_not_change_the_picture(monkeypatch):
    picture = Picture.of(noisy(texture(), 0.1), patch_size=8)
    D = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 64)))[0]
    coder = OMP(sparsity=4)
    whole = reconstruct(picture, D, coder, sigma=0.1)
    monkeypatch.setattr("manifold_dl.images.reconstruction.STRIP", 100)
    # The sums are the same but for their order.
    np.testing.assert_allclose(reconstruct(picture, D, coder, sigma=0.1), whole, rtol=1e-12)


@pytest.mark.parametrize(("channels", "size"), [(1, 6), (3, 5)])
def test_numbers_of_missing_entries_and_weights_are_those_of_the_windows(channels, size):
    picture = Picture.of(texture(20, 13, channels), size)
    missing = missing_at_random(0.5, picture.pixels.shape)
    patches = WeightedPatches(picture, missing, 0.2)
    np.testing.assert_array_equal(patches.n_missing, patches.holes.sum(axis=(2, 3, 4)))
    rows, columns = np.indices(patches.n_missing.shape).reshape(2, -1)
    expected = np.where(patches.holes[rows, columns].reshape(len(rows), -1), 0.2, 1.0)
    expected /= expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(patches.at(rows, columns)[2], expected, rtol=1e-14)
