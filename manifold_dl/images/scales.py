"""Pictures of half the size: their noise is half as strong, and their patches show what is larger.

Both functions go by the low frequencies of the cosine transform. It is orthonormal, so the noise of the small
picture is white again. To denoise at several scales and to put most of the low frequencies together is due to
Facciolo, Pierazzo and Morel (2017, Conservative scale recomposition for multiscale denoising).
`SimilarPatches` calls it. Channels are transformed one after the other: one spectrum is in memory at a time.
"""

import numpy as np
import scipy.fft

TAKEN = 0.7  # of the small picture's frequencies along each side: the highest ones are the least certain


def halved(pixels: np.ndarray) -> np.ndarray:
    """The low frequencies of a picture as a picture of half the sides, in the same range of values.

    White noise stays white, and its variance falls with the number of pixels.

    Parameters
    ----------
    pixels : rows×columns×channels array

    Returns
    -------
    (rows/2)×(columns/2)×channels array
        Rounded down.

    Examples
    --------
    >>> halved(np.full((6, 5, 1), 3.0)).round(12)[:, :, 0]
    array([[3., 3.],
           [3., 3.],
           [3., 3.]])
    """
    rows, columns = (side // 2 for side in pixels.shape[:2])
    small = np.empty((rows, columns, pixels.shape[2]), pixels.dtype)
    for channel in range(pixels.shape[2]):
        spectrum = scipy.fft.dctn(pixels[:, :, channel], norm="ortho")
        small[:, :, channel] = scipy.fft.idctn(spectrum[:rows, :columns], norm="ortho")
    small *= _contrast(small, pixels)
    return small


def replace_low_frequencies(pixels: np.ndarray, small: np.ndarray) -> None:
    """Give a picture the lowest 0.7 of the frequencies of a small one, in place.

    Parameters
    ----------
    pixels : rows×columns×channels array
    small : array like ``halved(pixels)``

    Examples
    --------
    >>> pixels = np.random.default_rng(0).random((6, 5, 1))
    >>> changed = pixels.copy()
    >>> replace_low_frequencies(changed, halved(pixels) + 1)
    >>> bool(np.allclose(changed, pixels + 1))
    True
    """
    rows, columns = (int(np.ceil(TAKEN * side)) for side in small.shape[:2])
    contrast = _contrast(small, pixels)
    for channel in range(pixels.shape[2]):
        spectrum = scipy.fft.dctn(pixels[:, :, channel], norm="ortho")
        low = scipy.fft.dctn(small[:, :, channel], norm="ortho")[:rows, :columns]
        spectrum[:rows, :columns] = low / contrast
        pixels[:, :, channel] = scipy.fft.idctn(spectrum, norm="ortho", overwrite_x=True)


def _contrast(small: np.ndarray, large: np.ndarray) -> float:
    """What the orthonormal coefficients of the small picture are multiplied by, so that grey values stay."""
    return float(np.sqrt(small[:, :, 0].size / large[:, :, 0].size))
