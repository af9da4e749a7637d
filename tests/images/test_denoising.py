"""Denoising: the arithmetic of patches exactly, the gain in decibel where there is something to gain."""

import tracemalloc

import numpy as np
import pytest
from textures import error, noisy, texture

from manifold_dl.images import SimilarPatches, denoise


@pytest.mark.parametrize("channels", [None, 3])
def test_denoising_reduces_the_error(channels):
    clean = texture(channels=channels)
    result = denoise(noisy(clean, 0.1), sigma=0.1, patch_size=6, n_atoms=80, max_iter=4)
    # An average over 36 patches of a few atoms each takes away most of the noise; half is a safe claim.
    assert error(result.image, clean) < 0.5 * 0.1
    assert result.dictionary.shape == (36 * (channels or 1), 80)
    assert result.sigma == 0.1
    assert len(result.history) <= 4


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_the_result_has_the_type_and_range_of_the_picture(dtype):
    top = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    dirty = np.clip(noisy(texture(), 0.1), 0, 1) * top
    result = denoise(dirty.astype(dtype), sigma=0.1 * top, patch_size=4, n_atoms=24, max_iter=2)
    assert result.image.dtype == dtype
    assert result.image.shape == dirty.shape
    assert error(result.image / top, texture()) < 0.07


def test_eight_bit_and_float_pictures_agree():
    dirty = np.clip(np.rint(255 * noisy(texture(), 0.1)), 0, 255)
    eight = denoise(dirty.astype(np.uint8), sigma=25.5, patch_size=4, n_atoms=24, max_iter=2)
    floats = denoise(dirty / 255, sigma=0.1, patch_size=4, n_atoms=24, max_iter=2)
    # The same problem in other units; what is left is the rounding to whole grey levels.
    assert np.abs(eight.image - 255 * floats.image).max() <= 0.5 + 1e-6


def test_the_smallest_picture_is_one_patch():
    assert denoise(texture(8, 8), sigma=0.01, n_atoms=4, max_iter=1).image.shape == (8, 8)


def test_picture_without_noise_is_unchanged():
    clean = texture()
    np.testing.assert_array_equal(denoise(clean, sigma=0.0, patch_size=4, n_atoms=8, max_iter=1).image, clean)


def test_the_same_seed_gives_the_same_picture():
    dirty = noisy(texture(), 0.1)
    one, other = (
        denoise(dirty, 0.1, patch_size=4, n_atoms=24, max_iter=2, rng=5, n_patches=500, threads=threads).image
        for threads in (1, 2)
    )
    np.testing.assert_array_equal(one, other)


BAD = [
    (np.full((20, 20), np.nan), {}, "NaN"),
    (np.zeros((4, 20)), {}, "smaller than a patch"),
    (np.zeros((20, 20, 4)), {}, "rows×columns"),
    (np.zeros((20, 20), dtype=complex), {}, "complex"),
    (np.zeros((20, 20)), {"sigma": -1.0}, "sigma=-1.0"),
    (np.zeros((20, 20)), {"sigma": 1.0, "gain": 0.0}, "gain=0.0"),
    (np.zeros((20, 20)), {"sigma": 1.0, "n_patches": 0}, "n_patches=0"),
    (np.zeros((20, 20)), {"sigma": 1.0, "stride": 0}, "stride=0"),
]


@pytest.mark.parametrize(("image", "options", "words"), BAD)
def test_bad_input_is_refused_with_a_sentence(image, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        denoise(image, **options)


@pytest.mark.parametrize(
    # In colour with small patches, which change the time and not what grows with the picture.
    ("channels", "patch_size", "sides", "limit"),
    [((), 8, (800, 1300), 30), ((3,), 4, (800, 1200), 80)],
    ids=["grey", "colour"],
)
def test_memory_per_pixel_is_what_the_command_line_states(monkeypatch, channels, patch_size, sides, limit):
    monkeypatch.setattr("manifold_dl.images.similar.TILE", 2**18)  # what does not grow with the picture
    # A strip of the smaller picture would be all of it.
    monkeypatch.setattr("manifold_dl.images.reconstruction.STRIP", 2**13)

    def peak(side):
        picture = np.full((side, side, *channels), 100, dtype=np.uint8)
        tracemalloc.start()
        try:
            small = SimilarPatches(n_similar=2, radius=1, stride=patch_size)  # the time does not matter here
            settings = {"n_atoms": 64, "max_iter": 1, "n_patches": 500, "stride": 8, "refine": small}
            denoise(picture, 5.0, patch_size=patch_size, **settings)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(200)  # imports
    # For each channel the picture (1 byte), its pixels, the guide and the new sum (8 each); a weight (4),
    # strips of patches.
    small, large = sides
    assert peak(large) - peak(small) < limit * (large**2 - small**2)
