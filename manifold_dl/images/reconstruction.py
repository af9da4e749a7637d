"""A picture from its represented patches: they overlap, and where they do their average is taken.

The reconstruction works in strips, so its memory does not grow with the picture. `denoise` calls it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from manifold_dl.coders.calling import run_coder
from manifold_dl.images.patches import Picture, centred
from manifold_dl.learning.adapters import CallbackAdapter
from manifold_dl.learning.protocols import Callback

STRIP = 2**15  # patches in memory at a time


def reconstruct(
    picture: Picture,
    dictionary: np.ndarray,
    coder: Any,
    sigma: float,
    threads: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> np.ndarray:
    """The average of all represented patches and, with a small weight, of the noisy picture.

    Parameters
    ----------
    picture : Picture
    dictionary : m×d array
    coder : SparseCoder
    sigma : float
        The standard deviation of the noise: the smaller it is, the more the noisy picture counts.
    threads : int, optional
    callbacks : sequence of Callback
        Their method `reconstructed` is called after every strip.

    Returns
    -------
    rows×columns×channels array
    """
    observers = [CallbackAdapter(callback) for callback in callbacks]
    pixels, p = picture.pixels, picture.patch_size
    total, weight = np.zeros_like(pixels), np.zeros(pixels.shape[:2], dtype=pixels.dtype)
    columns = _positions(pixels.shape[1], p, picture.stride)
    rows = _positions(pixels.shape[0], p, picture.stride)
    per_strip = max(1, STRIP // len(columns))
    for first in range(0, len(rows), per_strip):
        strip = rows[first : first + per_strip]
        patches, means = centred(
            picture.windows[np.ix_(strip, columns)].reshape(-1, *picture.windows.shape[2:])
        )
        codes = run_coder(coder, patches.T, dictionary, threads=threads)
        clean = (codes.T @ dictionary.T).astype(pixels.dtype).reshape(len(strip), len(columns), -1, p, p)
        clean += means.reshape(len(strip), len(columns), -1, 1, 1)
        _add(total, weight, clean, strip, columns)
        for observer in observers:
            observer.reconstructed(first + len(strip), len(rows))
    # Elad and Aharon's 30/σ for 8-bit pictures: the less noise, the more the picture itself counts.
    own = 30 / 255 * picture.span / sigma if sigma > 0 else np.inf
    if not np.isfinite(own):
        return pixels.copy()
    total += own * pixels  # in place: a large picture is not copied more often than it has to be
    total /= (own + weight)[:, :, None]
    return total


def _add(
    total: np.ndarray, weight: np.ndarray, clean: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> None:
    """Add a strip of patches at their places: one shifted picture for every pixel of a patch."""
    p = clean.shape[-1]
    for i in range(p):
        for j in range(p):
            place = _place(rows + i, columns + j)
            total[place] += clean[:, :, :, i, j]
            weight[place] += 1


def _place(rows: np.ndarray, columns: np.ndarray) -> Any:
    """Index of a grid of pixels: slices, which need no copies, where neighbours are one apart."""
    if len(rows) == np.ptp(rows) + 1 and len(columns) == np.ptp(columns) + 1:
        return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return np.ix_(rows, columns)


def _positions(size: int, patch_size: int, stride: int) -> np.ndarray:
    """Where patches begin along one side; the last one always touches the border."""
    return np.unique(np.append(np.arange(0, size - patch_size + 1, stride), size - patch_size))
