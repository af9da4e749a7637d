"""Denoising: the arithmetic of patches exactly, the gain in decibel where there is something to gain."""

import tracemalloc

import numpy as np
import pytest

from manifold_dl.coders import OMP
from manifold_dl.images import Picture, SimilarPatches, denoise, estimate_sigma
from manifold_dl.images.reconstruction import reconstruct


def texture(rows=48, columns=56, channels=None):
    """Diagonal stripes and an edge: smooth along lines, as pictures are."""
    i, j = np.mgrid[:rows, :columns]
    picture = 0.5 + 0.2 * np.sin(0.7 * (i + j)) + 0.2 * (j > columns // 2)
    return (
        picture
        if channels is None
        else np.stack([picture * (c + 1) / channels for c in range(channels)], axis=2)
    )


def noisy(picture, sigma, seed=0):
    return picture + sigma * np.random.default_rng(seed).standard_normal(picture.shape)


def error(a, b):
    return np.sqrt(np.mean((np.asarray(a, float) - b) ** 2))


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


def test_sigma_is_estimated():
    result = denoise(noisy(texture(128, 128), 0.1), patch_size=4, n_atoms=24, max_iter=1)
    assert result.sigma == pytest.approx(0.1, rel=0.1)  # 4,096 coefficients: 2 % of noise, and some texture


def test_the_estimate_scales_with_the_picture():
    pixels = np.random.default_rng(0).standard_normal((64, 64, 1))
    assert estimate_sigma(1e6 * pixels) == pytest.approx(1e6 * estimate_sigma(pixels), rel=1e-12)


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
    [((), 8, (1500, 2500), 30), ((3,), 4, (800, 1200), 80)],
    ids=["grey", "colour"],
)
def test_memory_per_pixel_is_what_the_command_line_states(monkeypatch, channels, patch_size, sides, limit):
    monkeypatch.setattr("manifold_dl.images.similar.TILE", 2**18)  # what does not grow with the picture
    if channels:  # a strip of the smaller picture would be all of it
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
