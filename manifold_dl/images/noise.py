"""The noise of a picture: its standard deviation, and how closely patches should be represented.

`denoise` calls both functions where the user does not say.
"""

import numpy as np
import scipy.special


def estimate_sigma(pixels: np.ndarray) -> float:
    """Standard deviation of the noise: the median of the finest diagonal differences (Donoho's rule).

    Parameters
    ----------
    pixels : rows×columns×channels array

    Returns
    -------
    float

    Examples
    --------
    >>> noise = 3 * np.random.default_rng(0).standard_normal((200, 200, 1))
    >>> bool(abs(estimate_sigma(noise) - 3) < 0.1)
    True
    """
    even = pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2]
    a, b, c, d = even[::2, ::2], even[::2, 1::2], even[1::2, ::2], even[1::2, 1::2]
    details = (a - b - c + d) / 2  # the finest diagonal Haar coefficients: noise of the same variance
    return float(np.median(np.abs(details)) / 0.6744897501960817)  # the third quartile of a Gaussian


def usual_gain(length: int, channels: int = 1) -> float:
    """The gain that pure noise exceeds in the same fraction of patches as it does 1.15 with 8×8 pixels.

    Patches are without the mean of each channel, so their noise has `length` − `channels` degrees of freedom,
    and the fraction is one in 28.

    Parameters
    ----------
    length : int
        The numbers in a patch, of all channels together.
    channels : int
        1 for grey pictures, 3 for RGB.

    Returns
    -------
    float

    Examples
    --------
    >>> round(usual_gain(64), 3), round(usual_gain(192, channels=3), 3)
    (1.15, 1.084)
    """
    above = scipy.special.chdtrc(63, 64 * 1.15**2)
    return float(np.sqrt(scipy.special.chdtri(length - channels, above) / length))
