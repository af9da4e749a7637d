"""A noisy picture and a better one of the same things, its guide; and the patches of a part of both.

`SimilarPatches` reads the patches of a tile, and compares them by a few features.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from manifold_dl.images.patches import Picture

FEATURES = 8  # principal components that patches are compared by; 16 gave the same within 0.02 dB
SINGLE = 500  # contrast in units of the noise up to which single precision is enough


class Tile(NamedTuple):
    """The patches in a part of the picture, in units of the noise.

    `noisy` and `guide` have a patch in every row; `features` are k×rows×columns, one column per patch.
    """

    top: int
    left: int
    noisy: np.ndarray
    guide: np.ndarray
    features: np.ndarray
    shape: tuple[int, int, int]  # channels, p, p


@dataclass(frozen=True)
class Guided:
    """A noisy picture and its guide.

    Attributes
    ----------
    picture : Picture
    guide : rows×columns×channels array
    sigma : float
    dtype : dtype
        To compute in.
    basis : m×k array
        Principal components of the guide's patches.
    """

    picture: Picture
    guide: np.ndarray
    sigma: float
    dtype: np.dtype
    basis: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, picture: Picture, guide: np.ndarray, sigma: float) -> "Guided":
        """With the precision that the noise needs, and the features of the guide.

        Parameters
        ----------
        picture : Picture
        guide : rows×columns×channels array
        sigma : float

        Returns
        -------
        Guided
        """
        single = np.ptp(picture.pixels) < SINGLE * sigma
        return cls(
            picture, guide, sigma, np.dtype(np.float32 if single else np.float64), _basis(picture, guide)
        )

    def tile(self, rows: np.ndarray, columns: np.ndarray, radius: int) -> Tile:
        """All patches that may be similar to those at the given rows and columns.

        Parameters
        ----------
        rows, columns : int arrays
            Increasing.
        radius : int

        Returns
        -------
        Tile
        """
        p = self.picture.patch_size
        (top, bottom), (left, right) = (
            (max(0, places[0] - radius), min(size, places[-1] + radius + p))
            for places, size in zip((rows, columns), self.guide.shape, strict=False)
        )
        shape = bottom - top - p + 1, right - left - p + 1
        noisy, guide = (
            _windows((pixels[top:bottom, left:right] / self.sigma).astype(self.dtype), p)
            for pixels in (self.picture.pixels, self.guide)
        )
        features = (self.basis.T.astype(self.dtype) @ guide.T).reshape(-1, *shape)
        return Tile(top, left, noisy, guide, features, (self.guide.shape[2], p, p))


def _windows(pixels: np.ndarray, p: int) -> np.ndarray:
    """Every patch of a small picture, as a row."""
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (p, p), axis=(0, 1))
    return windows.reshape(-1, pixels.shape[2] * p * p)


def _basis(picture: Picture, guide: np.ndarray) -> np.ndarray:
    """Principal components of about 1,000 patches of the guide, spread over the picture."""
    p = picture.patch_size
    windows = np.lib.stride_tricks.sliding_window_view(guide, (p, p), axis=(0, 1))
    step = max(1, int(np.sqrt(windows.shape[0] * windows.shape[1] / 1_000)))
    sample = windows[::step, ::step].reshape(-1, picture.length).astype(float)
    sample -= sample.mean(axis=0)
    if picture.length > len(sample):  # the smaller of the two products
        left = np.linalg.eigh(sample @ sample.T)[1][:, -FEATURES:]
        return np.linalg.qr(sample.T @ left)[0]
    return np.linalg.eigh(sample.T @ sample)[1][:, -FEATURES:]
