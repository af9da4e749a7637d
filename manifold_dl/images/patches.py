"""A picture and its patches: what a dictionary is learned from, and what a picture is put together from.

`denoising.py` and `reconstruction.py` use it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl._validation import require_count, require_finite, require_unmasked


@dataclass(frozen=True)
class Picture:
    """A picture as float channels, and its patches.

    Attributes
    ----------
    pixels : rows×columns×channels array
        In single or double precision.
    patch_size, stride : int
        The side of the patches, and their distance in a reconstruction.
    dtype, shape
        Those of the picture that was given.
    """

    pixels: np.ndarray
    patch_size: int
    stride: int
    dtype: np.dtype
    shape: tuple[int, ...]

    @classmethod
    def of(cls, image: Any, patch_size: int, stride: int = 1) -> "Picture":
        """Check a picture and convert it.

        Parameters
        ----------
        image : rows×columns or rows×columns×3 array
        patch_size, stride : int

        Returns
        -------
        Picture
        """
        require_unmasked(image, "the picture")
        image = np.asarray(image)
        if image.dtype.kind not in "fu" or image.dtype.itemsize > 8 or image.dtype == np.float16:
            raise TypeError(f"a picture of dtype {image.dtype}: give floats, or integers of 8 or 16 bit.")
        if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
            raise ValueError(f"a picture of shape {image.shape}: give rows×columns, or rows×columns×3.")
        require_count("patch_size", patch_size, minimum=2)
        require_count("stride", stride)
        if min(image.shape[:2]) < patch_size:
            raise ValueError(
                f"a picture of {image.shape[:2]} pixels is smaller than a patch of {patch_size}."
            )
        require_finite(image, "the picture", image.sum(dtype=float) if image.dtype.kind == "f" else 0.0)
        working = np.float32 if image.dtype == np.float32 else np.float64
        pixels = np.atleast_3d(image).astype(working)
        return cls(pixels, patch_size, stride, image.dtype, image.shape)

    @property
    def length(self) -> int:
        """m: the numbers in a patch."""
        return self.patch_size**2 * self.pixels.shape[2]

    @property
    def windows(self) -> np.ndarray:
        """Every patch as a view: rows×columns×channels×p×p."""
        p = self.patch_size
        return np.lib.stride_tricks.sliding_window_view(self.pixels, (p, p), axis=(0, 1))

    def random_patches(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Patches drawn at random, without their means.

        Parameters
        ----------
        count : int
            How many; all of them if there are no more.
        rng : Generator

        Returns
        -------
        m×n array
        """
        require_count("n_patches", count, "learning needs at least one patch")
        rows, columns = self.windows.shape[:2]
        if count < rows * columns:
            chosen = np.sort(rng.choice(rows * columns, size=count, replace=False))
        else:
            chosen = np.arange(rows * columns)
        patches, _ = centred(self.windows[chosen // columns, chosen % columns])
        return patches.T

    def restore(self, pixels: np.ndarray) -> np.ndarray:
        """Other pixels in this picture's shape, dtype and, for integers, range.

        Parameters
        ----------
        pixels : rows×columns×channels array

        Returns
        -------
        array like the picture that was given
        """
        if self.dtype.kind == "u":
            pixels = np.rint(pixels)
            np.clip(pixels, 0, np.iinfo(self.dtype).max, out=pixels)
        return pixels.astype(self.dtype).reshape(self.shape)

    @property
    def span(self) -> float:
        """White minus black: by the type for integers, 1 for floats unless the pixels say otherwise."""
        if self.dtype.kind == "u":
            return float(np.iinfo(self.dtype).max)
        return 255.0 if self.pixels.max() > 2 else 1.0


def centred(windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Patches without the mean of each channel, and the means.

    Parameters
    ----------
    windows : n×channels×p×p array

    Returns
    -------
    patches, means
        n×m and n×channels arrays.
    """
    means = windows.mean(axis=(2, 3))
    patches = windows - means[:, :, None, None]
    return patches.reshape(len(windows), -1), means
