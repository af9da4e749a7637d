"""The smooth fill of missing pixels: where `inpaint` starts, before any patch is coded.

It minimises Σ(Δu)², the energy of a thin plate, over the missing pixels, with the others fixed. First from
averages over ever larger squares, then by conjugate gradients: a few dozen steps where pixels are missing one
by one; in large holes they end early, near the averages.
"""

import numpy as np
import scipy.sparse.linalg

STEPS, ACCURACY = 200, 1e-3


def smooth_fill(pixels: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """The picture with its missing pixels filled in smoothly, channel by channel.

    Parameters
    ----------
    pixels : rows×columns×channels array
        The values of missing pixels do not matter.
    missing : rows×columns×channels boolean array

    Returns
    -------
    rows×columns×channels array

    Examples
    --------
    >>> ramp = np.add.outer(np.arange(12.0), np.arange(9.0))[:, :, None]
    >>> missing = np.random.default_rng(0).random(ramp.shape) < 0.4
    >>> error = np.abs(smooth_fill(np.where(missing, 99, ramp), missing) - ramp)
    >>> bool(error[2:-2, 2:-2].max() < 0.1), bool(error.max() < 0.5)  # at the border the plate bends
    (True, True)
    """
    filled = np.where(missing, 0, pixels)
    for c in range(pixels.shape[2]):
        hole = missing[:, :, c]
        if hole.any():
            start = _from_averages(filled[:, :, c], ~hole)
            filled[:, :, c] = np.where(hole, _thin_plate(start, hole), filled[:, :, c])
    return filled


def _from_averages(channel: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Missing pixels from the means over 2×2 squares, those without any from 4×4, and so on."""
    if observed.all() or min(channel.shape) < 2:
        return np.where(observed, channel, channel[observed].mean() if observed.any() else 0)
    rows, columns = channel.shape
    padding = ((0, rows % 2), (0, columns % 2))
    total = _sums_of_squares(np.pad(np.where(observed, channel, 0), padding))
    count = _sums_of_squares(np.pad(observed.astype(channel.dtype), padding))
    coarse = _from_averages(total / np.maximum(count, 1), count > 0)
    fine = np.kron(coarse, np.ones((2, 2), channel.dtype))[:rows, :columns]
    return np.where(observed, channel, fine)


def _sums_of_squares(even: np.ndarray) -> np.ndarray:
    return even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]


def _thin_plate(start: np.ndarray, hole: np.ndarray) -> np.ndarray:
    """Minimise Σ(Δu)² over the pixels of the hole by conjugate gradients."""

    def energy_gradient(u: np.ndarray) -> np.ndarray:
        return _laplacian(_laplacian(u))

    def product(x: np.ndarray) -> np.ndarray:
        u = np.zeros_like(start)
        u[hole] = x
        return energy_gradient(u)[hole]

    size = int(hole.sum())
    system = scipy.sparse.linalg.LinearOperator((size, size), matvec=product, dtype=start.dtype)
    right = -energy_gradient(np.where(hole, 0, start))[hole]
    solution, _ = scipy.sparse.linalg.cg(system, right, x0=start[hole], rtol=ACCURACY, maxiter=STEPS)
    filled = start.copy()
    filled[hole] = solution
    return filled


def _laplacian(u: np.ndarray) -> np.ndarray:
    """The sum of the differences to the neighbours that there are: symmetric, and zero for constants."""
    result = np.zeros_like(u)
    down, right = np.diff(u, axis=0), np.diff(u, axis=1)
    result[:-1] += down
    result[1:] -= down
    result[:, :-1] += right
    result[:, 1:] -= right
    return result
