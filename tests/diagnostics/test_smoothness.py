"""Kinks of a penalty are found, and smooth penalties pass."""

import autograd.numpy as anp
import numpy as np
import pytest

import manifold_dl as mdl
from manifold_dl.diagnostics import CheckFailed, check_regularizer
from manifold_dl.diagnostics.smoothness import find_kink

D = mdl.manifolds.Spheres(8, 12).random_point(0)


NOT_SMOOTH = {
    "absolute values": lambda D: anp.sum(anp.abs(D)),
    "roots of absolute values": lambda D: anp.sum(anp.sqrt(anp.abs(D))),
    "roots of squares": lambda D: anp.sum(anp.sqrt(D**2)),
    "a few absolute values in much curvature": lambda D: 100 * anp.sum(D**4) + 0.1 * anp.sum(anp.abs(D)),
    "norms of rows": lambda D: anp.sum(anp.sqrt(anp.sum(D**2, axis=1))),
    "the largest entry": lambda D: anp.max(D),
    "the coherence itself": lambda D: anp.max(anp.abs(D.T @ D) * (1 - np.eye(D.shape[1]))),
    "absolute inner products": lambda D: anp.sum(anp.abs(D.T @ D)),
    "a threshold": lambda D: anp.sum(anp.maximum(D - 0.1, 0)),
    "a jump": lambda D: anp.sum(anp.where(D > 0.1, D**2, 0.0)),
}


SMOOTH = {
    "smoothed absolute values": lambda D: anp.sum(anp.sqrt(D**2 + 1e-4)),
    "smoothed norms of rows": lambda D: anp.sum(anp.sqrt(anp.sum(D**2, axis=1) + 1e-6)),
    "squared thresholds": lambda D: anp.sum(anp.maximum(D - 0.1, 0) ** 2),
    "a constant": lambda D: 3.0,
    "a sum": anp.sum,
    "waves": lambda D: anp.sum(anp.sin(20 * D)),
}


@pytest.mark.parametrize("name", NOT_SMOOTH)
def test_penalty_with_kinks_is_reported_as_not_smooth(name):
    with pytest.raises(CheckFailed, match="is not smooth"):
        check_regularizer(NOT_SMOOTH[name])


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_penalty_is_not_reported_as_having_kinks(name):
    assert check_regularizer(SMOOTH[name])


def test_kink_at_zero_entries_is_named():
    with pytest.raises(CheckFailed, match="its slope jumps where an entry of the dictionary is zero"):
        check_regularizer(NOT_SMOOTH["absolute values"])


@pytest.mark.parametrize("place", [-0.37, 0.0, 0.4142])
def test_find_kink_locates_a_kink(place):
    # 1e-4 of the path: the last grid but one.
    assert find_kink(lambda t: np.cos(3 * t) + abs(t - place), -1, 1) == pytest.approx(place, abs=2e-4)
    assert find_kink(lambda t: np.cos(3 * t) + (t - place) ** 2, -1, 1) is None
    assert np.isnan(find_kink(lambda t: np.log(t - place) if t > place else -np.inf, -1, 1))
