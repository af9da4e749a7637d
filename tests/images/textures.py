"""A picture of stripes with an edge, noise, holes and errors: what the tests of pictures use."""

import numpy as np


def texture(rows=48, columns=56, channels=None, frequency=0.7):
    """Diagonal stripes and an edge: smooth along lines, as pictures are."""
    i, j = np.mgrid[:rows, :columns]
    picture = 0.5 + 0.2 * np.sin(frequency * (i + j)) + 0.2 * (j > columns // 2)
    if channels is None:
        return picture
    return np.stack([picture * (c + 1) / channels for c in range(channels)], axis=2)


def noisy(picture, sigma, seed=0):
    return picture + sigma * np.random.default_rng(seed).standard_normal(picture.shape)


def missing_at_random(fraction, shape=(48, 56)):
    return np.random.default_rng(0).random(shape) < fraction


def error(a, b):
    return np.sqrt(np.mean((np.asarray(a, float) - b) ** 2))
