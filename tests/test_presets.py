"""Presets: settings by purpose that the functions accept."""

import pytest

from manifold_dl import presets
from manifold_dl.images import denoise

data = pytest.importorskip("skimage.data")


def cropped(name, size=None):
    clean = getattr(data, name)().astype(float)
    return clean if size is None else clean[100 : 100 + size, 100 : 100 + size]


def test_every_purpose_is_a_setting_of_denoise():
    noisy = cropped("camera", 32)
    for purpose in ("best", "quick", "paper"):
        assert denoise(noisy, 10.0, n_atoms=64, **presets.images(purpose)).image.shape == noisy.shape
    with pytest.raises(ValueError, match="purpose='fast'"):
        presets.images("fast")
