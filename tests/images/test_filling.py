"""The smooth fill of holes, which inpainting begins with."""

import numpy as np
from textures import missing_at_random

from manifold_dl.images.filling import smooth_fill


def test_smooth_fill_continues_a_plane_and_keeps_what_is_known():
    plane = np.add.outer(0.3 * np.arange(30.0), 0.7 * np.arange(20.0))[:, :, None]
    missing = missing_at_random(0.6, plane.shape)
    filled = smooth_fill(np.where(missing, -7, plane), missing)
    np.testing.assert_array_equal(filled[~missing], plane[~missing])
    # A plane has no Laplacian but at the border of the picture; conjugate gradients end at 1e-3.
    assert np.abs(filled - plane)[3:-3, 3:-3].max() < 0.2
