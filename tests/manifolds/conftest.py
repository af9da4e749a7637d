"""A generator with a fixed seed for every test."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20120131)
