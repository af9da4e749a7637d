"""Generators with a fixed seed."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def seeded():
    """Pymanopt draws from NumPy's global generator: fixed for the test, and put back after it."""
    state = np.random.get_state()  # noqa: NPY002
    reset = lambda: np.random.seed(0)  # noqa: NPY002
    reset()
    yield reset
    np.random.set_state(state)  # noqa: NPY002
