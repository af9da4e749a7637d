"""The second look: against a reference by loops and m×m covariances, in all shapes, and what it gains."""

import numpy as np
import pytest

from manifold_dl.images import Picture, SimilarPatches, denoise


def by_loops(noisy, guide, sigma, p, size, stride, radius):
    """Wiener filters C (C + σ²I)⁻¹ of the groups, from their covariances; exact distances of patches."""
    height, width = noisy.shape[0] - p + 1, noisy.shape[1] - p + 1
    total, weight = np.zeros_like(noisy), np.zeros(noisy.shape[:2])
    for i in sorted({*range(0, height, stride), height - 1}):
        for j in sorted({*range(0, width, stride), width - 1}):
            places = [
                (a, b)
                for a in range(max(0, i - radius), min(height, i + radius + 1))
                for b in range(max(0, j - radius), min(width, j + radius + 1))
            ]
            centre = guide[i : i + p, j : j + p]
            places.sort(key=lambda at: np.sum((guide[at[0] : at[0] + p, at[1] : at[1] + p] - centre) ** 2))
            group = np.array([guide[a : a + p, b : b + p].ravel() for a, b in places[:size]])
            mean = group.mean(axis=0)
            C = (group - mean).T @ (group - mean) / len(group)
            wiener = C @ np.linalg.inv(C + sigma**2 * np.eye(len(C)))
            for a, b in places[:size]:
                patch = noisy[a : a + p, b : b + p]
                total[a : a + p, b : b + p] += (mean + wiener @ (patch.ravel() - mean)).reshape(patch.shape)
                weight[a : a + p, b : b + p] += 1
    return total / weight[:, :, None]


@pytest.mark.parametrize(("channels", "contrast"), [(1, 10.0), (2, 10.0), (1, 1e4)])
def test_one_round_is_the_wiener_filter_of_every_group(channels, contrast):
    rng = np.random.default_rng(0)
    guide = contrast * rng.random((17, 14, channels))
    noisy = guide + rng.standard_normal(guide.shape)
    # 2×2 pixels in two channels have eight features: distances by principal components are exact.
    picture = Picture(noisy, 2, 1, noisy.dtype, noisy.shape)
    expected = by_loops(noisy, guide, 1.0, p=2, size=7, stride=2, radius=3)
    refine = SimilarPatches(n_similar=7, stride=2, radius=3, rounds=1, halvings=0)
    found = refine(picture, guide.copy(), sigma=1.0)
    # Single precision where the noise is not negligible: a few hundred rounding errors.
    np.testing.assert_allclose(found, expected, atol=1e-4 if contrast < 500 else 1e-7)


def test_tiles_and_threads_do_not_change_the_picture(monkeypatch):
    rng = np.random.default_rng(0)
    noisy = rng.standard_normal((45, 70))
    picture, refine = Picture.of(noisy, 4), SimilarPatches(radius=3)
    guides = [0.3 * picture.pixels for _ in range(3)]
    whole = refine(picture, guides[0], 1.0, threads=1)
    monkeypatch.setattr("manifold_dl.images.similar.TILE", 2**13)
    one, two = (refine(picture, guide, 1.0, threads=n) for n, guide in ((1, guides[1]), (2, guides[2])))
    np.testing.assert_array_equal(one, two)
    # The order of sums is another one; two rounds of single precision on numbers near 1.
    np.testing.assert_allclose(one, whole, atol=1e-4)


@pytest.mark.parametrize("shape", [(8, 8), (8, 31), (9, 8, 3), (23, 50), (61, 11, 3)])
@pytest.mark.parametrize("patch_size", [2, 5, 8])
def test_every_pixel_of_every_shape_is_estimated(shape, patch_size):
    constant = Picture.of(np.full(shape, 7.0), patch_size)
    # All patches are equally similar, and every pixel has to be in a group all the same.
    found = SimilarPatches(n_similar=3)(constant, constant.pixels.copy(), sigma=0.5)
    np.testing.assert_allclose(found, 7.0, rtol=1e-6)


def test_large_patches_take_the_components_from_the_smaller_product():
    rng = np.random.default_rng(0)
    picture = Picture.of(rng.standard_normal((40, 40)), 34)  # 49 patches of 1,156 pixels
    assert np.isfinite(SimilarPatches()(picture, picture.pixels.copy(), sigma=1.0)).all()


@pytest.mark.parametrize("sigma", [2, 5, 25, 60, 100])
def test_refined_pictures_are_better_at_every_level_of_noise(sigma):
    clean = pytest.importorskip("skimage.data").coffee()[200:296, 250:346].mean(axis=2)
    noisy = clean + sigma * np.random.default_rng(1).standard_normal(clean.shape)
    small = {"n_atoms": 128, "n_patches": 3_000, "max_iter": 3, "stride": 2}
    first, refined = (denoise(noisy, sigma, refine=r, **small).image for r in (None, SimilarPatches()))
    assert np.mean((refined - clean) ** 2) < np.mean((first - clean) ** 2)


def test_negligible_noise_leaves_the_guide():
    picture = Picture.of(np.random.default_rng(0).random((20, 20)), 4)
    guide = picture.pixels.copy()
    np.testing.assert_array_equal(SimilarPatches()(picture, guide, sigma=1e-9), picture.pixels)


def test_progress_counts_the_rows_of_all_passes():
    seen = []

    class Rows:
        def __call__(self, step):
            return None

        def reconstructed(self, done, total):
            seen.append((done, total))

    denoise(np.eye(40), 0.1, patch_size=4, n_atoms=20, max_iter=1, callbacks=[Rows()])
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (120, 120)  # 40 rows, and twice again


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ridge": 0.0}, "ridge=0.0"),
        ({"rounds": 0}, "rounds=0"),
        ({"n_similar": 2.5}, "n_similar=2.5"),
        ({"halvings": -1}, "halvings=-1"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        SimilarPatches(**options)


def test_stride_that_leaves_out_pixels_is_refused():
    with pytest.raises(ValueError, match="stride=5 leaves out pixels"):
        denoise(np.eye(20), 0.1, patch_size=4, n_atoms=20, max_iter=1, refine=SimilarPatches(stride=5))
