"""What docs/denoising.md claims: our setting against MOD and K-SVD, and the paper's order, on pictures."""

import numpy as np
import pytest

from manifold_dl import presets
from manifold_dl.coders import OMP
from manifold_dl.images import denoise
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
