"""What docs/denoising.md claims: our setting against MOD and K-SVD, and the paper's order, on pictures."""

import numpy as np
import pytest
import scipy.stats

from manifold_dl import presets
from manifold_dl.coders import OMP
from manifold_dl.images import Picture, cosines, denoise, usual_gain
from manifold_dl.images.defaults import tethered
from manifold_dl.images.patches import centred
from manifold_dl.updates import KSVD, MOD, SimCO

data = pytest.importorskip("skimage.data")


def cropped(name, size=None):
    clean = getattr(data, name)().astype(float)
    return clean if size is None else clean[100 : 100 + size, 100 : 100 + size]


def gains(clean, sigma, updates, draw, **options):
    """PSNR of every update on the same noise, patches, coder and start."""
    noisy = clean + sigma * np.random.default_rng([draw, sigma]).standard_normal(clean.shape)
    options = {"n_patches": 1_000, "rng": draw, "max_iter": 10, "stride": 1, "refine": None} | options
    images = (denoise(noisy, sigma, update=u, **options).image for u in updates)
    return np.array([10 * np.log10(255**2 / np.mean((image - clean) ** 2)) for image in images])


def primitive_and_regularized():
    regularized = presets.images("paper")["update"]
    return SimCO(optimizer=regularized.optimizer, mu=0.0), regularized


def test_default_update_beats_ksvd_and_mod_on_few_patches():
    updates = [None, KSVD(method="power"), MOD()]
    ours, k_svd, mod = gains(cropped("camera", 128), 25, updates, draw=0, stride=2, max_iter=5)
    # The documentation promises 0.1 dB on average over whole pictures; on this crop it is more.
    assert ours > max(k_svd, mod) + 0.1


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


@pytest.mark.parametrize("channels", [1, 3])
def test_pure_noise_exceeds_the_gain_in_one_patch_of_28(channels):
    """Patches as `denoise` codes them, without the mean of each channel; the χ² tail is SciPy's."""
    noise = np.random.default_rng(0).standard_normal((8, 8 * 20_000, channels))
    patches, _ = centred(Picture.of(noise, 8).windows[0, ::8])  # side by side: independent
    gain = usual_gain(64 * channels, channels)
    fraction = np.mean((patches**2).mean(axis=1) > gain**2)
    tail = scipy.stats.chi2.sf(64 * 1.15**2, df=63)
    assert round(1 / tail) == 28
    assert scipy.stats.chi2.sf(64 * channels * gain**2, df=63 * channels) == pytest.approx(tail)
    assert fraction == pytest.approx(tail, abs=0.004)  # three standard deviations of the fraction of 20,000


def test_usual_gains_are_those_that_the_documentation_names():
    assert usual_gain(64) == pytest.approx(1.15, abs=1e-12)
    assert usual_gain(192, channels=3) == pytest.approx(1.084, abs=5e-4)


def test_every_purpose_is_a_setting_of_denoise():
    noisy = cropped("camera", 32)
    for purpose in ("best", "quick", "paper"):
        assert denoise(noisy, 10.0, n_atoms=64, **presets.images(purpose)).image.shape == noisy.shape
    with pytest.raises(ValueError, match="purpose='fast'"):
        presets.images("fast")


@pytest.mark.slow
def test_denoising_gains_in_nine_cases_with_the_papers_budget():
    ours, k_svd, mod = np.mean(
        [
            gains(cropped(name), sigma, [None, KSVD(), MOD()], draw=0)
            for name in ("camera", "coins", "astronaut")
            for sigma in (15, 25, 50)
        ],
        axis=0,
    )
    assert ours >= k_svd + 0.1
    assert ours >= mod


@pytest.mark.slow
@pytest.mark.parametrize(("name", "holds"), [("camera", True), ("coins", False)])
def test_methods_rank_as_in_the_paper_over_ten_draws(name, holds):
    coder = OMP(sparsity=32, tol=64 * (1.15 * 25) ** 2)
    updates = [*primitive_and_regularized(), KSVD(), MOD(), None]
    found = [gains(cropped(name), 25, updates, draw, coder=coder) for draw in range(10)]
    primitive, regularized, k_svd, mod, ours = np.mean(found, axis=0)
    # As measured: regularized SimCO gains most on camera, by 0.12 dB over K-SVD, but not on coins, where
    # K-SVD is 0.04 dB ahead of it. The spread of these means is 0.01 dB.
    assert (regularized > max(k_svd, mod)) == holds
    assert regularized > primitive
    assert ours > max(regularized, k_svd, mod) - 0.01
