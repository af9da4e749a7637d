"""Smaller pictures: white noise stays white, smooth pictures stay the same, and denoising gains by them."""

import math

import numpy as np
import pytest
from scipy.fft import dctn

from manifold_dl.images import Picture, SimilarPatches
from manifold_dl.images.scales import halved, replace_low_frequencies


@pytest.mark.parametrize("shape", [(64, 64, 1), (33, 50, 3), (8, 9, 1)])
def test_white_noise_stays_white_and_becomes_half_as_strong(shape):
    # The map is linear: its matrix A makes white noise white exactly if AAᵀ is a multiple of the identity.
    height, width = min(shape[0], 12), min(shape[1], 11)
    units = np.eye(height * width).reshape(height, width, -1)
    A = halved(units).reshape(-1, height * width)
    strength = (height // 2) * (width // 2) / (height * width)
    np.testing.assert_allclose(A @ A.T, strength * np.eye(len(A)), atol=1e-14)
    assert halved(np.zeros(shape)).shape == (shape[0] // 2, shape[1] // 2, shape[2])


def test_a_smooth_picture_is_the_same_at_half_the_size():
    def waves(side):
        at = np.pi * (np.arange(side) + 0.5) / side
        return (5 + np.add.outer(np.cos(at), np.cos(3 * at)))[:, :, None]

    np.testing.assert_allclose(halved(waves(40)), waves(20), atol=1e-13)


@pytest.mark.parametrize("shape", [(24, 24, 1), (33, 50, 3)])
def test_low_frequencies_are_replaced_and_the_others_stay(shape):
    rng = np.random.default_rng(0)
    pixels, other = rng.random(shape), rng.random(shape)
    changed = pixels.copy()
    replace_low_frequencies(changed, halved(other))
    before, given, after = (dctn(one, axes=(0, 1), norm="ortho") for one in (pixels, other, changed))
    low = np.zeros(shape, bool)
    low[tuple(slice(math.ceil(0.7 * (side // 2))) for side in shape[:2])] = True
    np.testing.assert_allclose(after, np.where(low, given, before), atol=1e-12)


def test_smaller_pictures_remove_noise_of_long_waves():
    # Grey without structure: all that a result shows is noise. A guide that has kept the long waves of the
    # noise hands them on, because a group of patches has the mean of its guide.
    noise = np.random.default_rng(0).standard_normal((96, 96))
    picture, guide = Picture.of(noise, 4), np.zeros((96, 96, 1))
    waves = np.zeros((48, 48, 1))
    replace_low_frequencies(waves, halved(halved(picture.pixels)))
    replace_low_frequencies(guide, waves)
    alone, together = (
        SimilarPatches(halvings=halvings)(picture, guide.copy(), sigma=1.0) for halvings in (0, None)
    )
    assert np.std(together) < 0.5 * np.std(alone)


def test_small_pictures_are_not_halved():
    noise = np.random.default_rng(0).standard_normal((79, 200))  # less than twice five patches of 8
    picture = Picture.of(noise, 8)
    one, other = (SimilarPatches(halvings=n)(picture, picture.pixels.copy(), sigma=1.0) for n in (2, 0))
    np.testing.assert_array_equal(one, other)
