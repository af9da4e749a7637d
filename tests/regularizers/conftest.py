"""Dictionaries of several shapes, and a direction for each."""

import numpy as np
import pytest


@pytest.fixture(params=[(2, 1), (2, 2), (5, 8), (16, 32)], ids=lambda shape: f"{shape[0]}x{shape[1]}")
def dictionary(request):
    D = np.random.default_rng(1).standard_normal(request.param)
    return D / np.linalg.norm(D, axis=0)


@pytest.fixture
def direction(dictionary):
    return np.random.default_rng(2).standard_normal(dictionary.shape)
