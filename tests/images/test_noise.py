"""The noise of a picture: its estimate, and how far pure noise reaches."""

import numpy as np
import pytest
import scipy.stats
from textures import noisy, texture

from manifold_dl.images import Picture, denoise, estimate_sigma, usual_gain
from manifold_dl.images.patches import centred


def test_sigma_is_estimated():
    result = denoise(noisy(texture(128, 128), 0.1), patch_size=4, n_atoms=24, max_iter=1)
    assert result.sigma == pytest.approx(0.1, rel=0.1)  # 4,096 coefficients: 2 % of noise, and some texture


def test_the_estimate_scales_with_the_picture():
    pixels = np.random.default_rng(0).standard_normal((64, 64, 1))
    assert estimate_sigma(1e6 * pixels) == pytest.approx(1e6 * estimate_sigma(pixels), rel=1e-12)


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
