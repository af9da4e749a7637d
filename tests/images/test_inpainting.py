"""Inpainting: what never matters, what is kept, and the gain over a smooth fill."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
import textures
from textures import error, missing_at_random

from manifold_dl.coders import ForwardSelection
from manifold_dl.images import Picture, cosines, inpaint
from manifold_dl.images.filling import smooth_fill
from manifold_dl.images.reconstruction import WeightedPatches, weighted_reconstruction

SMALL = {"patch_size": 6, "n_atoms": 80, "n_patches": 1_000, "max_iter": 3}


texture = partial(textures.texture, frequency=0.9)


@pytest.mark.parametrize("channels", [None, 3])
def test_patches_fill_in_better_than_the_smooth_fill(channels):
    clean, mask = texture(channels=channels), missing_at_random(0.5)
    result = inpaint(clean, mask, **SMALL)
    missing = np.broadcast_to(mask.reshape(*mask.shape, *[1] * (clean.ndim - 2)), clean.shape)
    smooth = smooth_fill(np.atleast_3d(clean), np.atleast_3d(missing)).reshape(clean.shape)
    assert error(result.image, clean) < 0.8 * error(smooth, clean)
    np.testing.assert_array_equal(result.image[~missing], clean[~missing])
    assert result.missing == pytest.approx(mask.mean()) and len(result.history) <= 3
    assert result.dictionary.shape == (36 * (channels or 1), 80)


def test_values_of_missing_pixels_never_matter():
    clean, mask = texture(), missing_at_random(0.4)
    pictures = [
        inpaint(np.where(mask, hidden, clean), mask, **SMALL).image for hidden in (np.nan, 1e300, 0.5)
    ]
    np.testing.assert_array_equal(pictures[0], pictures[1])
    np.testing.assert_array_equal(pictures[0], pictures[2])


def test_integers_keep_their_type_and_range():
    clean, mask = (255 * texture()).astype(np.uint8), missing_at_random(0.3)
    result = inpaint(clean, mask, **SMALL)
    assert result.image.dtype == np.uint8
    assert error(result.image, clean) < 10


def test_noise_is_removed_too_where_sigma_says_so():
    clean, mask = texture(), missing_at_random(0.3)
    noisy = clean + 0.05 * np.random.default_rng(1).standard_normal(clean.shape)
    result = inpaint(noisy, mask, sigma=0.05, **SMALL)
    assert error(result.image[~mask], clean[~mask]) < 0.8 * 0.05
    assert error(result.image, clean) < error(inpaint(noisy, mask, **SMALL).image, clean)


def test_hole_without_any_observed_pixel_in_a_patch_is_filled_in():
    clean, mask = texture(), np.zeros((48, 56), bool)
    mask[15:30, 10:25] = True
    result = inpaint(clean, mask, **SMALL)
    assert np.isfinite(result.image).all()
    # Between the extremes of the texture, with what an average may overshoot.
    assert clean.min() - 0.3 < result.image.min() and result.image.max() < clean.max() + 0.3


def test_patches_without_missing_pixels_change_no_bit_of_the_missing_ones():
    clean, mask = texture(channels=3), np.zeros((48, 56, 3), bool)
    mask[20:22, 5:50] = True
    picture = Picture.of(clean, 6)
    patches = WeightedPatches(picture, mask, 0.2)
    D, coder = cosines(picture, 64), ForwardSelection(sparsity=20, tol=108 * 1e-4)
    some, every = (
        weighted_reconstruction(patches, D, coder, only_missing=choice) for choice in (True, False)
    )
    np.testing.assert_array_equal(some[mask], every[mask])
    np.testing.assert_array_equal(some[:12], clean[:12])  # no patch with a missing pixel reaches there


@pytest.mark.parametrize("channels", [None, 3])
def test_strips_change_no_more_than_the_order_of_sums(monkeypatch, channels):
    # In double precision, and without the symmetries of the texture: there rounding decides between atoms.
    monkeypatch.setattr("manifold_dl.images.inpainting._in_single", lambda picture: picture)
    clean, mask = texture(channels=channels), missing_at_random(0.4)
    clean = clean + 0.02 * np.random.default_rng(1).standard_normal(clean.shape)
    whole = inpaint(clean, mask, **SMALL)
    monkeypatch.setattr("manifold_dl.images.reconstruction.STRIP", 150)  # two rows of patches
    strips = []

    class Counter:
        def __call__(self, step):
            return False

        def reconstructed(self, done, total):
            strips.append(done)

    in_strips = inpaint(clean, mask, **SMALL, callbacks=[Counter()])
    assert len(strips) == 4 * -(-43 // (150 // 51))  # four rounds of 43 rows with 51 patches each
    # Sums of 36 patches in another order, of which four rounds are made.
    np.testing.assert_allclose(in_strips.image, whole.image, rtol=0, atol=1e-11)


def psnr(image, clean):
    return -10 * np.log10(np.mean((np.clip(image, 0, 1) - clean) ** 2))


@pytest.mark.parametrize(("missing", "margin"), [(0.25, 0.5), (0.5, 1.0)])
def test_gain_over_the_biharmonic_fill_on_a_picture_that_chose_no_setting(missing, margin):
    skimage = pytest.importorskip("skimage")
    clean = skimage.data.brick()[100:228, 100:228] / 255
    mask = missing_at_random(missing, clean.shape)
    smooth = skimage.restoration.inpaint_biharmonic(np.where(mask, 0, clean), mask)
    filled = inpaint(clean, mask, n_atoms=128, n_patches=5_000, max_iter=5).image
    assert psnr(filled, clean) > psnr(smooth, clean) + margin


def text_mask(shape):
    """Strokes three pixels wide, as letters have."""
    mask = np.zeros(shape, bool)
    for row in range(6, shape[0] - 12, 18):
        for column in range(4, shape[1] - 10, 12):
            mask[row : row + 10, column : column + 3] = mask[row : row + 3, column : column + 8] = True
    return mask


def scratch_mask(shape):
    """Lines two pixels wide across the picture."""
    mask, columns = np.zeros(shape, bool), np.arange(shape[1])
    for start, slope in ((5, 0.2), (20, -0.3), (40, 0.1)):
        rows = (start + slope * columns).astype(int) % (shape[0] - 1)
        mask[rows, columns] = mask[rows + 1, columns] = True
    return mask


@pytest.mark.parametrize("mask_of", [text_mask, scratch_mask])
def test_text_and_scratches_are_filled_in_better_than_by_the_smooth_fill(mask_of):
    clean = texture(64, 72)
    mask = mask_of(clean.shape)
    filled = inpaint(np.where(mask, np.nan, clean), mask, **SMALL).image
    smooth = smooth_fill(clean[:, :, None], mask[:, :, None])[:, :, 0]
    assert error(filled[mask], clean[mask]) < 0.6 * error(smooth[mask], clean[mask])
    assert psnr(filled, clean) > 30


@pytest.mark.parametrize("sigma", [None, 0.01])
def test_pixels_between_patches_keep_their_first_estimate(sigma):
    clean, mask = texture(), missing_at_random(0.3)
    result = inpaint(np.where(mask, np.nan, clean), mask, stride=9, sigma=sigma, **SMALL)
    assert error(result.image, clean) < 0.1


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_pictures_of_any_offset_are_filled_in(offset):
    # Near 1e9 single precision would not resolve the picture: it is used for ordinary pictures only.
    clean, mask = 255 * texture(), missing_at_random(0.3)
    result = inpaint(clean + offset, mask, **SMALL)
    assert result.image.dtype == result.dictionary.dtype == np.float64
    np.testing.assert_array_equal(result.image[~mask], (clean + offset)[~mask])
    assert error(result.image - offset, clean) < 10


GREEN = np.repeat(missing_at_random(0.1)[..., None], 3, axis=2)
GREEN[:, :, 1] = True


@pytest.mark.parametrize("sigma", ["a", True, [1.0]])
def test_noise_that_is_no_number_is_refused(sigma):
    with pytest.raises(TypeError, match="is one number"):
        inpaint(texture(), missing_at_random(0.1), sigma=sigma, **SMALL)


def test_channels_with_masks_of_their_own_and_one_mask_for_all_are_filled_in():
    clean, mask = texture(channels=3), missing_at_random(0.3)
    one, three = (inpaint(clean, given, **SMALL).image for given in (mask, np.repeat(mask[..., None], 3, 2)))
    np.testing.assert_array_equal(one, three)
    own = missing_at_random(0.3, clean.shape)
    filled = inpaint(np.where(own, np.nan, clean), own, **SMALL).image
    np.testing.assert_array_equal(filled[~own], clean[~own])
    assert error(filled[own], clean[own]) < 0.1


@pytest.mark.parametrize(
    ("image", "mask", "kind", "sentence"),
    [
        (texture(), np.ones((48, 56), bool), ValueError, "nothing to learn from"),
        (texture(), np.zeros((48, 56)), TypeError, "True where a pixel is missing"),
        (texture(), np.zeros((4, 5), bool), ValueError, "does not fit a picture"),
        (np.where(missing_at_random(0.1), np.nan, texture()), missing_at_random(0.05), ValueError, "NaN"),
        (texture(channels=3), GREEN, ValueError, "channel 1 has no observed pixel"),
        (1e80 * texture(), missing_at_random(0.1), ValueError, "divide it by a constant"),
        (texture()[:5], missing_at_random(0.1)[:5], ValueError, "smaller than a patch"),
        (texture()[:0], missing_at_random(0.1)[:0], ValueError, "smaller than a patch"),
    ],
)
def test_invalid_arguments_are_refused(image, mask, kind, sentence):
    with pytest.raises(kind, match=sentence):
        inpaint(image, mask, **SMALL)


@pytest.mark.parametrize(("channels", "limit"), [((), 55), ((3,), 130)], ids=["grey", "colour"])
@pytest.mark.parametrize("sigma", [None, 5.0])
def test_memory_per_pixel_is_what_the_command_line_states(monkeypatch, channels, limit, sigma):
    monkeypatch.setattr("manifold_dl.images.reconstruction.STRIP", 2**13)  # does not grow with the picture
    monkeypatch.setattr("manifold_dl.images.filling.STEPS", 3)

    def peak(side):
        picture, mask = np.full((side, side, *channels), 100, dtype=np.uint8), np.ones((side, side), bool)
        mask[:50, :50] = False  # the most that can be missing takes the most memory
        tracemalloc.start()
        try:
            inpaint(picture, mask, sigma=sigma, n_atoms=64, max_iter=1, n_patches=500, stride=8)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(200)  # imports
    assert peak(1300) - peak(900) < limit * (1300**2 - 900**2)
